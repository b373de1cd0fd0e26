// The processors of a worker, as modules share them that keep one busy (Hint::cpu): such a module waits until
// one is free, whatever runs in the places beside it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>

namespace baton::pipeline {

class Processors {
 public:
  explicit Processors(std::size_t count) : free_(static_cast<std::ptrdiff_t>(count)) {}

  // Also without one, when it is stopped.
  void take(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    given_back_.wait(lock, stop, [this] { return free_ > 0; });
    --free_;
  }
  void give_back() {
    const std::lock_guard lock(mutex_);
    ++free_;
    given_back_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any given_back_;
  std::ptrdiff_t free_;
};

}  // namespace baton::pipeline
