#include "core/state.h"

#include "core/names.h"

namespace baton::core {

Slot find_task(const State& state, std::string_view ns, const TaskRef& ref) {
  if (!ref.key.empty()) return is_name(ref.key) && is_name(ns) ? state.keys.find(ScopedName(ns, ref.key)) : 0;
  const Slot slot = state.ids.find(ref.id.lsn);
  if (slot == 0 || state.tasks[slot].epoch != ref.id.epoch) return 0;
  return state.queue_of(state.tasks[slot]).ns == ns ? slot : 0;
}

// Most of what comes is about the queue of the newest task, which is found without its name's hash.
Slot find_queue(const State& state, std::string_view ns, std::string_view queue) {
  const Slot likely = state.lanes[state.tasks[state.ids.newest()].lane].queue;
  if (state.queues[likely].name == queue && state.queues[likely].ns == ns) return likely;
  return is_name(ns) && is_name(queue) ? state.queue_names.find(ScopedName(ns, queue)) : 0;
}

std::uint32_t active_leases(const State& state, std::string_view ns, std::string_view worker) {
  const Slot holder = is_name(ns) && is_name(worker) ? state.holder_names.find(ScopedName(ns, worker)) : 0;
  return holder == 0 ? 0 : state.holders[holder].leases;
}

}  // namespace baton::core
