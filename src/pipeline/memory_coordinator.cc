#include "pipeline/memory_coordinator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "pipeline/folder_blobs.h"
#include "pipeline/graph.h"

namespace baton::pipeline {
namespace {

namespace chrono = std::chrono;

Instant steady_now() {
  return {
      chrono::duration_cast<chrono::milliseconds>(chrono::steady_clock::now().time_since_epoch()).count()};
}

std::unexpected<Error> stopped() { return failure(Errc::closed, "stopped"); }

struct Rank {
  std::uint32_t priority;
  std::uint64_t number;  // in the order of enqueueing
  std::string module;
  friend bool operator<(const Rank& a, const Rank& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.number < b.number;
  }
};

enum class Phase : std::uint8_t { waiting, leased, done };

struct Entry {
  ModuleAssignment assignment;
  std::uint64_t number = 0;
  Phase phase = Phase::waiting;
  std::uint32_t attempt = 0;
  std::string lease;
  std::int32_t worker = 0;
  Instant expires;
  SerializedModuleResult result;
};

struct Registered {
  WorkerRegistration registration;
  Instant heard_of;
  bool was_active = false;
  bool has_left = false;
  std::string current_module;
};

// Somebody who waits for work; woken alone, so that one assignment does not wake them all.
struct Waiter {
  const std::vector<std::string>* capabilities;
  std::condition_variable_any wake;
  bool is_called = false;
};

}  // namespace

struct MemoryExchange::State {
  explicit State(MemoryExchangeOptions given) : options(std::move(given)) {}

  const MemoryExchangeOptions options;
  std::mutex mutex;
  std::condition_variable_any results_changed;
  TemporaryBlobs blobs;
  std::vector<Said> said;
  std::map<std::string, Entry> entries;
  std::map<std::vector<std::string>, std::set<Rank>> waiting;  // by the capabilities they need
  std::multimap<Instant, std::string> expiries;                // of leases, by module
  std::list<Waiter*> waiters;
  std::map<std::int32_t, Registered> workers;
  std::vector<SerializedModuleResult> untold;  // to next_results
  std::optional<RunOpening> master;
  Instant master_heard_of;
  std::optional<CancellationSignal> cancelled;
  std::optional<Closed> closed;
  std::uint64_t numbers = 0;

  Instant now() const { return options.now ? options.now() : steady_now(); }

  void put(const std::string& module, Entry& entry) {
    entry.phase = Phase::waiting;
    waiting[entry.assignment.required_capabilities].insert({entry.assignment.priority, entry.number, module});
    for (Waiter* waiter : waiters) {
      if (waiter->is_called || !covers(*waiter->capabilities, entry.assignment.required_capabilities))
        continue;
      waiter->is_called = true;
      waiter->wake.notify_one();
      return;
    }
  }

  void unlease(const std::string& module, Entry& entry) {
    const auto [first, last] = expiries.equal_range(entry.expires);
    for (auto one = first; one != last; ++one) {
      if (one->second != module) continue;
      expiries.erase(one);
      return;
    }
  }

  void settle(Entry& entry, const SerializedModuleResult& result, bool tell) {
    entry.phase = Phase::done;
    entry.result = result;
    if (tell) untold.push_back(result);
    results_changed.notify_all();
  }

  // What time has brought about comes first.
  void expire() {
    const Instant at = now();
    while (!expiries.empty() && expiries.begin()->first <= at) {
      const std::string module = expiries.begin()->second;
      expiries.erase(expiries.begin());
      Entry& entry = entries.at(module);
      entry.lease.clear();
      if (entry.attempt < entry.assignment.attempts_max) {
        put(module, entry);
      } else {
        settle(entry, lost(entry), true);
      }
    }
  }

  static SerializedModuleResult lost(const Entry& entry) {
    SerializedModuleResult result{.module = entry.assignment.module,
                                  .attempt = entry.attempt,
                                  .worker_index = entry.worker,
                                  .status = ModuleStatus::failed};
    result.failure = ModuleFailure{.kind = FailureKind::worker_lost,
                                   .message = "worker " + std::to_string(entry.worker) +
                                              " fell silent during attempt " + std::to_string(entry.attempt) +
                                              " of " + std::to_string(entry.assignment.attempts_max)};
    return result;
  }

  std::optional<Assigned> take(const WorkerRegistration& worker) {
    std::set<Rank>* best = nullptr;
    for (auto& [capabilities, ranks] : waiting) {
      if (ranks.empty() || !covers(worker.capabilities, capabilities)) continue;
      if (!best || *ranks.begin() < *best->begin()) best = &ranks;
    }
    if (!best) return std::nullopt;
    const std::string module = best->begin()->module;
    best->erase(best->begin());
    Entry& entry = entries.at(module);
    entry.phase = Phase::leased;
    entry.worker = worker.index;
    entry.lease = std::to_string(++entry.attempt) + "." + std::to_string(++numbers);
    entry.expires = now() + options.lease;
    expiries.emplace(entry.expires, module);
    return Assigned{entry.assignment, entry.attempt, entry.lease};
  }

  Status admit(const WorkerRegistration& worker) const {
    if (!master || master->fingerprint == worker.fingerprint) return {};
    return failure(Errc::conflict, "worker " + std::to_string(worker.index) +
                                       " has another pipeline than the master: run the same program, with "
                                       "the same options, on all machines");
  }

  bool is_alive(const Registered& worker) const {
    return !worker.has_left && now() - worker.heard_of <= options.lease;
  }

  // Until something is said to have changed, or the next lease may have ended.
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable_any& changed,
            const std::stop_token& stop) {
    if (options.now || expiries.empty()) {
      changed.wait(lock, stop, [first = true]() mutable { return !std::exchange(first, false); });
      return;
    }
    const auto until = chrono::steady_clock::time_point(chrono::milliseconds(expiries.begin()->first.ms));
    changed.wait_until(lock, stop, until, [first = true]() mutable { return !std::exchange(first, false); });
  }
};

MemoryExchange::MemoryExchange(MemoryExchangeOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
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
  const bool is_there = state_.master && state_.now() - state_.master_heard_of <= state_.options.lease;
  if (is_there && state_.master->session != opening.session) {
    return failure(Errc::conflict, "this run has a master that is still there: give each run its own id");
  }
  state_.master = opening;
  state_.master_heard_of = state_.now();
  return {};
}

Result<RunOpening> MemoryCoordinator::run_opening(std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
  if (!state_.master) return failure(Errc::not_found, "the run has no master yet");
  return *state_.master;
}

Status MemoryCoordinator::enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) {
  return enqueue_modules({assignment}, std::move(stop));
}

Status MemoryCoordinator::enqueue_modules(const std::vector<ModuleAssignment>& assignments,
                                          std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
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
  state_.master_heard_of = state_.now();
  std::vector<RegisteredWorker> all;
  for (const auto& [index, worker] : state_.workers) {
    WorkerStatus status = WorkerStatus::connected;
    if (worker.has_left)
      status = WorkerStatus::disconnected;
    else if (!state_.is_alive(worker))
      status = WorkerStatus::timed_out;
    else if (!worker.current_module.empty())
      status = WorkerStatus::executing;
    else if (worker.was_active)
      status = WorkerStatus::active;
    all.push_back({worker.registration, status, worker.current_module, state_.now() - worker.heard_of});
  }
  return all;
}

Status MemoryCoordinator::broadcast_cancellation(const std::string& reason, std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
  if (!state_.cancelled) state_.cancelled = CancellationSignal{reason};
  return {};
}

Status MemoryCoordinator::close_run(const std::string& reason, std::stop_token) {
  const std::lock_guard lock(state_.mutex);
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
  }
}

Result<Accepted> MemoryCoordinator::publish_result(const SerializedModuleResult& result,
                                                   std::stop_token stop) {
  if (stop.stop_requested()) return stopped();
  const std::lock_guard lock(state_.mutex);
  state_.expire();
  Entry& entry = state_.entries[result.module];
  if (entry.phase == Phase::done) return entry.result == result ? Accepted::duplicate : Accepted::stale;
  if (result.lease.empty()) {  // the master's own
    if (entry.number != 0) return failure(Errc::lease_unknown, result.module + " was given to the workers");
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
  worker->second.current_module = heartbeat.current_module;

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
