// What the workers of a run ask of a server, and results, which the master brings too. The rest is the
// master's, in server_coordinator.cc.
#include <algorithm>
#include <utility>

#include "pipeline/server_coordinator.h"
#include "pipeline/server_run.h"
#include "pipeline/wire_text.h"

namespace baton::pipeline {
namespace {

constexpr std::size_t kExtendedAtOnce = 512;  // leases; more are refused

// A lease as a worker names it: the task, and the lease of it.
std::string name_of(const client::Held& held) { return held.task + " " + held.lease; }
client::Held held_of(const std::string& name) {
  const std::size_t space = name.find(' ');
  if (space == std::string::npos) return {name, {}};
  return {name.substr(0, space), name.substr(space + 1)};
}

// What the server says of a lease that nobody has any more.
bool is_gone(Errc code) {
  return code == Errc::lease_lost || code == Errc::lease_unknown || code == Errc::not_found;
}

}  // namespace

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
  auto held = server.be_there(registration.session, kRegistered, stop);
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
  // The lease may begin at once, so a question that waits for long would leave little of it.
  const Duration wait = std::min(seconds(1), Duration{server.lease().ms / 4});
  const std::int64_t asked_at_ms = steady_ms();
  auto tasks = server.client->lease({.worker = worker.name,
                                     .queues = {server.assignments()},
                                     .ttl = server.lease(),
                                     .wait = wait,
                                     .capabilities = worker.capabilities},
                                    stop);
  if (!tasks) return std::unexpected(tasks.error());
  if (!tasks->empty()) {
    const client::Leased& task = tasks->front();
    auto assignment = from_text<ModuleAssignment>(task.payload);
    if (!assignment) {
      // Whoever follows its task knows which module that is.
      const std::string told = to_text(unreadable({}, task.attempt, worker.index, assignment.error()));
      auto ended = server.ask<client::Verdict>(
          stop, [&](auto answer) { server.client->complete(task.held(), told, std::move(answer)); });
      if (!ended && !is_gone(ended.error().code)) return std::unexpected(ended.error());
      return Empty{};
    }
    return Assigned{std::move(*assignment), task.attempt, name_of(task.held()), asked_at_ms};
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
  if (result.lease.empty()) {  // the master's own
    auto submitted = server.submit(
        {.queue = server.own_results(), .payload = to_text(result), .key = server.key_of(result.module)},
        stop);
    if (!submitted && submitted.error().code == Errc::conflict) return server.withdraw(result, stop);
    if (!submitted) return std::unexpected(submitted.error());
    return submitted->existed ? Accepted::duplicate : Accepted::first;
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
    if (is_gone(done.error().code) || done.error().code == Errc::conflict) return Accepted::stale;
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
  if (!server.is_active && !server.presence.lease.empty()) {  // from now on it is seen to be
    // Until that is known its task may still be held under the other name, and nobody gets it.
    const auto released = server.ask<client::Verdict>(
        stop, [&](auto answer) { server.client->release(server.presence, std::move(answer)); });
    if (!released && !is_gone(released.error().code)) return std::unexpected(released.error());
    server.presence = {};
    server.is_active = true;
  }
  if (auto held = server.be_there(heartbeat.session, kActive, stop); !held) {
    if (held.error().code != Errc::conflict) return std::unexpected(held.error());
    // Whoever was silent until the run was over is no longer expected.
    if (auto run = server.run_task(stop); !run && run.error().code != Errc::not_found)
      return std::unexpected(run.error());
    const std::lock_guard lock(server.mutex);
    if (server.closed) return HeartbeatReply{.closed = server.closed};
    return failure(Errc::not_found,
                   "worker " + std::to_string(heartbeat.index) + " is not registered, or has left");
  }
  HeartbeatReply reply;
  for (std::size_t begin = 0; begin < heartbeat.leases.size(); begin += kExtendedAtOnce) {
    const std::size_t end = std::min(heartbeat.leases.size(), begin + kExtendedAtOnce);
    std::vector<client::Held> held;
    for (std::size_t i = begin; i < end; ++i) held.push_back(held_of(heartbeat.leases[i]));
    auto extended = server.ask<std::vector<Result<Duration>>>(
        stop, [&](auto answer) { server.client->extend_many(held, server.lease(), std::move(answer)); });
    if (!extended) return std::unexpected(extended.error());
    for (std::size_t i = 0; i < extended->size(); ++i) {
      if (!(*extended)[i]) reply.lost.push_back(heartbeat.leases[begin + i]);
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

}  // namespace baton::pipeline
