#include "cli/last_words.h"

#include <unistd.h>

#include <charconv>
#include <string_view>
#include <utility>

namespace baton::cli {
namespace {

// A handler of signals has to find them, hence no members.
std::string last_words;
std::vector<LastCount> last_counts;

void say(std::string_view text) { (void)!::write(STDERR_FILENO, text.data(), text.size()); }

// Without asking for memory: the thread that was interrupted may be doing so.
void speak(int number) {
  say("\n");  // not behind a bar that shows how far it has got
  for (const LastCount& one : last_counts) {
    std::array<char, 20> digits{};
    say(one.before);
    const char* end = std::to_chars(digits.begin(), digits.end(), one.count->load()).ptr;
    say({digits.begin(), end});
  }
  say(last_words);
  ::raise(number);  // which ends us when this handler returns
}

}  // namespace

LastWords::LastWords(const std::string& text, std::vector<LastCount> counts) {
  last_words = text;
  last_counts = std::move(counts);
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
