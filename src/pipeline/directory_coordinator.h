// A run whose instances share a folder, on a network file system or on one machine, and nothing else.
//
//   run                       the opening; master: touched while it is there; cancelled, closed: the reasons
//   masters/NUMBER            each that has had the run; whoever makes the next one has it, or closes it
//   workers/INDEX             registration; touched by each heartbeat
//   queue/P-NUMBER-ATTEMPT-MODULE     an assignment that waits; P is 9 less the priority
//   leased/…-SESSION                  the same, held by a worker, which touches it
//   ended/MODULE              which lease brought the result
//   results/…-SESSION         what it was, written before
//   blobs/                    artifacts and large values
//   said/                     what modules say while they run; the master removes what it has read
//
// Whoever renames a file first has it: a worker from queue/ to leased/, and from there either the worker to
// ended/ or, when it was not touched for too long, whoever notices back to queue/. Time is that of the file
// system, so clocks of machines do not matter.
#pragma once

#include <memory>
#include <string>

#include "pipeline/coordinator.h"
#include "pipeline/folder_blobs.h"

namespace baton::pipeline {

class DirectoryRun;

struct DirectoryCoordinatorOptions {
  std::string directory;  // of the run; is made if it is not there
  Duration lease = kLostAfter;
  Duration poll = milliseconds(20);  // and up to ten times that, while nothing happens
};

class DirectoryCoordinator : public DistributedCoordinator {
 public:
  explicit DirectoryCoordinator(const DirectoryCoordinatorOptions& options);
  ~DirectoryCoordinator() override;
  DirectoryCoordinator(const DirectoryCoordinator&) = delete;
  DirectoryCoordinator& operator=(const DirectoryCoordinator&) = delete;

  Status open_run(const RunOpening& opening, std::stop_token stop) override;
  Result<RunOpening> run_opening(std::stop_token stop) override;
  Result<std::vector<std::string>> enqueued_modules(std::stop_token stop) override;
  Result<std::vector<SerializedModuleResult>> own_results(std::stop_token stop) override;
  Status enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) override;
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
  const std::unique_ptr<DirectoryRun> folder_;
  FolderBlobs blobs_;
};

}  // namespace baton::pipeline
