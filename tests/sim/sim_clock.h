// The clocks of the simulated machine: a wall clock that is set at will, and a boot clock that drifts.
#pragma once

#include "engine/coordinator_time.h"

namespace baton::sim {

class SimClock final : public engine::Clock {
 public:
  explicit SimClock(std::int64_t drift_ppm) : drift_ppm_(drift_ppm) {}

  Instant wall() override { return {kEpochMs + now + offset_}; }
  Duration since_boot() override { return {(now - booted_) * (1'000'000 + drift_ppm_) / 1'000'000}; }

  void jump(std::int64_t ms) { offset_ += ms; }
  void reboot() { booted_ = now; }
  std::int64_t now = 0;  // real time of the simulation, in milliseconds

 private:
  static constexpr std::int64_t kEpochMs = 1'790'000'000'000;

  const std::int64_t drift_ppm_;
  std::int64_t offset_ = 0;
  std::int64_t booted_ = 0;
};

}  // namespace baton::sim
