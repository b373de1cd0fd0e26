// A run whose instances meet at a Redis server (6.2 or later).
//
// Every step is one script, which Redis runs alone: what is looked at cannot change before it is changed.
// Time is that of the server. Whoever waits for work does so at a list that gets an item with each
// assignment. All keys of a run begin with baton:{RUN} and are forgotten a day after they were last used.
// A master that another has taken over from, or of whose doings Redis has lost some, is told so (CONFLICT).
#pragma once

#include <memory>
#include <string>

#include "pipeline/coordinator.h"

namespace baton::pipeline {

struct RedisCoordinatorOptions {
  std::string host = "127.0.0.1";  // or the path of a socket
  int port = 6379;
  std::string password;
  std::string run;
  Duration lease = kLostAfter;
  Duration connect_timeout = seconds(5);
  Duration away_max = seconds(30);  // how long the server may be away once it was there
};

class RedisRun;

class RedisCoordinator : public DistributedCoordinator {
 public:
  explicit RedisCoordinator(const RedisCoordinatorOptions& options);
  ~RedisCoordinator() override;
  RedisCoordinator(const RedisCoordinator&) = delete;
  RedisCoordinator& operator=(const RedisCoordinator&) = delete;

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

 private:
  Status turn_away(const WorkerRegistration& worker, const std::stop_token& stop);
  const std::unique_ptr<RedisRun> run_;
};

}  // namespace baton::pipeline
