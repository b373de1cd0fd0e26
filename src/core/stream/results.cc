#include "core/stream/results.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace baton::core::streams {

using stream::PerspectiveResult;
using stream::PerspectiveStatus;
using stream::ReceptorResult;
using stream::ReceptorStatus;
using stream::Verdict;

Verdicts Results::receptors(Slot space, const std::vector<ReceptorResult>& results, bool failed) {
  Verdicts verdicts;
  std::set<std::pair<stream::MessageId, std::string_view>> named;
  for (const ReceptorResult& result : results) {
    const bool first = named.emplace(result.event, result.receptor).second;
    verdicts.push_back(first ? receptor(space, result, failed ? ReceptorStatus::failed : result.status)
                             : Verdict::duplicate);
  }
  return verdicts;
}

Verdict Results::receptor(Slot space, const ReceptorResult& result, ReceptorStatus status) {
  const Slot slot = find_receptor(all_, space, result.event, result.receptor);
  const auto [at, first] = receptors_.try_emplace({result.event, result.receptor});
  Receptor& known = at->second;
  if (first && slot != 0) known = {all_.receptors.all[slot].status, all_.receptors.all[slot].attempts};
  // What is completed stays so, and an earlier attempt has nothing to add.
  const bool is_news = known.status != ReceptorStatus::completed && result.attempt >= known.attempts &&
                       (result.attempt != known.attempts || status != known.status);
  if (known.attempts != 0 && !is_news) return Verdict::duplicate;
  known = {status, result.attempt};
  entry_.receptors.push_back({.event = result.event,
                              .receptor = result.receptor,
                              .status = status,
                              .attempts = result.attempt,
                              .error = result.error});
  return Verdict::ok;
}

Verdicts Results::perspectives(Slot space, const std::vector<PerspectiveResult>& results, bool failed) {
  // Stream by stream, as they are locked in a database.
  std::vector<std::size_t> order(results.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::pair(results[i].stream, std::string_view(results[i].perspective));
  });
  Verdicts verdicts(results.size());
  for (const std::size_t i : order)
    verdicts[i] = perspective(space, results[i], failed ? PerspectiveStatus::failed : results[i].status);
  return verdicts;
}

Results::Reached& Results::reached(Slot space, const PerspectiveResult& result) {
  const auto [at, first] = reached_.try_emplace({result.stream, result.perspective});
  if (!first) return at->second;
  if (const Slot slot = find_checkpoint(all_, space, result.stream, result.perspective)) {
    const Checkpoint& known = all_.checkpoints.all[slot];
    at->second = {known.version, known.ahead, known.status, known.error};
  }
  // What is forgotten can no longer be reported, and would hold up the rest for ever.
  const History& of = all_.histories[all_.history_ids.find(space, result.stream.value)];
  at->second.version = std::max(at->second.version, of.version - of.events);
  return at->second;
}

Verdict Results::perspective(Slot space, const PerspectiveResult& result, PerspectiveStatus status) {
  const Slot last = find_event(all_, space, result.stream, result.last_event);
  if (last == 0) return Verdict::unknown;
  const std::uint32_t goal = all_.events.all[last].version;
  Reached& known = reached(space, result);
  if (known.version >= goal) return Verdict::duplicate;

  CheckpointMoved moved{.stream = result.stream,
                        .perspective = result.perspective,
                        .status = status,
                        .error = result.error,
                        .version = known.version};
  // One that failed stays where it is.
  if (status != PerspectiveStatus::failed) process(space, result, goal, known, moved);
  const bool says_something = status != known.status || result.error != known.error ||
                              moved.version != known.version || !moved.ahead.empty();
  known.version = moved.version, known.status = status, known.error = result.error;
  if (says_something) entry_.checkpoints.push_back(std::move(moved));
  return Verdict::ok;
}

// The events named, or all up to the last one; then as far as none is missing.
void Results::process(Slot space, const PerspectiveResult& result, std::uint32_t goal, Reached& reached,
                      CheckpointMoved& moved) const {
  for (const stream::MessageId& id : result.processed) {
    const Slot event = find_event(all_, space, result.stream, id);
    const std::uint32_t version = event == 0 ? 0 : all_.events.all[event].version;
    if (version > reached.version && reached.ahead.add(version)) moved.ahead.push_back(version);
  }
  if (result.processed.empty()) moved.version = goal;
  moved.version = reached.ahead.last_behind(moved.version);
  reached.ahead.drop_up_to(moved.version);
  std::erase_if(moved.ahead, [&](std::uint32_t version) { return version <= moved.version; });
}

}  // namespace baton::core::streams
