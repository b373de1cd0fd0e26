// An instance of a service that shares streams: says what is done, what failed and what is new, and takes
// what is next. It may forget everything, come back under another id, leave, or work on long after its lease.
#pragma once

#include <cstdint>
#include <vector>

#include "core/request.h"
#include "engine/engine.h"
#include "tests/sim/calls.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/stream_history.h"

namespace baton::sim {

inline constexpr Party kFirstInstance = 1000;  // parties from here on are instances

class StreamInstance {
 public:
  StreamInstance(std::uint64_t index, const Scenario& scenario, SimClock& clock, Agenda& agenda,
                 Calls& calls);

  void wake(std::uint64_t generation);
  void answered(const Call& call, const engine::Answer& answer);
  void unanswered() { asking_ = false; }
  // From now on it is quick, stores nothing more, and clears away what stands in the way of streams.
  void become_honest();

 private:
  struct Job {
    core::GivenMessage message;
    std::int64_t finish_at = 0;
    bool told = false;  // what became of it, and nobody has answered yet
  };
  void turn();
  void store(core::ProcessWork& call);
  void report(core::ProcessWork& call);
  void start_anew();
  void plan(std::int64_t at);
  bool one_in(std::uint64_t count) { return random_.below(count) == 0; }

  const std::uint64_t index_;
  const Scenario& scenario_;
  SimClock& clock_;
  Agenda& agenda_;
  Calls& calls_;
  SplitMix64 random_;
  std::uint64_t started_ = 0;  // how often, which makes its id
  std::uint64_t stored_ = 0;
  std::vector<Job> jobs_;
  bool asking_ = false;
  bool healed_ = false;
  std::uint64_t generation_ = 0;
};

}  // namespace baton::sim
