#include "core/prospect.h"

#include <algorithm>

namespace baton::core {

Prospect prospect(const State& state, std::string_view ns, std::string_view queue, Instant now) {
  Prospect found;
  const Slot slot = find_queue(state, ns, queue);
  if (slot == 0 || state.queues[slot].paused) return found;
  for (const Slot at : state.queues[slot].lanes) {
    const Lane& lane = state.lanes[at];
    found.ready = found.ready || lane.ready.head != 0;
    if (lane.delayed.empty()) continue;
    const Instant first = lane.delayed.first().at;
    if (first <= now) {
      found.ready = true;
    } else {
      found.next = std::min(found.next.value_or(first), first);
    }
  }
  return found;
}

}  // namespace baton::core
