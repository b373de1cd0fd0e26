// The processors of a worker, as modules share them that keep one busy (Hint::cpu): such a module waits until
// one is free, whatever runs in the places beside it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>

#include "base/time.h"

namespace baton::pipeline {

class Processors {
 public:
  explicit Processors(std::size_t count) : free_(static_cast<std::ptrdiff_t>(count)) {}

  // Also without one, when it is stopped. False: none was free for so long (0: as long as it takes), and none
  // is taken.
  bool take(const std::stop_token& stop, Duration at_most);
  void give_back();

 private:
  std::mutex mutex_;
  std::condition_variable_any given_back_;
  std::ptrdiff_t free_;
};

}  // namespace baton::pipeline
