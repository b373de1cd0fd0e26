#include "pipeline/memory_run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "pipeline/graph.h"

namespace baton::pipeline {
namespace {

namespace chrono = std::chrono;

Instant steady_now() {
  return {
      chrono::duration_cast<chrono::milliseconds>(chrono::steady_clock::now().time_since_epoch()).count()};
}

}  // namespace

Instant MemoryRun::now() const { return options.now ? options.now() : steady_now(); }

void MemoryRun::put(const std::string& module, Entry& entry) {
  entry.phase = Phase::waiting;
  waiting[entry.assignment.required_capabilities].insert({entry.assignment.priority, entry.number, module});
  call_somebody();
}

void MemoryRun::withdraw(const std::string& module, const Entry& entry) {
  waiting[entry.assignment.required_capabilities].erase({entry.assignment.priority, entry.number, module});
}

void MemoryRun::call_somebody() {
  for (Waiter* waiter : waiters) {
    const bool can_take = std::ranges::any_of(waiting, [&](const auto& one) {
      return !one.second.empty() && covers(*waiter->capabilities, one.first);
    });
    if (waiter->is_called || !can_take) continue;
    waiter->is_called = true;
    waiter->wake.notify_one();
    return;
  }
}

void MemoryRun::unlease(const std::string& module, Entry& entry) {
  const auto [first, last] = expiries.equal_range(entry.expires);
  for (auto one = first; one != last; ++one) {
    if (one->second != module) continue;
    expiries.erase(one);
    return;
  }
}

void MemoryRun::settle(Entry& entry, const SerializedModuleResult& result, bool tell) {
  entry.phase = Phase::done;
  entry.result = result;
  if (tell) untold.push_back(result);
  results_changed.notify_all();
}

void MemoryRun::expire() {
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

SerializedModuleResult MemoryRun::lost(const Entry& entry) {
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

std::optional<Assigned> MemoryRun::take(const WorkerRegistration& worker) {
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

Status MemoryRun::admit(const WorkerRegistration& worker) const {
  return master ? pipeline::admit(*master, worker) : Status{};
}

bool MemoryRun::is_alive(const Registered& worker) const {
  return !worker.has_left && now() - worker.heard_of <= options.lease;
}

void MemoryRun::wait(std::unique_lock<std::mutex>& lock, std::condition_variable_any& changed,
                     const std::stop_token& stop) {
  if (options.now || expiries.empty()) {
    changed.wait(lock, stop, [first = true]() mutable { return !std::exchange(first, false); });
    return;
  }
  const auto until = chrono::steady_clock::time_point(chrono::milliseconds(expiries.begin()->first.ms));
  changed.wait_until(lock, stop, until, [first = true]() mutable { return !std::exchange(first, false); });
}

}  // namespace baton::pipeline
