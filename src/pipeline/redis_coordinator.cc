#include "pipeline/redis_coordinator.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <utility>

#include "base/pause.h"
#include "base/random_name.h"
#include "pipeline/redis_lines.h"
#include "pipeline/redis_scripts.h"
#include "pipeline/wire_text.h"

namespace baton::pipeline {
namespace {

using Words = std::vector<std::string>;

std::unexpected<Error> stopped() { return failure(Errc::closed, "stopped"); }

// A lease as a worker names it: the module's name is needed to find it again.
std::string lease_name(const std::string& module, const std::string& nonce) { return nonce + " " + module; }
std::string module_of(const std::string& lease) {
  return lease.substr(std::min(lease.size(), lease.find(' ') + 1));
}

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
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

}  // namespace

class RedisCoordinator::Server {
 public:
  explicit Server(const RedisCoordinatorOptions& options) : options_(options) {
    for (const char* part : {"run", "modules", "waiting", "leases", "feed", "wake", "bell", "workers",
                             "assignments", "results"}) {
      keys_.push_back("baton:{" + options.run + "}:" + part);
    }
  }

  // Runs a script. The first word of the answer says what it came to.
  Result<Words> call(const char* script, const Words& arguments, const std::stop_token& stop) {
    if (stop.stop_requested()) return stopped();
    Words command = {"EVAL", std::string(redis_scripts::kCommon) + script, std::to_string(keys_.size())};
    command.insert(command.end(), keys_.begin(), keys_.end());
    command.push_back(std::to_string(options_.lease.ms));
    command.insert(command.end(), arguments.begin(), arguments.end());
    return lines_.say(command, stop);
  }

  // Until somebody puts something into the list, or a while is over; and then it is worth looking again.
  Status wait_at(std::size_t key, const std::stop_token& stop) {
    auto answer = lines_.say({"BLPOP", keys_[key], "0.2"}, stop);
    return answer ? Status{} : Status(std::unexpected(answer.error()));
  }
  static constexpr std::size_t kWake = 5;  // for workers
  static constexpr std::size_t kBell = 6;  // for the master

  // What is said while modules run: the last thousand pieces that nobody has taken.
  Status push(const std::string& text, const std::stop_token& stop) {
    constexpr char kPush[] =
        "redis.call('RPUSH', KEYS[1], ARGV[1]) redis.call('LTRIM', KEYS[1], -1000, -1) "
        "redis.call('EXPIRE', KEYS[1], 86400) return {'ok'}";
    auto answer = lines_.say({"EVAL", kPush, "1", said_key(), text}, stop);
    return answer ? Status{} : Status(std::unexpected(answer.error()));
  }
  Result<Words> pop(const std::stop_token& stop) { return lines_.say({"LPOP", said_key(), "100"}, stop); }

  const RedisCoordinatorOptions options_;
  std::atomic<std::size_t> told = 0;  // of the feed

 private:
  std::string said_key() const { return "baton:{" + options_.run + "}:said"; }

  Words keys_;
  RedisLines lines_{options_};
};

RedisCoordinator::RedisCoordinator(const RedisCoordinatorOptions& options)
    : server_(std::make_unique<Server>(options)) {}
RedisCoordinator::~RedisCoordinator() = default;

Status RedisCoordinator::open_run(const RunOpening& opening, std::stop_token stop) {
  RunOpening mine = opening;
  mine.lease = server_->options_.lease;
  const auto answer =
      server_->call(redis_scripts::kOpen, {mine.session, identity_of(mine), to_text(mine)}, stop);
  if (!answer) return std::unexpected(answer.error());
  if (answer->front() == "over")
    return failure(Errc::conflict, "run " + server_->options_.run + " is over: give each run its own id");
  if (answer->front() == "conflict")
    return failure(Errc::locked, "run " + server_->options_.run +
                                     " has a master that is still there: give each run its own id");
  if (answer->front() == "another pipeline")
    return failure(Errc::conflict, "run " + server_->options_.run +
                                       " was begun with another pipeline: give each run its own id");
  return {};
}

Result<RunOpening> RedisCoordinator::run_opening(std::stop_token stop) {
  const auto answer = server_->call(redis_scripts::kOpening, {}, stop);
  if (!answer) return std::unexpected(answer.error());
  if (answer->front() == "none") return failure(Errc::not_found, "there is no run " + server_->options_.run);
  return from_text<RunOpening>((*answer)[1]);
}

Result<std::vector<std::string>> RedisCoordinator::enqueued_modules(std::stop_token stop) {
  auto answer = server_->call(redis_scripts::kEnqueued, {}, stop);
  if (!answer) return answer;
  server_->told = 0;
  answer->erase(answer->begin());
  return answer;
}

Result<std::vector<SerializedModuleResult>> RedisCoordinator::own_results(std::stop_token stop) {
  const auto answer = server_->call(redis_scripts::kOwnResults, {}, stop);
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
  const auto answer = server_->call(redis_scripts::kEnqueue, arguments, stop);
  if (!answer) return std::unexpected(answer.error());
  if (answer->front() == "conflict")
    return failure(Errc::conflict, assignment.module + " was enqueued before, as something else");
  return {};
}

Result<SerializedModuleResult> RedisCoordinator::wait_for_result(const std::string& module,
                                                                 std::stop_token stop) {
  for (Duration delay = milliseconds(5);; delay = std::min(delay + delay, milliseconds(200))) {
    const auto answer = server_->call(redis_scripts::kResult, {module}, stop);
    if (!answer) return std::unexpected(answer.error());
    if (answer->front() == "done") return from_text<SerializedModuleResult>((*answer)[1]);
    pause(delay, stop);
  }
}

Result<std::vector<SerializedModuleResult>> RedisCoordinator::next_results(std::stop_token stop) {
  for (;;) {
    const auto answer = server_->call(redis_scripts::kFeed, {std::to_string(server_->told.load())}, stop);
    if (!answer) return std::unexpected(answer.error());
    auto results = results_in(*answer);
    if (!results) return results;
    server_->told += results->size();
    if (!results->empty()) return results;
    if (auto waited = server_->wait_at(Server::kBell, stop); !waited) return std::unexpected(waited.error());
  }
}

Result<std::vector<RegisteredWorker>> RedisCoordinator::get_registered_workers(std::stop_token stop) {
  const auto answer = server_->call(redis_scripts::kWorkers, {}, stop);
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
                            {number(about.substr(colon + 1))}};
    for (const WorkerStatus status : {WorkerStatus::active, WorkerStatus::executing,
                                      WorkerStatus::disconnected, WorkerStatus::timed_out}) {
      if (about.substr(0, colon) == word(status)) worker.status = status;
    }
    all.push_back(std::move(worker));
  }
  return all;
}

Status RedisCoordinator::broadcast_cancellation(const std::string& reason, std::stop_token stop) {
  const auto answer = server_->call(redis_scripts::kSignal, {"cancelled", reason}, stop);
  return answer ? Status{} : Status(std::unexpected(answer.error()));
}

Status RedisCoordinator::close_run(const std::string& reason, std::stop_token stop) {
  const auto answer = server_->call(redis_scripts::kSignal, {"closed", reason}, stop);
  return answer ? Status{} : Status(std::unexpected(answer.error()));
}

Status RedisCoordinator::register_worker(const WorkerRegistration& registration, std::stop_token stop) {
  const auto answer = server_->call(redis_scripts::kRegister,
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
    const auto answer = server_->call(redis_scripts::kDequeue, arguments, stop);
    if (!answer) return std::unexpected(answer.error());
    if (answer->front() == "conflict") return std::unexpected(turn_away(worker, stop).error());
    if (answer->front() == "closed") return Closed{(*answer)[1]};
    if (answer->front() == "assigned") {
      auto assignment = from_text<ModuleAssignment>((*answer)[1]);
      const auto attempt = static_cast<std::uint32_t>(number((*answer)[2]));
      const std::string& module = (*answer)[3];
      const std::string lease = lease_name(module, nonce);
      if (assignment) return Assigned{std::move(*assignment), attempt, lease};
      SerializedModuleResult told = unreadable(module, attempt, worker.index, assignment.error());
      told.lease = lease;
      if (auto published = publish_result(told, stop); !published) return std::unexpected(published.error());
      continue;
    }
    if (auto waited = server_->wait_at(Server::kWake, stop); !waited) return std::unexpected(waited.error());
  }
}

Result<Accepted> RedisCoordinator::publish_result(const SerializedModuleResult& result,
                                                  std::stop_token stop) {
  const std::string nonce = result.lease.substr(0, result.lease.find(' '));
  const auto answer = server_->call(redis_scripts::kPublish, {result.module, nonce, to_text(result)}, stop);
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
  const auto answer = server_->call(redis_scripts::kHeartbeat, arguments, stop);
  if (!answer) return std::unexpected(answer.error());
  if (answer->front() == "unknown")
    return failure(Errc::not_found, "worker " + std::to_string(heartbeat.index) + " is not registered");
  if (answer->front() == "conflict")
    return failure(Errc::conflict, "another process is worker " + std::to_string(heartbeat.index) + " now");
  HeartbeatReply reply;
  if (!(*answer)[1].empty()) reply.cancelled = CancellationSignal{(*answer)[1]};
  if (!(*answer)[2].empty()) reply.closed = Closed{(*answer)[2]};
  reply.master_silent_for = {number((*answer)[3])};
  for (const std::string& lease : heartbeat.leases) {
    const std::string nonce = lease.substr(0, lease.find(' '));
    if (std::find(answer->begin() + 4, answer->end(), nonce) != answer->end()) reply.lost.push_back(lease);
  }
  return reply;
}

Result<std::optional<CancellationSignal>> RedisCoordinator::is_cancellation_requested(std::stop_token stop) {
  const auto answer = server_->call(redis_scripts::kCancelled, {}, stop);
  if (!answer) return std::unexpected(answer.error());
  if (answer->front() == "cancelled") return CancellationSignal{(*answer)[1]};
  return std::optional<CancellationSignal>();
}

Status RedisCoordinator::say(const std::vector<Said>& said, std::stop_token stop) {
  return server_->push(to_text(said), stop);
}

Result<std::vector<Said>> RedisCoordinator::take_said(std::stop_token stop) {
  auto texts = server_->pop(stop);
  if (!texts) return std::unexpected(texts.error());
  std::vector<Said> all;
  for (const std::string& text : *texts) {
    if (auto said = from_text<std::vector<Said>>(text)) all.insert(all.end(), said->begin(), said->end());
  }
  return all;
}

}  // namespace baton::pipeline
