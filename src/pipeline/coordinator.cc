#include "pipeline/coordinator.h"

namespace baton::pipeline {

std::string_view word(WorkerStatus status) {
  static constexpr std::string_view kWords[] = {"connected", "active", "executing", "disconnected",
                                                "timed out"};
  return kWords[static_cast<std::size_t>(status)];
}

bool is_of_same_pipeline(RunOpening one, const RunOpening& other) {
  one.session = other.session;
  one.lease = other.lease;
  return one == other;
}

Status admit(const RunOpening& master, const WorkerRegistration& worker) {
  const std::string who = "worker " + std::to_string(worker.index);
  if (master.protocol != worker.protocol) {
    return failure(Errc::conflict, who + " speaks version " + std::to_string(worker.protocol) +
                                       " of the protocol, and the master " + std::to_string(master.protocol) +
                                       ": run the same version of baton on all machines");
  }
  if (master.fingerprint == worker.fingerprint) return {};
  const std::string what = difference(master.parts, worker.parts);
  return failure(Errc::conflict, who + " has another pipeline than the master" +
                                     (what.empty() ? "" : " (" + what + ")") +
                                     ": run the same program, with the same options, on all machines");
}

SerializedModuleResult unreadable(const std::string& module, std::uint32_t attempt, std::int32_t worker_index,
                                  const Error& why) {
  SerializedModuleResult result{
      .module = module, .attempt = attempt, .worker_index = worker_index, .status = ModuleStatus::failed};
  result.failure = ModuleFailure{
      .kind = FailureKind::decode,
      .message = "worker " + std::to_string(worker_index) + " cannot read its assignment: " + why.message};
  return result;
}

Status DistributedCoordinator::enqueue_modules(const std::vector<ModuleAssignment>& assignments,
                                               std::stop_token stop) {
  for (const ModuleAssignment& assignment : assignments) {
    if (auto done = enqueue_module(assignment, stop); !done) return done;
  }
  return {};
}

Result<RunOpening> DistributedCoordinator::run_opening(std::stop_token) {
  return failure(Errc::not_found, "this coordinator tells nothing of its run");
}

Status DistributedCoordinator::say(const std::vector<Said>&, std::stop_token) { return {}; }
Result<std::vector<Said>> DistributedCoordinator::take_said(std::stop_token) { return std::vector<Said>(); }

Result<std::vector<SerializedModuleResult>> DistributedCoordinator::next_results(std::stop_token) {
  return failure(Errc::not_found, "this coordinator has no feed of results");
}

}  // namespace baton::pipeline
