#include "pipeline/memory_coordinator.h"

#include <algorithm>
#include <utility>

#include "pipeline/graph.h"
#include "pipeline/memory_run.h"

namespace baton::pipeline {
namespace {

std::unexpected<Error> stopped() { return failure(Errc::closed, "stopped"); }

}  // namespace

MemoryExchange::MemoryExchange(MemoryExchangeOptions options)
    : state_(std::make_unique<MemoryRun>(std::move(options))) {}
MemoryExchange::~MemoryExchange() = default;

void MemoryExchange::time_has_passed() {
  const std::lock_guard lock(state_->mutex);
  state_->expire();
  state_->results_changed.notify_all();
}

BlobStore* MemoryCoordinator::blobs() { return &state_.blobs; }

Status MemoryCoordinator::open_run(const RunOpening& opening, std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
  if (state_.closed) return failure(Errc::conflict, "this run is over: give each run its own id");
  const bool is_there = state_.master && state_.now() - state_.master_heard_of <= state_.options.lease;
  if (is_there && state_.master->session != opening.session) {
    return failure(Errc::locked, "this run has a master that is still there: give each run its own id");
  }
  if (state_.master && !is_of_same_pipeline(opening, *state_.master))
    return failure(Errc::conflict, "this run was begun with another pipeline: give each run its own id");
  state_.master = opening;
  state_.master->lease = state_.options.lease;
  session_ = opening.session;
  state_.master_heard_of = state_.now();
  return {};
}

Status MemoryCoordinator::stay_master() const {
  if (session_.empty() || state_.master->session == session_) return {};
  return failure(Errc::conflict, "another master has taken over this run");
}

Result<RunOpening> MemoryCoordinator::run_opening(std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
  if (!state_.master) return failure(Errc::not_found, "the run has no master yet");
  return *state_.master;
}

Result<std::vector<std::string>> MemoryCoordinator::enqueued_modules(std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
  std::vector<std::string> all;
  state_.untold.clear();
  for (const auto& [module, entry] : state_.entries) {
    if (entry.number == 0) continue;  // the master's own
    all.push_back(module);
    if (entry.phase == Phase::done) state_.untold.push_back(entry.result);
  }
  state_.results_changed.notify_all();
  return all;
}

Result<std::vector<SerializedModuleResult>> MemoryCoordinator::own_results(std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
  std::vector<SerializedModuleResult> all;
  for (const auto& [module, entry] : state_.entries) {
    if (entry.number == 0 && entry.phase == Phase::done) all.push_back(entry.result);
  }
  return all;
}

Status MemoryCoordinator::enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) {
  return enqueue_modules({assignment}, std::move(stop));
}

Status MemoryCoordinator::enqueue_modules(const std::vector<ModuleAssignment>& assignments,
                                          std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
  if (auto held = stay_master(); !held) return held;
  if (state_.closed) return failure(Errc::wrong_state, "the run is closed: " + state_.closed->reason);
  for (const ModuleAssignment& assignment : assignments) {
    const auto [entry, is_new] = state_.entries.try_emplace(assignment.module);
    if (!is_new) {
      if (entry->second.assignment == assignment) continue;
      return failure(Errc::conflict, assignment.module + " was enqueued before, as something else");
    }
    entry->second.assignment = assignment;
    entry->second.number = ++state_.numbers;
    state_.put(assignment.module, entry->second);
  }
  return {};
}

Result<SerializedModuleResult> MemoryCoordinator::wait_for_result(const std::string& module,
                                                                  std::stop_token stop) {
  std::unique_lock lock(state_.mutex);
  for (;;) {
    state_.expire();
    const auto entry = state_.entries.find(module);
    if (entry != state_.entries.end() && entry->second.phase == Phase::done) return entry->second.result;
    if (stop.stop_requested()) return stopped();
    state_.wait(lock, state_.results_changed, stop);
  }
}

Result<std::vector<SerializedModuleResult>> MemoryCoordinator::next_results(std::stop_token stop) {
  std::unique_lock lock(state_.mutex);
  for (;;) {
    state_.expire();
    if (!state_.untold.empty()) return std::exchange(state_.untold, {});
    if (stop.stop_requested()) return stopped();
    state_.wait(lock, state_.results_changed, stop);
  }
}

Result<std::vector<RegisteredWorker>> MemoryCoordinator::get_registered_workers(std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
  if (auto held = stay_master(); !held) return std::unexpected(held.error());
  state_.master_heard_of = state_.now();
  std::vector<RegisteredWorker> all;
  for (const auto& [index, worker] : state_.workers) {
    WorkerStatus status = WorkerStatus::connected;
    if (worker.has_left)
      status = WorkerStatus::disconnected;
    else if (!state_.is_alive(worker))
      status = WorkerStatus::timed_out;
    else if (!worker.current_modules.empty())
      status = WorkerStatus::executing;
    else if (worker.was_active)
      status = WorkerStatus::active;
    all.push_back({worker.registration, status, worker.current_modules, state_.now() - worker.heard_of});
  }
  return all;
}

Status MemoryCoordinator::broadcast_cancellation(const std::string& reason, std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
  if (auto held = stay_master(); !held) return held;
  if (!state_.cancelled) state_.cancelled = CancellationSignal{reason};
  return {};
}

Status MemoryCoordinator::close_run(const std::string& reason, std::stop_token) {
  const std::lock_guard lock(state_.mutex);
  if (auto held = stay_master(); !held) return held;
  if (!state_.closed) state_.closed = Closed{reason};
  for (Waiter* waiter : state_.waiters) {
    waiter->is_called = true;
    waiter->wake.notify_one();
  }
  return {};
}

Status MemoryCoordinator::register_worker(const WorkerRegistration& registration, std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
  if (auto admitted = state_.admit(registration); !admitted) return admitted;
  const auto known = state_.workers.find(registration.index);
  if (known != state_.workers.end() && state_.is_alive(known->second) &&
      known->second.registration.session != registration.session) {
    return failure(
        Errc::locked,
        "worker " + std::to_string(registration.index) +
            " is registered already, by another process that is still there: give each its own index");
  }
  state_.workers[registration.index] = {.registration = registration, .heard_of = state_.now()};
  return {};
}

Result<Dequeued> MemoryCoordinator::dequeue_module(const WorkerRegistration& worker, std::stop_token stop) {
  std::unique_lock lock(state_.mutex);
  if (auto admitted = state_.admit(worker); !admitted) return std::unexpected(admitted.error());
  Waiter self{.capabilities = &worker.capabilities};
  for (;;) {
    state_.expire();
    if (state_.closed) return *state_.closed;
    if (stop.stop_requested()) return stopped();
    if (auto assigned = state_.take(worker)) return std::move(*assigned);
    self.is_called = false;
    const auto place = state_.waiters.insert(state_.waiters.end(), &self);
    state_.wait(lock, self.wake, stop);
    state_.waiters.erase(place);
    // Whoever was called and does not take it lets the next one have it.
    if (self.is_called && stop.stop_requested()) state_.call_somebody();
  }
}

Result<Accepted> MemoryCoordinator::publish_result(const SerializedModuleResult& result,
                                                   std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
  const bool is_own = result.lease.empty();  // the master's
  if (auto held = is_own ? stay_master() : Status{}; !held) return std::unexpected(held.error());
  state_.expire();
  if (!is_own && !state_.entries.contains(result.module)) return Accepted::stale;
  Entry& entry = state_.entries[result.module];
  if (entry.phase == Phase::done) return entry.result == result ? Accepted::duplicate : Accepted::stale;
  if (is_own) {
    if (entry.phase == Phase::leased) return Accepted::stale;
    if (entry.number != 0) state_.withdraw(result.module, entry);
    state_.settle(entry, result, false);
    return Accepted::first;
  }
  if (entry.phase != Phase::leased || entry.lease != result.lease) return Accepted::stale;
  state_.unlease(result.module, entry);
  state_.settle(entry, result, true);
  return Accepted::first;
}

Result<HeartbeatReply> MemoryCoordinator::send_heartbeat(const WorkerHeartbeat& heartbeat,
                                                         std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
  state_.expire();
  const auto worker = state_.workers.find(heartbeat.index);
  if (worker == state_.workers.end())
    return failure(Errc::not_found, "worker " + std::to_string(heartbeat.index) + " is not registered");
  if (worker->second.registration.session != heartbeat.session) {
    return failure(Errc::conflict, "another process is worker " + std::to_string(heartbeat.index) + " now");
  }
  worker->second.heard_of = state_.now();
  worker->second.was_active = true;
  worker->second.has_left = heartbeat.leaving;
  worker->second.current_modules = heartbeat.current_modules;

  HeartbeatReply reply{state_.cancelled, state_.closed, {}, {}};
  if (state_.master) reply.master_silent_for = state_.now() - state_.master_heard_of;
  std::set<std::string> unknown(heartbeat.leases.begin(), heartbeat.leases.end());
  for (auto one = state_.expiries.begin(); one != state_.expiries.end();) {
    const auto current = one++;
    Entry& entry = state_.entries.at(current->second);
    if (unknown.erase(entry.lease) == 0) continue;
    const std::string module = current->second;
    state_.expiries.erase(current);
    entry.expires = state_.now() + state_.options.lease;
    state_.expiries.emplace(entry.expires, module);
  }
  reply.lost.assign(unknown.begin(), unknown.end());
  return reply;
}

Result<std::optional<CancellationSignal>> MemoryCoordinator::is_cancellation_requested(std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
  return state_.cancelled;
}

Status MemoryCoordinator::say(const std::vector<Said>& said, std::stop_token) {
  const std::lock_guard lock(state_.mutex);
  constexpr std::size_t kHeldMax = 10'000;
  if (state_.said.size() < kHeldMax) state_.said.insert(state_.said.end(), said.begin(), said.end());
  return {};
}

Result<std::vector<Said>> MemoryCoordinator::take_said(std::stop_token) {
  const std::lock_guard lock(state_.mutex);
  return std::exchange(state_.said, {});
}

}  // namespace baton::pipeline
