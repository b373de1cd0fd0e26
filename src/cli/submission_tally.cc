#include "cli/submission_tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/complaint.h"
#include "cli/output.h"
#include "cli/quantities.h"
#include "cli/sender.h"
#include "cli/task_text.h"

namespace baton::cli {
namespace {

constexpr std::uint64_t kComplaintsMax = 10;  // told one by one; further ones are only counted

bool is_untaken(Errc code) { return code == Errc::exhausted || code == Errc::closed; }

}  // namespace

void SubmissionTally::tell(std::size_t number, const Result<client::Submitted>& outcome) {
  if (!outcome) return tell_of(number, outcome.error());
  ++accepted_;
  if (outcome->existed) ++existed_;
  if (options_.wait) return tasks_.push_back(outcome->task);
  if (options_.ids) to_output("{}\n", outcome->task);
  if (options_.json) to_output("{}\n", json_of(*outcome).whole());
}

void SubmissionTally::tell_of(std::size_t number, const Error& said) {
  const Error error = in_our_words(said);
  exit_code_ = std::max(exit_code_, exit_code_of(error.code));
  if (options_.ids) to_output("-\n");
  if (options_.json) to_output("{}\n", json_of(error).number("line", number + 1).whole());
  const bool is_unknown = error.code == Errc::outcome_unknown;
  if (is_unknown || is_unsent(error.code) || is_untaken(error.code)) {
    // All that was under way shares the fate of the first.
    if (!is_unfinished())
      to_errors("baton: from line {} on: {}: {}\n", number + 1, word(error.code), error.message);
    ++(is_unknown ? unknown_ : is_untaken(error.code) ? untaken_ : unsent_);
    is_hopeless_ = true;
    return;
  }
  if (error.code == Errc::permission_denied) is_hopeless_ = true;
  if (++refused_ > kComplaintsMax) return;
  to_errors("baton: line {}: {}: {}{}\n", number + 1, word(error.code), error.message,
            refused_ == kComplaintsMax ? " (further ones are only counted)" : "");
}

void SubmissionTally::held_back(const Error& why) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(was_held_back_, true)) return;
  to_errors("baton: {}: {}; what is refused is handed in again, as fast as it is taken\n", word(why.code),
            why.message);
}

std::string SubmissionTally::summary(std::int64_t took_ms) const {
  std::string text = fmt::format("{} submitted in {:.1f} s", counted(accepted_, "task"),
                                 static_cast<double>(took_ms) / 1000);
  const auto add = [&](std::uint64_t count, const char* what) {
    if (count > 0) text += fmt::format(", {} {}", count, what);
  };
  add(existed_, "of them known already");
  add(refused_, "refused");
  add(unknown_, "of unknown outcome");
  add(unsent_, "not sent");
  add(untaken_, "not taken");
  return text;
}

}  // namespace baton::cli
