// The system's clocks, and as much more as the test has let pass.
#pragma once

#include <atomic>

#include "engine/coordinator_time.h"

namespace baton::stream {

class MovedClock final : public engine::Clock {
 public:
  Instant wall() override { return system_.wall() + Duration{ahead_ms_}; }
  Duration since_boot() override { return system_.since_boot() + Duration{ahead_ms_}; }
  void move(Duration by) { ahead_ms_ += by.ms; }

 private:
  engine::SystemClock system_;
  std::atomic<std::int64_t> ahead_ms_ = 0;
};

}  // namespace baton::stream
