#include "core/stream/outlook.h"

#include <algorithm>
#include <variant>

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

bool brings_work(const State& state, const Event& event, const Stamp& at) {
  const auto* batch = std::get_if<WorkBatchApplied>(&event);
  if (batch == nullptr)
    return std::holds_alternative<InstancesEvicted>(event) || std::holds_alternative<InstanceLeft>(event) ||
           std::holds_alternative<LettersReplayed>(event) || std::holds_alternative<LettersPurged>(event);
  const Slot instance = streams::find_instance(state.streams, batch->ns, batch->instance);
  if (instance == 0) return false;
  const streams::Service& service = state.streams.services[state.streams.instances[instance].service];
  const auto has_more = [&](const std::set<Ready>& index) {
    const auto first = index.lower_bound({.at = at.time, .since = at.lsn});
    return first != index.end() && first->at == at.time && first->since == at.lsn;
  };
  return std::ranges::any_of(service.lanes, [&](const streams::LaneOfService& lane) {
    return has_more(lane.ready) || has_more(lane.loose);
  });
}

}  // namespace baton::core
