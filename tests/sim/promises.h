// What the coordinator has told the world, each answer held against the log: I2, I4 and I17 to I20.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "core/request.h"
#include "engine/engine.h"
#include "tests/sim/history.h"

namespace baton::sim {

class Promises {
 public:
  // The answer leaves the process. `durable` is what the disk was really given and said to have.
  void leave(const core::Request& request, const engine::Answer& answer, Instant decided_at, Lsn durable,
             const History& history);

  Lsn acknowledged() const { return acknowledged_; }
  // The canary's lie: this entry was acknowledged.
  void forge(Lsn lsn) { acknowledged_ = lsn; }
  // Loss was legal and happened: nothing that was told counts any more.
  void forget(Lsn last);

 private:
  void check(const core::SubmitTask& request, const engine::Answer& answer, const History& history);
  void check(const core::LeaseTask& request, const engine::Answer& answer, const History& history);
  void check(const core::ExtendLease& request, const engine::Answer& answer, const History& history);
  void check(const core::CompleteTask& request, const engine::Answer& answer, const History& history);
  void check(const core::FailTask& request, const engine::Answer& answer, const History& history);
  void check(const core::ReleaseTask& request, const engine::Answer& answer, const History& history);
  template <class Other>
  void check(const Other&, const engine::Answer&, const History&) {}
  void check_ending(const core::LeaseId& lease, char kind, std::uint64_t content,
                    const engine::Answer& answer, const History& history);

  Lsn acknowledged_ = 0;
  Instant decided_at_;
  std::map<std::tuple<core::LeaseId, char, std::uint64_t>, int> said_;  // to an ending: how it was answered
  std::set<core::LeaseId> lost_;                                        // leases said to be lost
  std::map<core::TaskId, std::pair<core::Epoch, Lsn>> tokens_;          // the largest told for each task
};

}  // namespace baton::sim
