#include "core/stream/outlook.h"

#include <algorithm>

#include "core/stream/work_request.h"

namespace baton::core {
namespace {

using streams::Ready;

// What stands in the index comes round `later` than it says.
void look_at(const std::set<Ready>& index, Instant since, Instant now, Duration later, StreamOutlook& found) {
  const auto first = index.lower_bound({.at = since - later});
  if (first != index.end() && first->at + later <= now) found.has_news = true;
  const auto next = index.lower_bound({.at = now - later + milliseconds(1)});
  if (next != index.end()) found.next = std::min(found.next, next->at + later);
}

}  // namespace

StreamOutlook outlook(const State& state, const StreamRules& rules, Slot service, Instant since,
                      Instant now) {
  StreamOutlook found;
  for (const stream::Lane lane : kLanes) {
    const streams::LaneOfService& of = state.streams.services[service].at(lane);
    look_at(of.ready, since, now, {}, found);
    look_at(of.ready, since, now, rules.offered_for, found);
    look_at(of.loose, since, now, {}, found);
  }
  return found;
}

}  // namespace baton::core
