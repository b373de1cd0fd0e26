#include "core/holder.h"

#include "core/digest.h"
#include "core/names.h"

namespace baton::core {
namespace {

auto remember_timer(State& state) {
  return [&state](Slot slot, std::uint32_t position) { state.leases[slot].timer = position; };
}

}  // namespace

void start_holding(State& state, Slot slot, std::string_view ns, std::string_view worker) {
  const ScopedName name(ns, worker);
  Slot holder = state.holder_names.find(name);
  if (holder == 0) {
    holder = state.holders.take();
    state.holders[holder].name = std::string_view(name);
    state.holders[holder].hash = content_hash(bytes_of(name));
    state.holder_names.insert(name, holder);
  }
  ++state.holders[holder].leases;
  Lease& lease = state.leases[slot];
  lease.worker = holder;
  state.expiries.insert({lease.expiry, lease.lsn, slot}, remember_timer(state));
  state.digest += fact_hash(state, lease);
}

void stop_holding(State& state, Slot slot) {
  const Lease& lease = state.leases[slot];
  state.digest -= fact_hash(state, lease);
  state.expiries.erase(lease.timer, remember_timer(state));
  LeaseHolder& holder = state.holders[lease.worker];
  if (--holder.leases == 0) {
    state.holder_names.erase(holder.name);
    state.holders.give_back(lease.worker);
  }
  state.leases.give_back(slot);
}

void move_expiry(State& state, Slot slot, Instant expiry) {
  Lease& lease = state.leases[slot];
  state.digest -= fact_hash(state, lease);
  lease.expiry = expiry;
  state.digest += fact_hash(state, lease);
  state.expiries.change(lease.timer, expiry, remember_timer(state));
}

std::string_view worker_of(const State& state, const Lease& lease) {
  const std::string_view scoped = state.holders[lease.worker].name;
  return scoped.substr(scoped.find(' ') + 1);
}

}  // namespace baton::core
