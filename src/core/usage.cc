#include "core/usage.h"

#include "base/check.h"

namespace baton::core {
namespace {

Namespace& space_of(State& state, const Task& task) {
  return state.namespaces[state.queues[state.lanes[task.lane].queue].space];
}

}  // namespace

Slot count_queue(State& state, std::string_view ns) {
  Slot slot = state.namespace_names.find(ns);
  if (slot == 0) {
    slot = state.namespaces.take();
    state.namespaces[slot].name = ns;
    state.namespace_names.insert(ns, slot);
  }
  ++state.namespaces[slot].queues;
  return slot;
}

void uncount_queue(State& state, Slot slot) {
  Namespace& space = state.namespaces[slot];
  if (--space.queues > 0) return;
  BATON_CHECK(space.tasks == 0 && space.payload_bytes == 0);
  state.namespace_names.erase(space.name);
  state.namespaces.give_back(slot);
}

void count_task(State& state, const Task& task) {
  Namespace& space = space_of(state, task);
  ++space.tasks;
  space.payload_bytes += task.payload.length;
}

void uncount_task(State& state, const Task& task) {
  Namespace& space = space_of(state, task);
  BATON_CHECK(space.tasks > 0 && space.payload_bytes >= task.payload.length);
  --space.tasks;
  space.payload_bytes -= task.payload.length;
}

const Namespace& usage_of(const State& state, std::string_view ns) {
  return state.namespaces[state.namespace_names.find(ns)];  // slot 0 is that of nobody
}

}  // namespace baton::core
