#include "core/stream/stream_query.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "core/stream/span.h"
#include "core/stream/work_request.h"

namespace baton::core {

using namespace streams;

namespace {

std::size_t rows_wanted(const StreamLook& look) {
  return std::clamp<std::size_t>(look.count_max, 1, kListStreamsMax);  // at least one, so that it gets on
}

// Those of a service that streams are offered to, in the order of their ranks.
std::vector<stream::InstanceId> ranked(const State& state, const Presence& presence, const StreamLook& look,
                                       const Service& service) {
  std::vector<stream::InstanceId> active;
  for (const auto& [id, slot] : service.instances) {
    if (presence.has_rank(state.streams.instances[slot], look.now - look.stale)) active.push_back(id);
  }
  return active;
}

std::optional<stream::InstanceId> offered_to(const std::vector<stream::InstanceId>& active,
                                             std::int32_t partition) {
  if (active.empty()) return {};
  return active[static_cast<std::size_t>(partition) % active.size()];
}

void note_older(std::optional<Duration>& oldest, const std::set<Ready>& ready, Instant now) {
  if (ready.empty() || ready.begin()->at > now) return;
  oldest = std::max(oldest.value_or(Duration{}), now - ready.begin()->at);
}

// Streams with messages.
std::uint64_t streams_in(const Streams& all, std::string_view ns) {
  std::uint64_t streams = 0;
  for (Slot slot = 1; slot < all.services.end(); ++slot) {
    if (all.services[slot].ns != ns) continue;
    for (const stream::Lane lane : kLanes) streams += all.services[slot].at(lane).streams;
  }
  return streams;
}

std::string state_of(const Streams& all, const Stream& of, Instant now) {
  if (of.parking > 0) return "parked behind a dead letter";
  if (of.owner != 0) {
    const std::string holder = stream::to_text(all.instances[of.owner].id.value);
    return (of.lease_until > now ? "held by " : "lost by ") + holder;
  }
  if (of.ready_at <= now) return "can be claimed";
  return "to be tried again in " + span((of.ready_at - now).ms / 1000 + 1);
}

LetterView view_of(const Streams& all, const Letter& letter, Instant now) {
  LetterView view{.number = letter.number,
                  .service = all.services[letter.service].name,
                  .lane = letter.lane,
                  .message = letter.message,
                  .parks = letter.parks,
                  .dead_for = now - letter.since,
                  .by = letter.by};
  if (letter.message.stream == 0) return view;
  view.stream = all.streams[letter.message.stream].id;
  view.partition = all.streams[letter.message.stream].partition;
  return view;
}

}  // namespace

LaneView lane_view(const Service& service, stream::Lane lane, Instant now) {
  const LaneOfService& of = service.at(lane);
  LaneView view{.service = service.name,
                .lane = lane,
                .waiting = of.messages - of.held,
                .held = of.held,
                .dead = of.letters,
                .streams = of.streams,
                .held_streams = of.held_streams,
                .parked_streams = of.parked_streams};
  note_older(view.oldest_claimable, of.ready, now);
  note_older(view.oldest_claimable, of.loose, now);
  return view;
}

StreamPage<LaneView> lanes(const State& state, const StreamLook& look) {
  const Streams& all = state.streams;
  StreamPage<LaneView> page;
  for (Slot slot = static_cast<Slot>(std::max<std::uint64_t>(look.from, 1)); slot < all.services.end();
       ++slot) {
    if (all.services[slot].ns != look.ns) continue;
    if (page.rows.size() >= rows_wanted(look)) {
      page.next = slot;
      break;
    }
    for (const stream::Lane lane : kLanes) page.rows.push_back(lane_view(all.services[slot], lane, look.now));
  }
  return page;
}

StreamPage<InstanceView> instances(const State& state, const Presence& presence, const StreamLook& look) {
  const Streams& all = state.streams;
  StreamPage<InstanceView> page;
  std::map<Slot, std::vector<stream::InstanceId>> active;  // of services that were met
  std::size_t examined = 0;
  for (auto at = all.instance_numbers.lower_bound(look.from); at != all.instance_numbers.end(); ++at) {
    const Instance& instance = all.instances[at->second];
    const Service& service = all.services[instance.service];
    if (page.rows.size() >= rows_wanted(look) || ++examined > kStreamsExaminedMax) {
      page.next = at->first;
      break;
    }
    if (service.ns != look.ns) continue;
    InstanceView view{.service = service.name,
                      .id = instance.id,
                      .host = instance.host,
                      .process = instance.process,
                      .silent = look.now - presence.last_heard(instance),
                      .is_stale = presence.last_heard(instance) < look.now - look.stale,
                      .held_streams = instance.streams,
                      .held_messages = instance.messages};
    const auto [ranks, is_new] = active.try_emplace(instance.service);
    if (is_new) ranks->second = ranked(state, presence, look, service);
    const auto rank = std::ranges::lower_bound(ranks->second, instance.id);
    if (rank != ranks->second.end() && *rank == instance.id)
      view.rank = static_cast<std::int32_t>(rank - ranks->second.begin());
    page.rows.push_back(std::move(view));
  }
  return page;
}

// Messages are numbered as they come, so the first ones are those that have been there for longest.
StreamRows<StreamView> lag(const State& state, const StreamLook& look) {
  const Streams& all = state.streams;
  const std::size_t wanted = std::min<std::uint64_t>(rows_wanted(look), streams_in(all, look.ns));
  StreamRows<StreamView> answer;
  std::vector<StreamView>& found = answer.rows;
  std::set<Slot> seen;
  std::size_t examined = 0;
  for (Slot slot = all.message_numbers.first_from(1); slot != 0 && found.size() < wanted;
       slot = all.message_numbers.first_from(all.messages[slot].number + 1)) {
    if (++examined > kStreamsExaminedMax) break;
    const Stream& of = all.streams[all.messages[slot].stream];
    const Service& service = all.services[of.service];
    if (of.is_loose() || service.ns != look.ns || !seen.insert(all.messages[slot].stream).second) continue;
    found.push_back({.service = service.name,
                     .lane = of.lane,
                     .id = of.id,
                     .partition = of.partition,
                     .messages = of.pending,
                     .waits = look.now - all.messages[of.messages.head].stored_at,
                     .state = state_of(all, of, look.now)});
  }
  std::ranges::stable_sort(found, std::greater(), &StreamView::waits);
  answer.is_complete = found.size() == wanted;
  return answer;
}

std::optional<stream::InstanceId> owner_of(const State& state, const Presence& presence,
                                           const StreamLook& look, Slot service, std::int32_t partition) {
  return offered_to(ranked(state, presence, look, state.streams.services[service]), partition);
}

StreamRows<PartitionView> partitions(const State& state, const Presence& presence, const StreamLook& look) {
  const Streams& all = state.streams;
  std::map<std::tuple<Slot, stream::Lane, std::int32_t>, PartitionView> met;
  std::size_t examined = 0;
  std::uint64_t left = streams_in(all, look.ns);
  for (Slot slot = all.stream_numbers.first_from(1); slot != 0 && left > 0;
       slot = all.stream_numbers.first_from(all.streams[slot].number + 1)) {
    if (++examined > kStreamsExaminedMax) break;
    const Stream& of = all.streams[slot];
    if (of.pending == 0 || of.is_loose() || all.services[of.service].ns != look.ns) continue;
    PartitionView& view = met[{of.service, of.lane, of.partition}];
    --left;
    ++view.streams;
    view.messages += of.pending;
    if (of.ready_at <= look.now)
      view.oldest_claimable = std::max(view.oldest_claimable.value_or(Duration{}), look.now - of.ready_at);
  }
  StreamRows<PartitionView> answer{.rows = {}, .is_complete = left == 0};
  std::vector<PartitionView>& found = answer.rows;
  for (auto& [key, view] : met) {
    const auto& [service, lane, partition] = key;
    view.service = all.services[service].name, view.lane = lane, view.partition = partition;
    found.push_back(std::move(view));
  }
  std::ranges::stable_sort(found, std::greater(), &PartitionView::messages);
  if (found.size() > rows_wanted(look)) found.resize(rows_wanted(look));
  std::map<std::string, std::vector<stream::InstanceId>> active;  // of services that were met
  for (PartitionView& view : found) {
    const auto [ranks, is_new] = active.try_emplace(view.service);
    const Service& service = all.services[find_service(all, look.ns, view.service)];
    if (is_new) ranks->second = ranked(state, presence, look, service);
    view.offered_to = offered_to(ranks->second, view.partition);
  }
  return answer;
}

StreamPage<LetterView> letters(const State& state, const StreamLook& look,
                               const std::vector<std::uint64_t>& named) {
  const Streams& all = state.streams;
  StreamPage<LetterView> page;
  std::size_t bytes = 0;
  const auto is_full = [&] {
    return page.rows.size() >= rows_wanted(look) || (bytes > kLettersBytesMax && !page.rows.empty());
  };
  const auto consider = [&](const Letter& letter) {
    if (all.services[letter.service].ns != look.ns) return;
    bytes += letter.message.body.length;
    page.rows.push_back(view_of(all, letter, look.now));
  };
  for (std::size_t i = look.from; i < named.size(); ++i) {
    if (is_full()) {
      page.next = i;
      break;
    }
    if (const auto found = all.dead_numbers.find(named[i]); found != all.dead_numbers.end())
      consider(all.dead.all[found->second]);
  }
  if (!named.empty()) return page;
  std::size_t examined = 0;
  for (auto at = all.dead_numbers.lower_bound(look.from); at != all.dead_numbers.end(); ++at) {
    if (is_full() || ++examined > kStreamsExaminedMax) {
      page.next = at->first;
      break;
    }
    consider(all.dead.all[at->second]);
  }
  return page;
}

StreamTally stream_tally(const State& state) {
  const Streams& all = state.streams;
  StreamTally tally{.services = all.services.used(), .instances = all.instances.used()};
  for (Slot slot = 1; slot < all.services.end(); ++slot) {
    for (const stream::Lane lane : kLanes) {
      const LaneOfService& of = all.services[slot].at(lane);
      tally.streams += of.streams;
      tally.waiting += of.messages - of.held;
      tally.held += of.held;
      tally.dead += of.letters;
    }
  }
  return tally;
}

}  // namespace baton::core
