// A run whose instances are all in this process: for tests, for trying things out, and as the plainest
// example of the contract.
//
//   MemoryExchange exchange;
//   MemoryCoordinator master(exchange), worker(exchange);
#pragma once

#include <functional>
#include <memory>

#include "pipeline/coordinator.h"

namespace baton::pipeline {

struct MemoryExchangeOptions {
  Duration lease = kLostAfter;
  std::function<Instant()> now;  // empty: the clock
};

struct MemoryRun;

// What they share. Outlives the coordinators.
class MemoryExchange {
 public:
  explicit MemoryExchange(MemoryExchangeOptions options = {});
  ~MemoryExchange();
  MemoryExchange(const MemoryExchange&) = delete;
  MemoryExchange& operator=(const MemoryExchange&) = delete;

  // For whoever gave it a clock of his own: time has passed.
  void time_has_passed();

 private:
  friend class MemoryCoordinator;
  const std::unique_ptr<MemoryRun> state_;
};

class MemoryCoordinator : public DistributedCoordinator {
 public:
  explicit MemoryCoordinator(MemoryExchange& exchange) : state_(*exchange.state_) {}

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
  BlobStore* blobs() override;

 private:
  // CONFLICT: another master has taken over from this one.
  Status stay_master() const;

  MemoryRun& state_;
  std::string session_;  // of the master, if this is one; the run's mutex guards it
};

}  // namespace baton::pipeline
