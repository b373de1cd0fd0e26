// Requests on their way: who asks what, on a network that delays, loses, doubles and reorders, asked again
// until there is an answer. The retry logic here is half of the protocol.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "core/request.h"
#include "engine/engine.h"
#include "tests/sim/agenda.h"
#include "tests/sim/faults.h"
#include "tests/sim/scenario.h"
#include "tests/sim/sim_clock.h"

namespace baton::sim {

// Clients come first, then workers, then the prober.
using Party = std::uint64_t;

struct Call {
  Party party = 0;
  core::Request request;
  std::uint32_t tries = 0;
  std::uint32_t tries_max = 1;
  bool done = false;         // answered, or given up
  std::int64_t asked = 0;    // when the last try was sent
  bool loses_first = false;  // its first try is sure to be lost
};

class Calls {
 public:
  Calls(const Scenario& scenario, SimClock& clock, Agenda& agenda, Faults& faults)
      : scenario_(scenario), clock_(clock), agenda_(agenda), faults_(faults) {}

  std::uint64_t ask(Party party, core::Request request, std::uint32_t tries_max, bool loses_first = false);
  // No answer came in time: asks again, or returns true if this was the last try.
  bool timed_out(std::uint64_t call, std::uint64_t tried);
  // The coordinator answers this try.
  void answer(std::uint64_t call, std::uint64_t tried, engine::Answer answer);
  // Takes the answer that has arrived; nothing if the call is over already.
  std::optional<engine::Answer> arrived(std::uint64_t number, std::uint64_t& call);

  Call& operator[](std::uint64_t call) { return calls_[call]; }
  std::uint64_t unanswered() const { return open_; }
  void cut_off(Party party, std::uint64_t how) { cut_[party] = how; }
  void heal();  // from now on only a delay

 private:
  void send(std::uint64_t number);
  std::uint64_t roll(std::uint64_t call, std::uint64_t tried, std::uint64_t purpose) const;
  std::int64_t delay(std::uint64_t rolled) const;

  struct Underway {
    std::uint64_t call = 0;
    engine::Answer answer;
  };

  const Scenario& scenario_;
  SimClock& clock_;
  Agenda& agenda_;
  Faults& faults_;
  std::deque<Call> calls_;
  std::map<std::uint64_t, Underway> underway_;
  std::uint64_t answers_ = 0;
  std::uint64_t open_ = 0;
  std::map<Party, std::uint64_t> cut_;
  bool healed_ = false;
};

}  // namespace baton::sim
