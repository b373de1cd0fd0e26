#include "core/stream/work_decision.h"

#include <variant>

#include "base/mutant.h"
#include "core/names.h"
#include "core/stream/work_turn.h"

namespace baton::core {

using namespace streams;

Decision decide(const State& state, const Presence& presence, const ProcessWork& request, const Moment& at) {
  return WorkTurn(state.streams, presence, request, at).decide();
}

Decision decide(const State& state, const LeaveWork& request, const Moment&) {
  const Slot slot = is_name(request.ns) ? find_instance(state.streams, request.ns, request.instance) : 0;
  if (slot == 0) return Reply{Accepted{}};  // it has left before, or never was there
  return Append{InstanceLeft{state.streams.instances[slot].number}, Accepted{}};
}

Decision decide_message_move(const State& state, const MoveBlob& request, const Moment& at) {
  const Streams& all = state.streams;
  const MoveBlob::OfMessage& of = *request.message;
  if (request.blob.bytes().size() + 64 > at.rules.streams.entry_bytes_max)
    return Reject{Errc::too_large, "the bytes no longer fit an entry"};
  const Message* message = nullptr;
  if (of.is_letter) {
    const auto found = all.dead_numbers.find(of.number);
    if (found != all.dead_numbers.end()) message = &all.dead.all[found->second].message;
  } else if (const Slot slot = all.message_numbers.find(of.number)) {
    message = &all.messages[slot];
  }
  if (message == nullptr) return Reject{Errc::not_found, "the message is gone"};
  const BlobRef& kept = of.part == MessagePart::body ? message->body : message->error;
  if (kept != request.from) return Reject{Errc::not_found, "the bytes are no longer needed there"};
  if (request.blob.hash() != kept.hash || request.blob.bytes().size() != kept.length)
    return Reject{Errc::corrupt, "the bytes are not the ones that were kept"};
  return Append{
      MessageBlobMoved{.number = of.number, .is_letter = of.is_letter, .part = of.part, .blob = request.blob},
      Accepted{}};
}

namespace {

// A call that is refused brings about nothing. The places of those that go count as free already.
bool is_refused(const State& state, const Presence& presence, const ProcessWork& request, const Moment& at,
                const InstancesEvicted& going) {
  Rules roomier = at.rules;
  roomier.streams.instances_max += going.instances.size();
  const Moment then{at.now, at.epoch, at.lsn, roomier};
  return std::holds_alternative<Reject>(decide(state, presence, request, then));
}

}  // namespace

std::optional<InstancesEvicted> silent_before(const State& state, const Presence& presence,
                                              const ProcessWork& request, const Moment& at) {
  const Streams& all = state.streams;
  if (!request.heartbeat || !is_name(request.ns)) return {};
  if (mutant(Mutant::m32_silent_instance_keeps_its_place)) return {};
  const Slot service = find_service(all, request.ns, request.heartbeat->service);
  if (service == 0) return {};
  InstancesEvicted evicted;
  for (const auto& [id, slot] : all.services[service].instances) {
    const Instance& other = all.instances[slot];
    const bool silent = id != request.instance && presence.last_heard(other) < at.now - request.stale;
    if (silent && evicted.instances.size() < kPurgeItemsMax) evicted.instances.push_back(other.number);
  }
  if (evicted.instances.empty() || is_refused(state, presence, request, at, evicted)) return {};
  return evicted;
}

std::optional<InstancesEvicted> silent_since(const State& state, const Presence& presence, Instant before) {
  InstancesEvicted evicted;
  for (const auto& [number, slot] : state.streams.instance_numbers) {
    if (evicted.instances.size() == kPurgeItemsMax) break;
    if (presence.last_heard(state.streams.instances[slot]) < before) evicted.instances.push_back(number);
  }
  if (evicted.instances.empty()) return {};
  return evicted;
}

void note_life(const State& state, const ProcessWork& request, Instant now, Presence& presence) {
  const Slot slot = find_instance(state.streams, request.ns, request.instance);
  if (slot == 0) return;
  presence.heard(state.streams.instances[slot], now);
  if (request.claim && (request.claim->outbox || request.claim->inbox))
    presence.asked_for_work(state.streams.instances[slot]);
}

}  // namespace baton::core
