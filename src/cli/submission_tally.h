// What became of the tasks of a `baton submit` that has many, told in the order of the input.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "cli/in_order.h"
#include "cli/submit.h"
#include "client/types.h"

namespace baton::cli {

class SubmissionTally {
 public:
  explicit SubmissionTally(const SubmitOptions& options) : options_(options) {}

  void settle(std::size_t number, Result<client::Submitted> outcome) {
    const std::lock_guard lock(mutex_);
    in_order_.put(number, std::move(outcome));
  }
  // The coordinator refuses for now; what it refused is handed in again.
  void held_back(const Error& why);
  bool is_hopeless() const { return is_hopeless_; }  // the next one would fare no better
  std::uint64_t accepted() const { return accepted_; }

  // Once all are settled.
  int exit_code() const { return exit_code_; }
  const std::vector<std::string>& tasks() const { return tasks_; }          // to wait for
  bool is_unfinished() const { return unknown_ + unsent_ + untaken_ > 0; }  // a repetition makes sense
  std::string summary(std::int64_t took_ms) const;

 private:
  void tell(std::size_t number, const Result<client::Submitted>& outcome);
  void tell_of(std::size_t number, const Error& said);

  const SubmitOptions& options_;
  InOrder<Result<client::Submitted>> in_order_{
      [this](std::size_t number, const Result<client::Submitted>& outcome) { tell(number, outcome); }};
  std::mutex mutex_;
  std::vector<std::string> tasks_;
  std::atomic<std::uint64_t> accepted_ = 0;
  std::atomic<bool> is_hopeless_ = false;
  std::uint64_t existed_ = 0;
  std::uint64_t refused_ = 0;
  std::uint64_t unknown_ = 0;  // sent, and no answer came
  std::uint64_t unsent_ = 0;
  std::uint64_t untaken_ = 0;  // there was no room for them, and there may be later
  bool was_held_back_ = false;
  int exit_code_ = 0;
};

}  // namespace baton::cli
