#include "pipeline/redis_coordinator.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/pause.h"
#include "base/random_name.h"
#include "pipeline/redis_run.h"
#include "pipeline/redis_scripts.h"
#include "pipeline/wire_text.h"

namespace baton::pipeline {
namespace {

using Words = RedisRun::Words;

// A lease as a worker names it: the module's name is needed to find it again.
std::string lease_name(const std::string& module, const std::string& nonce) { return nonce + " " + module; }
std::string module_of(const std::string& lease) {
  return lease.substr(std::min(lease.size(), lease.find(' ') + 1));
}

// Behind the word that says what an answer is.
Result<std::vector<SerializedModuleResult>> results_in(const Words& answer) {
  std::vector<SerializedModuleResult> results;
  for (std::size_t i = 1; i < answer.size(); ++i) {
    auto result = from_text<SerializedModuleResult>(answer[i]);
    if (!result) return std::unexpected(result.error());
    results.push_back(std::move(*result));
  }
  return results;
}

// What the scripts compare.
template <class Party>
std::string identity_of(const Party& party) {
  return std::to_string(party.protocol) + "-" + std::to_string(party.fingerprint);
}

// Likewise, of a master's whole pipeline.
std::string pipeline_of(RunOpening opening) {
  opening.session.clear();
  opening.lease.reset();
  return std::to_string(content_hash(bytes_of(to_text(opening))));
}

}  // namespace

RedisCoordinator::RedisCoordinator(const RedisCoordinatorOptions& options)
    : run_(std::make_unique<RedisRun>(options)) {}
RedisCoordinator::~RedisCoordinator() = default;

Status RedisCoordinator::open_run(const RunOpening& opening, std::stop_token stop) {
  RunOpening mine = opening;
  mine.lease = run_->options.lease;
  const auto ask = [&] {
    return run_->call(
        redis_scripts::kOpen,
        {mine.session, identity_of(mine), to_text(mine), std::to_string(mine.lease->ms), pipeline_of(mine)},
        stop);
  };
  auto answer = ask();
  while (answer && answer->front() == "another lease") {
    mine.lease = Duration{number_in((*answer)[1])};
    answer = ask();
  }
  if (!answer) return std::unexpected(answer.error());
  if (answer->front() == "over")
    return failure(Errc::conflict, "run " + run_->options.run + " is over: give each run its own id");
  if (answer->front() == "conflict")
    return failure(Errc::locked, "run " + run_->options.run +
                                     " has a master that is still there: give each run its own id");
  if (answer->front() == "another pipeline")
    return failure(Errc::conflict,
                   "run " + run_->options.run + " was begun with another pipeline: give each run its own id");
  run_->opened_by(mine.session);
  return {};
}

Result<RunOpening> RedisCoordinator::run_opening(std::stop_token stop) {
  const auto answer = run_->call(redis_scripts::kOpening, {}, stop);
  if (!answer) return std::unexpected(answer.error());
  if (answer->front() == "none") return failure(Errc::not_found, "there is no run " + run_->options.run);
  return from_text<RunOpening>((*answer)[1]);
}

Result<std::vector<std::string>> RedisCoordinator::enqueued_modules(std::stop_token stop) {
  auto answer = run_->call_as_master(redis_scripts::kEnqueued, {}, stop);
  if (!answer) return answer;
  run_->told = 0;
  answer->erase(answer->begin());
  return answer;
}

Result<std::vector<SerializedModuleResult>> RedisCoordinator::own_results(std::stop_token stop) {
  const auto answer = run_->call_as_master(redis_scripts::kOwnResults, {}, stop);
  if (!answer) return std::unexpected(answer.error());
  return results_in(*answer);
}

Status RedisCoordinator::enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) {
  SerializedModuleResult lost{
      .module = assignment.module, .attempt = assignment.attempts_max, .status = ModuleStatus::failed};
  lost.failure = ModuleFailure{.kind = FailureKind::worker_lost,
                               .message = "its worker fell silent during attempt " +
                                          std::to_string(assignment.attempts_max) + ", the last one it had"};
  Words arguments = {assignment.module, to_text(assignment),
                     std::to_string(std::min(assignment.priority, 9U)),
                     std::to_string(assignment.attempts_max), to_text(lost)};
  arguments.insert(arguments.end(), assignment.required_capabilities.begin(),
                   assignment.required_capabilities.end());
  const auto answer = run_->call_as_master(redis_scripts::kEnqueue, arguments, stop);
  if (!answer) return std::unexpected(answer.error());
  if (answer->front() == "conflict")
    return failure(Errc::conflict, assignment.module + " was enqueued before, as something else");
  return {};
}

Result<SerializedModuleResult> RedisCoordinator::wait_for_result(const std::string& module,
                                                                 std::stop_token stop) {
  for (Duration delay = milliseconds(5);; delay = std::min(delay + delay, milliseconds(200))) {
    const auto answer = run_->call_as_master(redis_scripts::kResult, {module}, stop);
    if (!answer) return std::unexpected(answer.error());
    if (answer->front() == "done") return from_text<SerializedModuleResult>((*answer)[1]);
    pause(delay, stop);
  }
}

Result<std::vector<SerializedModuleResult>> RedisCoordinator::next_results(std::stop_token stop) {
  for (;;) {
    const auto answer = run_->call_as_master(redis_scripts::kFeed, {std::to_string(run_->told.load())}, stop);
    if (!answer) return std::unexpected(answer.error());
    auto results = results_in(*answer);
    if (!results) return results;
    run_->told += results->size();
    if (!results->empty()) return results;
    if (auto waited = run_->wait_at(RedisRun::kBell, stop); !waited) return std::unexpected(waited.error());
  }
}

Result<std::vector<RegisteredWorker>> RedisCoordinator::get_registered_workers(std::stop_token stop) {
  const auto answer = run_->call_as_master(redis_scripts::kWorkers, {}, stop);
  if (!answer) return std::unexpected(answer.error());
  std::vector<RegisteredWorker> all;
  for (std::size_t i = 1; i + 2 < answer->size(); i += 3) {
    auto registration = from_text<WorkerRegistration>((*answer)[i]);
    if (!registration) return std::unexpected(registration.error());
    const std::string& about = (*answer)[i + 1];
    const std::size_t colon = about.find(':');
    auto modules = from_text<std::vector<std::string>>((*answer)[i + 2]);
    if (!modules) return std::unexpected(modules.error());
    RegisteredWorker worker{std::move(*registration),
                            WorkerStatus::connected,
                            std::move(*modules),
                            {number_in(about.substr(colon + 1))}};
    for (const WorkerStatus status : {WorkerStatus::active, WorkerStatus::executing,
                                      WorkerStatus::disconnected, WorkerStatus::timed_out}) {
      if (about.substr(0, colon) == word(status)) worker.status = status;
    }
    all.push_back(std::move(worker));
  }
  return all;
}

Status RedisCoordinator::broadcast_cancellation(const std::string& reason, std::stop_token stop) {
  const auto answer = run_->call_as_master(redis_scripts::kSignal, {"cancelled", reason}, stop);
  return answer ? Status{} : Status(std::unexpected(answer.error()));
}

Status RedisCoordinator::close_run(const std::string& reason, std::stop_token stop) {
  const auto answer = run_->call_as_master(redis_scripts::kSignal, {"closed", reason}, stop);
  return answer ? Status{} : Status(std::unexpected(answer.error()));
}

Status RedisCoordinator::register_worker(const WorkerRegistration& registration, std::stop_token stop) {
  const auto answer = run_->call(redis_scripts::kRegister,
                                 {std::to_string(registration.index), registration.session,
                                  to_text(registration), identity_of(registration)},
                                 stop);
  if (!answer) return std::unexpected(answer.error());
  if (answer->front() == "another pipeline") return turn_away(registration, stop);
  if (answer->front() == "conflict") {
    return failure(
        Errc::locked,
        "worker " + std::to_string(registration.index) +
            " is registered already, by another process that is still there: give each its own index");
  }
  return {};
}

// With what differs.
Status RedisCoordinator::turn_away(const WorkerRegistration& worker, const std::stop_token& stop) {
  const auto opening = run_opening(stop);
  if (!opening) return std::unexpected(opening.error());
  auto admitted = admit(*opening, worker);
  return admitted ? failure(Errc::conflict, "the run has another master now") : admitted;
}

Result<Dequeued> RedisCoordinator::dequeue_module(const WorkerRegistration& worker, std::stop_token stop) {
  for (;;) {
    const std::string nonce = random_name();
    Words arguments = {identity_of(worker), nonce};
    arguments.insert(arguments.end(), worker.capabilities.begin(), worker.capabilities.end());
    const std::int64_t asked_at_ms = steady_ms();
    const auto answer = run_->call(redis_scripts::kDequeue, arguments, stop);
    if (!answer) return std::unexpected(answer.error());
    if (answer->front() == "conflict") return std::unexpected(turn_away(worker, stop).error());
    if (answer->front() == "closed") return Closed{(*answer)[1]};
    if (answer->front() == "assigned") {
      auto assignment = from_text<ModuleAssignment>((*answer)[1]);
      const auto attempt = static_cast<std::uint32_t>(number_in((*answer)[2]));
      const std::string& module = (*answer)[3];
      const std::string lease = lease_name(module, nonce);
      if (assignment) return Assigned{std::move(*assignment), attempt, lease, asked_at_ms};
      SerializedModuleResult told = unreadable(module, attempt, worker.index, assignment.error());
      told.lease = lease;
      if (auto published = publish_result(told, stop); !published) return std::unexpected(published.error());
      continue;
    }
    if (auto waited = run_->wait_at(RedisRun::kWake, stop); !waited) return std::unexpected(waited.error());
  }
}

Result<Accepted> RedisCoordinator::publish_result(const SerializedModuleResult& result,
                                                  std::stop_token stop) {
  const std::string nonce = result.lease.substr(0, result.lease.find(' '));
  const Words arguments = {result.module, nonce, to_text(result)};
  const auto answer = nonce.empty() ? run_->call_as_master(redis_scripts::kPublish, arguments, stop)
                                    : run_->call(redis_scripts::kPublish, arguments, stop);
  if (!answer) return std::unexpected(answer.error());
  return answer->front() == "first"       ? Accepted::first
         : answer->front() == "duplicate" ? Accepted::duplicate
                                          : Accepted::stale;
}

Result<HeartbeatReply> RedisCoordinator::send_heartbeat(const WorkerHeartbeat& heartbeat,
                                                        std::stop_token stop) {
  Words arguments = {std::to_string(heartbeat.index), heartbeat.session, to_text(heartbeat.current_modules),
                     heartbeat.leaving ? "1" : "0"};
  for (const std::string& lease : heartbeat.leases) {
    arguments.push_back(module_of(lease));
    arguments.push_back(lease.substr(0, lease.find(' ')));
  }
  const auto answer = run_->call(redis_scripts::kHeartbeat, arguments, stop);
  if (!answer) return std::unexpected(answer.error());
  if (answer->front() == "unknown")
    return failure(Errc::not_found, "worker " + std::to_string(heartbeat.index) + " is not registered");
  if (answer->front() == "conflict")
    return failure(Errc::conflict, "another process is worker " + std::to_string(heartbeat.index) + " now");
  HeartbeatReply reply;
  if (!(*answer)[1].empty()) reply.cancelled = CancellationSignal{(*answer)[1]};
  if (!(*answer)[2].empty()) reply.closed = Closed{(*answer)[2]};
  reply.master_silent_for = {number_in((*answer)[3])};
  for (const std::string& lease : heartbeat.leases) {
    const std::string nonce = lease.substr(0, lease.find(' '));
    if (std::find(answer->begin() + 4, answer->end(), nonce) != answer->end()) reply.lost.push_back(lease);
  }
  return reply;
}

Result<std::optional<CancellationSignal>> RedisCoordinator::is_cancellation_requested(std::stop_token stop) {
  const auto answer = run_->call(redis_scripts::kCancelled, {}, stop);
  if (!answer) return std::unexpected(answer.error());
  if (answer->front() == "cancelled") return CancellationSignal{(*answer)[1]};
  return std::optional<CancellationSignal>();
}

Status RedisCoordinator::say(const std::vector<Said>& said, std::stop_token stop) {
  return run_->push(to_text(said), stop);
}

Result<std::vector<Said>> RedisCoordinator::take_said(std::stop_token stop) {
  auto texts = run_->pop(stop);
  if (!texts) return std::unexpected(texts.error());
  std::vector<Said> all;
  for (const std::string& text : *texts) {
    if (auto said = from_text<std::vector<Said>>(text)) all.insert(all.end(), said->begin(), said->end());
  }
  return all;
}

}  // namespace baton::pipeline
