#include "core/prospect.h"

#include <algorithm>

#include "core/names.h"

namespace baton::core {

Prospect prospect(const State& state, std::string_view ns, std::string_view queue, Instant now) {
  Prospect found;
  const Slot slot = find_queue(state, ns, queue);
  if (slot == 0 || state.queues[slot].paused) return found;
  for (const Slot at : state.queues[slot].open_lanes()) {
    const Lane& lane = state.lanes[at];
    const std::optional<Instant> first =
        lane.delayed.empty() ? std::nullopt : std::optional(lane.delayed.first().at);
    if (lane.ready.head != 0 || (first && *first <= now)) found.needs.push_back(lane.capabilities);
    if (first && *first > now) found.next = std::min(found.next.value_or(*first), *first);
  }
  return found;
}

bool Prospect::is_ready_for(std::string_view capabilities) const {
  return std::ranges::any_of(needs, [&](std::string_view needed) { return covers(capabilities, needed); });
}

}  // namespace baton::core
