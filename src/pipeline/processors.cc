#include "pipeline/processors.h"

#include <chrono>

namespace baton::pipeline {

bool Processors::take(const std::stop_token& stop, Duration at_most) {
  std::unique_lock lock(mutex_);
  const auto is_one_free = [this] { return free_ > 0; };
  if (at_most == Duration{})
    given_back_.wait(lock, stop, is_one_free);
  else if (!given_back_.wait_for(lock, stop, std::chrono::milliseconds(at_most.ms), is_one_free) &&
           !stop.stop_requested())
    return false;
  --free_;
  return true;
}

void Processors::give_back() {
  const std::lock_guard lock(mutex_);
  ++free_;
  given_back_.notify_one();
}

}  // namespace baton::pipeline
