#include "core/worker/worker_registry.h"

#include <utility>

#include "core/limits.h"

namespace baton::core {

// None if it cannot be remembered.
Worker* WorkerRegistry::saw(std::string_view ns, std::string_view worker, Instant now) {
  if (!is_name(ns) || !is_name(worker)) return nullptr;
  const ScopedName name(ns, worker);
  Slot slot = names_.find(name);
  if (slot == 0) {
    if (workers_.used() >= kWorkersMax) return nullptr;
    slot = workers_.take();
    workers_[slot].name = std::string_view(name);
    names_.insert(name, slot);
  }
  workers_[slot].last_seen = now;
  return &workers_[slot];
}

void WorkerRegistry::heartbeat(std::string_view ns, std::string_view worker, std::uint32_t capacity,
                               Capabilities capabilities, Instant now) {
  Worker* known = saw(ns, worker, now);
  if (known == nullptr) return;
  known->capacity = capacity;
  known->capabilities = std::move(capabilities);
}

void WorkerRegistry::asked_for_work(std::string_view ns, std::string_view worker,
                                    const Capabilities& capabilities, Instant now) {
  Worker* known = saw(ns, worker, now);
  if (known != nullptr && !capabilities.joined().empty()) known->capabilities = capabilities;
}

void WorkerRegistry::forget_silent_since(Instant then) {
  for (Slot slot = 1; slot < workers_.end(); ++slot) {
    if (workers_[slot].name.empty() || workers_[slot].last_seen > then) continue;
    names_.erase(workers_[slot].name);
    workers_.give_back(slot);
  }
}

const Worker* WorkerRegistry::find(std::string_view ns, std::string_view worker) const {
  const Slot slot = is_name(ns) && is_name(worker) ? names_.find(ScopedName(ns, worker)) : 0;
  return slot == 0 ? nullptr : &workers_[slot];
}

std::uint32_t WorkerRegistry::spare_capacity(std::string_view ns, std::string_view worker,
                                             std::uint32_t active_leases) const {
  const Worker* known = find(ns, worker);
  if (known == nullptr || known->capacity == 0) return UINT32_MAX;
  return known->capacity > active_leases ? known->capacity - active_leases : 0;
}

}  // namespace baton::core
