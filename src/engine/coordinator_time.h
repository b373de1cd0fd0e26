// Coordinator time T: never backwards, not within a process, not across restarts, whatever the wall clock
// does.
//
// At start T is the wall clock, or the last T in the log if that is later. From then on it advances with the
// boot-time clock, which keeps counting while the machine sleeps and which nobody sets.
#pragma once

#include "base/time.h"

namespace baton::engine {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant wall() = 0;
  virtual Duration since_boot() = 0;
};

class SystemClock final : public Clock {
 public:
  Instant wall() override;
  Duration since_boot() override;
};

class CoordinatorTime {
 public:
  CoordinatorTime(Clock& clock, Instant last_in_log);
  Instant now();
  // How far the wall clock has moved away from T, for operators to see.
  Duration ahead_of_wall();

 private:
  Clock& clock_;
  Duration started_;  // since boot
  Instant start_;
  Instant last_;
};

}  // namespace baton::engine
