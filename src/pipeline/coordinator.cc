#include "pipeline/coordinator.h"

namespace baton::pipeline {

std::string_view word(WorkerStatus status) {
  static constexpr std::string_view kWords[] = {"connected", "active", "executing", "disconnected",
                                                "timed out"};
  return kWords[static_cast<std::size_t>(status)];
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
