#include "cli/last_words.h"

#include <unistd.h>

namespace baton::cli {
namespace {

// A handler of signals has to find it, hence no member.
std::string last_words;

void speak(int number) {
  (void)!::write(STDERR_FILENO, last_words.data(), last_words.size());
  ::raise(number);  // which ends us when this handler returns
}

}  // namespace

LastWords::LastWords(const std::string& text) {
  last_words = "\n" + text;  // not behind a bar that shows how far it has got
  struct sigaction speaks{};
  speaks.sa_handler = speak;
  speaks.sa_flags = static_cast<int>(SA_RESETHAND);
  for (std::size_t at = 0; at < kEnding.size(); ++at) {
    ::sigaction(kEnding[at], nullptr, &before_[at]);
    const bool is_ignored = before_[at].sa_handler == SIG_IGN;  // as nohup has it
    if (!is_ignored) ::sigaction(kEnding[at], &speaks, nullptr);
  }
}

LastWords::~LastWords() {
  for (std::size_t at = 0; at < kEnding.size(); ++at) ::sigaction(kEnding[at], &before_[at], nullptr);
}

}  // namespace baton::cli
