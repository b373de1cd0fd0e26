#include "engine/coordinator_time.h"

#include <time.h>

#include <algorithm>

#include "base/mutant.h"

namespace baton::engine {
namespace {

std::int64_t read_ms(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

Instant SystemClock::wall() { return {read_ms(CLOCK_REALTIME)}; }
Duration SystemClock::since_boot() { return {read_ms(CLOCK_BOOTTIME)}; }

CoordinatorTime::CoordinatorTime(Clock& clock, Instant last_in_log)
    : clock_(clock),
      started_(clock.since_boot()),
      start_(std::max(clock.wall(), last_in_log)),
      last_(start_) {}

Instant CoordinatorTime::now() {
  if (mutant(Mutant::m21_wall_clock_instead_of_coordinator_time)) return clock_.wall();
  last_ = std::max(last_, start_ + (clock_.since_boot() - started_));
  return last_;
}

Duration CoordinatorTime::ahead_of_wall() { return now() - clock_.wall(); }

}  // namespace baton::engine
