// What a thread waits with that may be stopped. It is shared with the call, whose answer may come when the
// thread has gone.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/result.h"

namespace baton::client {

template <class T>
class StoppableAnswer {
 public:
  void set(Result<T> answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
    comes_.notify_all();
  }
  Result<T> wait(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    comes_.wait(lock, std::move(stop), [&] { return answer_.has_value(); });
    if (!answer_)
      return failure(Errc::outcome_unknown, "stopped before an answer came; it may have happened");
    return *std::move(answer_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any comes_;
  std::optional<Result<T>> answer_;
};

}  // namespace baton::client
