#include "pipeline/server_coordinator.h"

#include <algorithm>
#include <utility>

#include "pipeline/server_run.h"
#include "pipeline/wire_text.h"

namespace baton::pipeline {
namespace {

constexpr std::size_t kRunBytesMax = 60;

std::unexpected<Error> stopped() { return failure(Errc::closed, "stopped"); }

// A lease as a worker names it: the task, and the lease of it.
std::string name_of(const client::Held& held) { return held.task + " " + held.lease; }
client::Held held_of(const std::string& name) {
  const std::size_t space = name.find(' ');
  if (space == std::string::npos) return {name, {}};
  return {name.substr(0, space), name.substr(space + 1)};
}

}  // namespace

ServerCoordinator::ServerCoordinator(const ServerCoordinatorOptions& options)
    : blobs_(options.client, options.run),
      run_(std::make_shared<ServerRun>(options.client, options.run, options.lease)) {}

// What is on its way ends here: the client's own thread must not be the last to know of it.
ServerCoordinator::~ServerCoordinator() { run_->client.reset(); }

Status ServerCoordinator::open_run(const RunOpening& opening, std::stop_token stop) {
  ServerRun& server = *run_;
  if (server.run.empty() || server.run.size() > kRunBytesMax)
    return failure(Errc::invalid_request, "a run's id is 1 to 60 characters");
  const std::string mine = "run:" + server.run;
  RunOpening lasting = opening;
  lasting.session.clear();  // the next master of this run has another
  auto submitted = server.submit({.queue = "pipeline-runs",
                                  .payload = to_text(lasting),
                                  .key = server.run,
                                  .options = {.capabilities = {mine}, .max_attempts = kManyAttempts}},
                                 stop);
  if (!submitted && submitted.error().code == Errc::conflict) {
    return failure(Errc::conflict,
                   "run " + server.run + " was begun with another pipeline: give each run its own id");
  }
  if (!submitted) return std::unexpected(submitted.error());
  auto held = server.hold(server.run_held,
                          {.worker = "master-" + opening.session,
                           .queues = {"pipeline-runs"},
                           .ttl = server.lease,
                           .capabilities = {mine}},
                          stop);
  if (!held && held.error().code == Errc::conflict) {
    auto task = server.run_task(stop);
    if (task && task->view.has_ended())
      return failure(Errc::conflict, "run " + server.run + " is over: give each run its own id");
    return failure(Errc::conflict,
                   "run " + server.run + " has a master that is still there: give each run its own id");
  }
  server.extended_at = steady_ms();
  return held;
}

Result<RunOpening> ServerCoordinator::run_opening(std::stop_token stop) {
  auto task = run_->get(run_->run, stop);
  if (!task) return std::unexpected(task.error());
  return from_text<RunOpening>(task->payload);
}

Result<std::vector<std::string>> ServerCoordinator::enqueued_modules(std::stop_token stop) {
  auto tasks = run_->list(run_->assignments(), "", stop);
  if (!tasks) return std::unexpected(tasks.error());
  std::vector<std::string> all;
  for (const client::TaskView& view : *tasks) {
    auto module = run_->module_of(view, stop);
    if (!module) return std::unexpected(module.error());
    run_->follow(*module);
    all.push_back(std::move(*module));
  }
  return all;
}

Status ServerCoordinator::enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) {
  return enqueue_modules({assignment}, std::move(stop));
}

Status ServerCoordinator::enqueue_modules(const std::vector<ModuleAssignment>& assignments,
                                          std::stop_token stop) {
  ServerRun& server = *run_;
  if (stop.stop_requested()) return stopped();
  std::vector<Question<client::Submitted>> questions(assignments.size());
  for (std::size_t i = 0; i < assignments.size(); ++i) {
    const ModuleAssignment& one = assignments[i];
    server.client->submit({.queue = server.assignments(),
                           .payload = to_text(one),
                           .key = server.key_of(one.module),
                           .options = {.priority = one.priority,
                                       .capabilities = one.required_capabilities,
                                       .max_attempts = one.attempts_max}},
                          questions[i].answer());
  }
  for (std::size_t i = 0; i < assignments.size(); ++i) {
    auto submitted = questions[i].wait(stop);
    if (!submitted && submitted.error().code == Errc::conflict)
      return failure(Errc::conflict, assignments[i].module + " was enqueued before, as something else");
    if (!submitted && submitted.error().code == Errc::too_large) {
      return failure(Errc::too_large,
                     "the assignment of " + assignments[i].module +
                         ", with the results that it needs, is too large: " + submitted.error().message);
    }
    if (!submitted) return std::unexpected(submitted.error());
    server.follow(assignments[i].module);
  }
  return {};
}

Result<SerializedModuleResult> ServerCoordinator::wait_for_result(const std::string& module,
                                                                  std::stop_token stop) {
  ServerRun& server = *run_;
  for (;;) {
    auto task = server.ask<client::Task>(stop, [&](auto answer) {
      server.client->wait(ServerRun::named(server.key_of(module)), kServerWait, std::move(answer));
    });
    if (!task) return std::unexpected(task.error());
    if (task->view.has_ended()) return ServerRun::result_of(*task, module);
  }
}

Result<std::vector<SerializedModuleResult>> ServerCoordinator::next_results(std::stop_token stop) {
  ServerRun& server = *run_;
  std::unique_lock lock(server.mutex);
  server.changed.wait(lock, stop, [&] { return !server.arrived.empty() || server.feed_failed; });
  if (!server.arrived.empty()) return std::exchange(server.arrived, {});
  if (server.feed_failed) return std::unexpected(*server.feed_failed);
  return stopped();
}

Result<std::vector<RegisteredWorker>> ServerCoordinator::get_registered_workers(std::stop_token stop) {
  ServerRun& server = *run_;
  if (!server.run_held.lease.empty() && steady_ms() - server.extended_at > server.lease.ms / 3) {
    server.extended_at = steady_ms();
    auto held = server.hold(server.run_held,
                            {.worker = "master",
                             .queues = {"pipeline-runs"},
                             .ttl = server.lease,
                             .capabilities = {"run:" + server.run}},
                            stop);
    if (!held) return std::unexpected(held.error());
  }
  return server.registered(stop);
}

Status ServerCoordinator::broadcast_cancellation(const std::string& reason, std::stop_token stop) {
  ServerRun& server = *run_;
  auto submitted =
      server.submit({.queue = server.signals(), .payload = reason, .key = server.cancel_key()}, stop);
  if (!submitted && submitted.error().code != Errc::conflict) return std::unexpected(submitted.error());
  return {};  // a conflict: there was another reason before
}

Status ServerCoordinator::close_run(const std::string& reason, std::stop_token stop) {
  ServerRun& server = *run_;
  auto closed = server.ask<client::Verdict>(
      stop, [&](auto answer) { server.client->complete(server.run_held, reason, std::move(answer)); });
  if (!closed) return std::unexpected(closed.error());
  // It has been heard of, or nobody is left to hear of it.
  (void)server.ask<void>(stop, [&](auto answer) {
    server.client->cancel(ServerRun::named(server.cancel_key()), {}, {}, std::move(answer));
  });
  return {};
}

Status ServerCoordinator::register_worker(const WorkerRegistration& registration, std::stop_token stop) {
  ServerRun& server = *run_;
  if (auto admitted = server.admit(registration, stop); !admitted) return admitted;
  const auto refusal = [&] {
    return failure(
        Errc::locked,
        "worker " + std::to_string(registration.index) +
            " is registered already, by another process that is still there: give each its own index");
  };
  auto taken = server.is_taken(registration.index, registration.session, stop);
  if (!taken) return std::unexpected(taken.error());
  if (*taken) return refusal();
  const std::string key = server.run + "@" + std::to_string(registration.index) + "-" + registration.session;
  auto submitted = server.submit(
      {.queue = server.workers(),
       .payload = to_text(registration),
       .key = key,
       .options = {.capabilities = {"session:" + registration.session}, .max_attempts = kManyAttempts}},
      stop);
  if (!submitted) return std::unexpected(submitted.error());
  auto held = server.hold(server.presence, server.presence_of(registration.session, kRegistered), stop);
  if (!held) return held;
  // Another may have come at the same moment; only one of the two finds the other before itself.
  taken = server.is_taken(registration.index, registration.session, stop);
  if (!taken) return std::unexpected(taken.error());
  if (!*taken) return {};
  (void)server.ask<client::Verdict>(stop, [&](auto answer) {
    server.client->complete(std::exchange(server.presence, {}), "another has its index", std::move(answer));
  });
  return refusal();
}

Result<Dequeued> ServerCoordinator::dequeue_module(const WorkerRegistration& worker, std::stop_token stop) {
  ServerRun& server = *run_;
  if (auto admitted = server.admit(worker, stop); !admitted) return std::unexpected(admitted.error());
  auto tasks = server.client->lease({.worker = worker.name,
                                     .queues = {server.assignments()},
                                     .ttl = server.lease,
                                     .wait = seconds(1),
                                     .capabilities = worker.capabilities},
                                    stop);
  if (!tasks) return std::unexpected(tasks.error());
  if (!tasks->empty()) {
    const client::Leased& task = tasks->front();
    auto assignment = from_text<ModuleAssignment>(task.payload);
    if (!assignment)
      return failure(Errc::corrupt, "an assignment that cannot be read: " + assignment.error().message);
    return Assigned{std::move(*assignment), task.attempt, name_of(task.held())};
  }
  if (auto run = server.run_task(stop); !run && run.error().code != Errc::not_found)
    return std::unexpected(run.error());
  const std::lock_guard lock(server.mutex);
  if (server.closed) return *server.closed;
  return Empty{};
}

Result<Accepted> ServerCoordinator::publish_result(const SerializedModuleResult& result,
                                                   std::stop_token stop) {
  ServerRun& server = *run_;
  if (result.lease.empty()) {  // the master's own: handed in and completed in one go, by whoever gets it
    auto submitted = server.submit(
        {.queue = server.own_results(), .payload = to_text(result), .key = server.key_of(result.module)},
        stop);
    if (!submitted && submitted.error().code == Errc::conflict) return Accepted::stale;
    if (!submitted) return std::unexpected(submitted.error());
    if (submitted->existed) return Accepted::duplicate;
    auto tasks = server.client->lease(
        {.worker = "master", .queues = {server.own_results()}, .ttl = server.lease}, stop);
    if (!tasks) return std::unexpected(tasks.error());
    for (const client::Leased& one : *tasks) {
      auto done = server.ask<client::Verdict>(
          stop, [&](auto answer) { server.client->complete(one.held(), one.payload, std::move(answer)); });
      if (!done) return std::unexpected(done.error());
    }
    return Accepted::first;
  }
  {
    const std::lock_guard lock(server.mutex);
    if (const auto known = server.published.find(result.lease); known != server.published.end()) {
      return known->second == result ? Accepted::duplicate : Accepted::stale;
    }
  }
  auto done = server.ask<client::Verdict>(stop, [&](auto answer) {
    server.client->complete(held_of(result.lease), to_text(result), std::move(answer));
  });
  if (!done) {
    const Errc code = done.error().code;
    if (code == Errc::lease_lost || code == Errc::lease_unknown || code == Errc::conflict ||
        code == Errc::not_found)
      return Accepted::stale;
    return std::unexpected(done.error());
  }
  if (done->cancelled) return Accepted::stale;
  const std::lock_guard lock(server.mutex);
  constexpr std::size_t kRemembered = 1024;
  if (server.published.size() >= kRemembered) server.published.erase(server.published.begin());
  server.published.emplace(result.lease, result);
  return Accepted::first;
}

Result<HeartbeatReply> ServerCoordinator::send_heartbeat(const WorkerHeartbeat& heartbeat,
                                                         std::stop_token stop) {
  ServerRun& server = *run_;
  auto replaced = server.is_taken(heartbeat.index, heartbeat.session, stop);
  if (!replaced) return std::unexpected(replaced.error());
  if (*replaced) {
    return failure(Errc::conflict, "another process is worker " + std::to_string(heartbeat.index) + " now");
  }
  if (!std::exchange(server.is_active, true)) {  // from now on it is seen to be
    (void)server.ask<client::Verdict>(
        stop, [&](auto answer) { server.client->release(server.presence, std::move(answer)); });
    server.presence = {};
  }
  const client::Lease mine = server.presence_of(heartbeat.session, kActive);
  if (auto held = server.hold(server.presence, mine, stop); !held) {
    if (held.error().code != Errc::conflict) return std::unexpected(held.error());
    return failure(Errc::not_found,
                   "worker " + std::to_string(heartbeat.index) + " is not registered, or has left");
  }
  HeartbeatReply reply;
  std::vector<client::Held> held;
  for (const std::string& lease : heartbeat.leases) held.push_back(held_of(lease));
  if (!held.empty()) {
    auto extended = server.ask<std::vector<Result<Duration>>>(
        stop, [&](auto answer) { server.client->extend_many(held, server.lease, std::move(answer)); });
    if (!extended) return std::unexpected(extended.error());
    for (std::size_t i = 0; i < extended->size(); ++i) {
      if (!(*extended)[i]) reply.lost.push_back(heartbeat.leases[i]);
    }
  }
  if (heartbeat.leaving)
    (void)server.ask<client::Verdict>(
        stop, [&](auto answer) { server.client->complete(server.presence, "left", std::move(answer)); });
  auto cancelled = is_cancellation_requested(stop);
  if (!cancelled) return std::unexpected(cancelled.error());
  reply.cancelled = std::move(*cancelled);
  auto run = server.run_task(stop);
  if (!run && run.error().code != Errc::not_found) return std::unexpected(run.error());
  const std::lock_guard lock(server.mutex);
  reply.closed = server.closed;
  const bool is_missed = run && !run->view.has_ended() && run->view.state != "leased";
  reply.master_silent_for = server.master_silence(is_missed);
  return reply;
}

Result<std::optional<CancellationSignal>> ServerCoordinator::is_cancellation_requested(std::stop_token stop) {
  auto signal = run_->get(run_->cancel_key(), stop);
  if (signal) return CancellationSignal{signal->payload};
  if (signal.error().code == Errc::not_found) return std::optional<CancellationSignal>();
  return std::unexpected(signal.error());
}

Status ServerCoordinator::say(const std::vector<Said>& said, std::stop_token stop) {
  auto submitted =
      run_->submit({.queue = run_->said(), .payload = to_text(said), .key = {}, .options = {}}, stop);
  if (!submitted) return std::unexpected(submitted.error());
  return {};
}

Result<std::vector<Said>> ServerCoordinator::take_said(std::stop_token stop) {
  ServerRun& server = *run_;
  auto tasks = server.client->lease(
      {.worker = "master", .queues = {server.said()}, .count = 100, .ttl = server.lease, .capabilities = {}},
      stop);
  if (!tasks) return std::unexpected(tasks.error());
  std::vector<Said> all;
  for (const client::Leased& task : *tasks) {
    if (auto said = from_text<std::vector<Said>>(task.payload))
      all.insert(all.end(), said->begin(), said->end());
    server.client->complete(task.held(), {}, [](const Result<client::Verdict>&) {});
  }
  return all;
}

}  // namespace baton::pipeline
