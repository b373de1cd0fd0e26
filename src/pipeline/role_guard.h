// Keeps master and workers to what is theirs, whatever the coordinator behind it would do.
#pragma once

#include "pipeline/coordinator.h"

namespace baton::pipeline {

enum class Role : bool { master, worker };

class RoleGuard : public DistributedCoordinator {
 public:
  // The coordinator outlives the guard.
  RoleGuard(DistributedCoordinator& behind, Role role) : behind_(behind), role_(role) {}

  Status open_run(const RunOpening& opening, std::stop_token stop) override;
  Result<RunOpening> run_opening(std::stop_token stop) override;
  Result<std::vector<std::string>> enqueued_modules(std::stop_token stop) override;
  Result<std::vector<SerializedModuleResult>> own_results(std::stop_token stop) override;
  Status enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) override;
  Status enqueue_modules(const std::vector<ModuleAssignment>& assignments, std::stop_token stop) override;
  Result<SerializedModuleResult> wait_for_result(const std::string& module, std::stop_token stop) override;
  Result<std::vector<SerializedModuleResult>> next_results(std::stop_token stop) override;
  Result<std::vector<RegisteredWorker>> get_registered_workers(std::stop_token stop) override;
  Status broadcast_cancellation(const std::string& reason, std::stop_token stop) override;
  Status close_run(const std::string& reason, std::stop_token stop) override;
  Status register_worker(const WorkerRegistration& registration, std::stop_token stop) override;
  Result<Dequeued> dequeue_module(const WorkerRegistration& worker, std::stop_token stop) override;
  Result<Accepted> publish_result(const SerializedModuleResult& result, std::stop_token stop) override;
  Result<HeartbeatReply> send_heartbeat(const WorkerHeartbeat& heartbeat, std::stop_token stop) override;
  Result<std::optional<CancellationSignal>> is_cancellation_requested(std::stop_token stop) override;
  Status say(const std::vector<Said>& said, std::stop_token stop) override;
  Result<std::vector<Said>> take_said(std::stop_token stop) override;
  BlobStore* blobs() override { return behind_.blobs(); }

 private:
  DistributedCoordinator& behind_;
  const Role role_;
};

}  // namespace baton::pipeline
