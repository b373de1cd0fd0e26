// Threads that do something one after the other, in the order in which they were told to.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace baton::checkpoint {

class Turns {
 public:
  using Turn = std::uint64_t;

  Turn take() {
    const std::lock_guard lock(mutex_);
    return taken_++;
  }
  // Until all that were taken before have ended.
  void wait(Turn turn) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ == turn; });
  }
  // By whoever has waited for it.
  void end() {
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Turn taken_ = 0;
  Turn ended_ = 0;
};

}  // namespace baton::checkpoint
