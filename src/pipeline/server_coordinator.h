// A run whose instances meet at a baton server. Nothing of it is special to the server: all is tasks.
//
//   queue                   key
//   pipeline-runs           RUN                the run; its master holds the lease, and completes it
//   pipeline:RUN            RUN/MODULE         an assignment; its result is the module's
//   pipeline:RUN:workers    RUN@INDEX-SESSION  a worker; it holds the lease while it lives
//   pipeline:RUN:signals    RUN!cancel         cancelled, with the reason as payload
//   pipeline:RUN:said                          some of what modules say, while they run
//   pipeline:RUN:own        RUN/MODULE         a result of the master's own, or a note; waits until the end
//
// A server forgets finished tasks, with their keys, after a while (retention_age): so whatever has to be
// known as long as the run is open is a task that waits.
//
// So whatever happens to master, workers or server, leases, fences and the log do here what they do for every
// task.
#pragma once

#include <memory>
#include <string>

#include "client/client.h"
#include "pipeline/coordinator.h"
#include "pipeline/server_blobs.h"

namespace baton::pipeline {

class ServerRun;

struct ServerCoordinatorOptions {
  client::ClientOptions client;
  std::string run;
  Duration lease = kLostAfter;  // a worker's is the master's, as soon as it is known
};

class ServerCoordinator : public DistributedCoordinator {
 public:
  explicit ServerCoordinator(const ServerCoordinatorOptions& options);
  ~ServerCoordinator() override;
  ServerCoordinator(const ServerCoordinator&) = delete;
  ServerCoordinator& operator=(const ServerCoordinator&) = delete;

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
  BlobStore* blobs() override { return &blobs_; }

 private:
  ServerBlobs blobs_;
  const std::shared_ptr<ServerRun> run_;  // shared with calls whose caller no longer waits
};

}  // namespace baton::pipeline
