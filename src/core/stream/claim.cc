#include "core/stream/claim.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/hash.h"
#include "base/mutant.h"
#include "core/stream/rules.h"

namespace baton::core::streams {
namespace {

constexpr std::size_t kStreamBytes = 192;          // a claim and a letter in the entry, at most
constexpr std::int32_t kCandidatesPerStream = 10;  // are looked at where an instance may not hold them all
constexpr std::string_view kLost = "it was handed out too often to somebody who was not heard of again";

constexpr std::uint32_t losses(const Stream& of, const Message& message) {
  return message.deliveries - message.failures + (is_out(of, message) ? 1 : 0);
}

}  // namespace

using stream::Lane;

Claim::Claim(Draft& draft, const Claimant& claimant, const stream::ClaimRequest& request, std::size_t room,
             WorkBatchApplied& entry, std::vector<GivenMessage>& work)
    : draft_(draft),
      claimant_(claimant),
      request_(request),
      streams_left_(room / kStreamBytes),
      entry_(entry),
      work_(work) {
  if (!request.partitions_max || claimant.instance == 0) return;
  const Streams& all = draft.all();
  for (Slot slot = all.instances[claimant.instance].held.head; slot != 0; slot = all.streams[slot].next) {
    const Stream& held = draft.stream(slot).now;
    if (held.owner == claimant.instance && !held.is_loose()) partitions_.insert(held.partition);
  }
}

void Claim::make() {
  for (const Lane lane : kLanes) {
    if (!(lane == Lane::outbox ? request_.outbox : request_.inbox)) continue;
    Taken taken;
    std::optional<Instant> loose_since;
    visit_ready(lane, true, [&](const Stream& of, Slot) {
      loose_since = of.ready_at;
      return false;
    });
    const auto streams = loose_since ? pick(lane) : std::vector<Picked>();
    // Whoever has waited longest comes first, and the other has what is left: so neither waits for ever
    // behind the other, however little a claim may bring.
    if (!streams.empty() && loose_since < drafted(streams[0].number, streams[0].slot).now.ready_at) {
      claim_loose(lane, taken);
      claim_streams(lane, taken);
    } else {
      claim_streams(lane, taken);
      claim_loose(lane, taken);
    }
  }
}

void Claim::claim_streams(Lane lane, Taken& taken) {
  if (taken.messages >= request_.limits.messages || taken.bytes >= request_.limits.bytes) return;
  for (const auto& [number, slot] : pick(lane)) {
    if (!take(drafted(number, slot), request_.limits.messages_per_stream, taken)) return;
  }
}

// Messages without a stream have no order and no rank: whoever is first has them.
void Claim::claim_loose(Lane lane, Taken& taken) {
  if (taken.messages >= request_.limits.messages || taken.bytes >= request_.limits.bytes) return;
  std::vector<Picked> picked;
  visit_ready(lane, true, [&](const Stream& of, Slot slot) {
    picked.push_back({of.number, slot});
    return taken.messages + std::ssize(picked) < request_.limits.messages;
  });
  for (const auto& [number, slot] : picked) {
    if (!take(drafted(number, slot), 1, taken)) return;
  }
}

DraftStream& Claim::drafted(Number number, Slot slot) {
  return slot == 0 ? draft_.opened(number) : draft_.stream(slot);
}

void Claim::visit_ready(Lane lane, bool loose, auto&& visit) {
  const Streams& all = draft_.all();
  const Instant now = claimant_.at.now;
  const std::vector<Ready> touched = draft_.ready(lane, loose, now);
  auto next = touched.begin();
  const auto visit_touched_before = [&](const Ready* other) {
    for (; next != touched.end() && (other == nullptr || *next < *other); ++next) {
      if (!visit(draft_.find_stream(next->stream)->now, next->slot)) return false;
    }
    return true;
  };
  std::uint32_t looked_at = 0;
  if (claimant_.service != 0) {
    const LaneOfService& of = all.services[claimant_.service].at(lane);
    for (const Ready& ready : loose ? of.loose : of.ready) {
      if (ready.at > now && !mutant(Mutant::m28_stream_claimed_by_two)) break;
      if (++looked_at > kStreamsLookedAt) break;
      if (draft_.find_stream(ready.stream) != nullptr) continue;  // it does not stand there any more
      if (!visit_touched_before(&ready) || !visit(all.streams[ready.slot], ready.slot)) return;
    }
  }
  visit_touched_before(nullptr);
}

bool Claim::is_offered(const Stream& of) const {
  const stream::Standing& standing = claimant_.standing;
  return of.partition % standing.active == standing.rank ||
         of.ready_at <= claimant_.at.now - claimant_.at.rules.streams.offered_for;
}

bool Claim::may_hold_partition(std::int32_t partition, std::set<std::int32_t>& held) const {
  if (!request_.partitions_max || held.contains(partition)) return true;
  if (std::ssize(held) >= *request_.partitions_max) return false;
  held.insert(partition);
  return true;
}

std::vector<Claim::Picked> Claim::preferred(Lane lane) const {
  std::vector<Picked> picked;
  if (lane != Lane::outbox || request_.partitions_max) return picked;
  const Streams& all = draft_.all();
  for (const Number number : preferred_) {
    if (std::ssize(picked) == request_.limits.streams) break;
    const DraftStream* drafted = draft_.find_stream(number);
    const Slot slot = drafted == nullptr ? all.stream_numbers.find(number) : drafted->slot;
    const Stream& of = drafted == nullptr ? all.streams[slot] : drafted->now;
    if (of.ready_at <= claimant_.at.now) picked.push_back({number, slot});
  }
  return picked;
}

std::vector<Claim::Picked> Claim::pick(Lane lane) {
  const stream::ClaimLimits& limits = request_.limits;
  std::vector<Picked> picked = preferred(lane);
  const std::set<Picked> already(picked.begin(), picked.end());
  std::int64_t room = limits.messages - std::ssize(picked);  // each has at least one message
  std::int64_t candidates = std::int64_t{limits.streams} * kCandidatesPerStream;
  std::set<std::int32_t> partitions = partitions_;  // with those of streams that may turn out not to fit
  visit_ready(lane, false, [&](const Stream& of, Slot slot) {
    if (room <= 0 || std::ssize(picked) >= limits.streams || candidates == 0) return false;
    if (!is_offered(of)) return true;
    --candidates;
    if (already.contains({of.number, slot}) || !may_hold_partition(of.partition, partitions)) return true;
    picked.push_back({of.number, slot});
    room -= std::min<std::int64_t>(of.pending, limits.messages_per_stream);
    return true;
  });
  return picked;
}

// A message that kills its handler is lost with it, again and again. Only what is first: those behind it were
// lost with it, and may be harmless.
bool Claim::bury_poison(DraftStream& of) {
  const Streams& all = draft_.all();
  const std::uint32_t losses_max = claimant_.at.rules.streams.losses_max;
  draft_.head_due(of);  // moves the head past what is gone
  if (of.head == 0 || losses_max == 0 || losses(of.now, draft_.message_now(of.head)) < losses_max)
    return false;
  for (Slot slot = of.head; slot != 0 && of.now.owner != 0; slot = all.messages[slot].next) {
    if (all.messages[slot].seq > of.now.given_seq) break;
    if (draft_.is_gone(slot) || !is_out(of.now, draft_.message_now(slot))) continue;
    ++draft_.message(slot).now.deliveries;
  }
  DraftMessage& poison = draft_.message(of.head);
  poison.gone = true;
  const bool parks = poison.now.policy == stream::FailurePolicy::park_stream && !of.now.is_loose();
  entry_.reports.push_back({.message = poison.now.number,
                            .how = Reported::dead,
                            .status = poison.now.status & ~kFailed,
                            .reason = static_cast<std::int32_t>(stream::FailureReason::max_attempts_exceeded),
                            .policy = poison.now.policy,
                            .error = {bytes_of(kLost), content_hash(bytes_of(kLost))}});
  lose(of.now, parks);
  make_ready(of.now, ready_from(of.now, draft_.head_due(of), claimant_.at.now), claimant_.at.lsn);
  return true;
}

// The first messages of a stream, up to one that is to be tried again later. False: nothing more fits.
bool Claim::take(DraftStream& of, std::int32_t count_max, Taken& taken) {
  if (streams_left_ == 0) return false;
  const bool buried = bury_poison(of);
  if (buried) --streams_left_;
  if (of.now.parking > 0 && !mutant(Mutant::m34_parked_stream_handed_out)) return true;
  const Streams& all = draft_.all();
  StreamClaimed claimed{.stream = of.now.number};
  bool fits = true;
  std::int32_t count = 0;
  const auto look_at = [&](std::uint64_t seq, std::uint32_t bytes, const auto& give) {
    fits = taken.has_room(request_.limits, bytes);
    if (!fits) return false;
    ++count, ++taken.messages, taken.bytes += bytes;
    ++claimed.count, claimed.given_seq = seq;
    give();
    return count < count_max;
  };
  draft_.head_due(of);  // moves the head past what is gone
  bool go_on = true;
  bool suspects = false;
  for (Slot slot = of.head; slot != 0 && go_on; slot = all.messages[slot].next) {
    if (draft_.is_gone(slot)) continue;
    const Message& message = draft_.message_now(slot);
    if (message.due > claimant_.at.now && mutant(Mutant::m29_retry_overtaken)) continue;
    suspects = suspects || losses(of.now, message) >= claimant_.at.rules.streams.suspect_after;
    // It holds up what is behind it.
    if (message.due > claimant_.at.now || (suspects && count > 0)) {
      go_on = false;
      break;
    }
    go_on = look_at(message.seq, message.data_bytes, [&] { work_.push_back(given(of.now, message)); });
  }
  std::uint64_t seq = of.now.next_seq - of.added.size();
  for (std::size_t i = 0; i < of.added.size() && go_on && !(suspects && count > 0); ++i, ++seq) {
    const MessageStored& stored = entry_.stored[of.added[i]];
    const Message message{
        .id = stored.id, .number = all.next_message + of.added[i], .seq = seq, .policy = stored.policy};
    go_on = look_at(seq, stored.data_bytes, [&] {
      work_.push_back(given(of.now, message));
      work_.back().flags = stream::WorkFlags::newly_stored;
    });
  }
  if (claimed.count > 0) {
    entry_.claims.push_back(claimed);
    if (!buried) --streams_left_;
    if (!of.now.is_loose()) partitions_.insert(of.now.partition);
  }
  return fits;
}

GivenMessage Claim::given(const Stream& of, const Message& message) const {
  const bool was_given = of.owner != 0 && message.seq <= of.given_seq;
  GivenMessage made{.lane = of.lane,
                    .message = message.id,
                    .number = message.number,
                    .epoch = claimant_.at.lsn,
                    .partition = of.partition,
                    .sequence = of.is_loose() ? 0 : message.seq,
                    .status = message.status,
                    .flags = was_given ? stream::WorkFlags::orphaned : stream::WorkFlags::none,
                    .deliveries = message.deliveries + 1 + (is_out(of, message) ? 1 : 0),
                    .failures = message.failures,
                    .reason = message.reason};
  if (!of.is_loose()) made.stream = of.id;
  return made;
}

}  // namespace baton::core::streams
