// A worker: asks for tasks, keeps its leases alive, ends them. Some crash, some stall past their expiry and
// come back as if nothing had happened, some say everything twice, some lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/request.h"
#include "engine/engine.h"
#include "tests/sim/calls.h"
#include "tests/sim/sim_disk.h"

namespace baton::sim {

inline constexpr const char* kNamespace = "sim";

enum class WorkerKind : std::uint8_t { honest, crashing, stalling, doubling, lying };

class Worker {
 public:
  Worker(std::uint64_t index, Party party, WorkerKind kind, const Scenario& scenario, SimClock& clock,
         Agenda& agenda, Calls& calls, Faults& faults);

  void wake(std::uint64_t generation);
  void answered(const Call& call, const engine::Answer& answer);
  void unanswered(const Call& call);
  // From now on it is honest, quick, and takes whatever there is.
  void become_honest();

  const std::string& name() const { return name_; }
  const core::Capabilities& capabilities() const { return capabilities_; }
  std::uint32_t capacity() const { return capacity_; }
  std::uint64_t pulls_answered() const { return pulls_answered_; }  // since it became honest

 private:
  struct Job {
    core::TaskId task;
    core::LeaseId lease;
    std::uint32_t attempt = 0;
    std::int64_t extend_at = 0;
    std::int64_t finish_at = 0;
    bool ending = false;  // told the coordinator, waiting for the answer
  };
  void crash();
  void pull();
  void extend(Job& job);
  void finish(Job& job);
  void lie(const Job& job);
  void plan(std::int64_t at);
  void take(const core::Granted& granted, std::int64_t asked);
  Job* find(const core::LeaseId& lease);

  const std::uint64_t index_;
  const Party party_;
  WorkerKind kind_;
  const Scenario& scenario_;
  SimClock& clock_;
  Agenda& agenda_;
  Calls& calls_;
  Faults& faults_;
  SplitMix64 random_;
  std::string name_;
  core::Capabilities capabilities_;
  std::uint32_t capacity_;
  std::vector<Job> jobs_;
  core::LeaseId overheard_;  // a lease of an earlier job, to lie with
  std::uint64_t generation_ = 0;
  bool pulling_ = false;
  std::uint64_t pulls_answered_ = 0;
  bool healed_ = false;
};

}  // namespace baton::sim
