// What is to be done on one thread, as others want it. Shared with modules that do not end: what they still
// say when nobody takes it in any more is dropped.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/time.h"

namespace baton::pipeline {

class Inbox {
 public:
  static constexpr std::size_t kChatterMax = 1'000;

  void post(std::function<void()> what);
  // For what may come without end, as the lines of a log: waits while that much has not been taken in. Not on
  // the thread that takes it in: that asks modules to stop, which may say something then.
  void post_chatter(std::function<void()> what);

  // Until there is something, or the time is over.
  void wait(std::optional<Duration> at_most);
  std::vector<std::function<void()>> take();
  // Nothing is let in any more, and nobody waits for room.
  void close();

 private:
  void add(std::function<void()> what);

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable has_room_;
  std::vector<std::function<void()>> all_;
  std::thread::id taker_;
  bool is_closed_ = false;
};

}  // namespace baton::pipeline
