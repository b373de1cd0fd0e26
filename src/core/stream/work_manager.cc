#include "core/stream/work_manager.h"

#include <algorithm>

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

namespace {

// Dead letters of a namespace: those named, or all, the oldest first; as many as one entry takes.
template <class May>
std::vector<Number> choose_letters(const Streams& all, std::string_view ns, const std::vector<Number>& named,
                                   May may) {
  std::vector<Number> chosen;
  const auto consider = [&](Slot slot) {
    const Letter& letter = all.dead.all[slot];
    if (all.services[letter.service].ns == ns && may(letter)) chosen.push_back(letter.number);
  };
  for (const Number number : named) {
    if (chosen.size() == kLettersPerEntryMax) return chosen;
    const auto found = all.dead_numbers.find(number);
    if (found != all.dead_numbers.end() && std::ranges::find(chosen, number) == chosen.end())
      consider(found->second);
  }
  if (!named.empty()) return chosen;
  for (Slot slot = all.dead.by_age.head; slot != 0; slot = all.dead.all[slot].next) {
    if (chosen.size() == kLettersPerEntryMax) break;
    consider(slot);
  }
  return chosen;
}

}  // namespace

Decision decide(const State& state, const ReplayLetters& request, const Moment&) {
  const Streams& all = state.streams;
  // The same message may have been stored once more, in an outbox; then the letter stays where it is.
  std::set<std::pair<std::uint32_t, stream::MessageId>> back;
  LettersReplayed replayed{choose_letters(all, request.ns, request.letters, [&](const Letter& letter) {
    return find_message(all, letter.service, letter.lane, letter.message.id) == 0 &&
           back.emplace(scope_of(letter.service, letter.lane), letter.message.id).second;
  })};
  const auto count = static_cast<std::uint32_t>(replayed.letters.size());
  if (count == 0) return Reply{Purged{}};
  return Append{std::move(replayed), Purged{count}};
}

Decision decide(const State& state, const PurgeLetters& request, const Moment& at) {
  const Instant before = at.now - request.older_than;
  LettersPurged purged{choose_letters(state.streams, request.ns, request.letters,
                                      [&](const Letter& letter) { return letter.since <= before; })};
  const auto count = static_cast<std::uint32_t>(purged.letters.size());
  if (count == 0) return Reply{Purged{}};
  return Append{std::move(purged), Purged{count}};
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

std::optional<InstancesEvicted> silent_before(const State& state, const Presence& presence,
                                              const ProcessWork& request, const Moment& at) {
  const Streams& all = state.streams;
  if (!request.heartbeat || !is_name(request.ns)) return {};
  if (was_evicted(all, request.ns, request.instance))
    return {};  // a call that is refused brings about nothing
  const Slot service = find_service(all, request.ns, request.heartbeat->service);
  if (service == 0) return {};
  InstancesEvicted evicted;
  for (const auto& [id, slot] : all.services[service].instances) {
    const Instance& other = all.instances[slot];
    const bool silent = id != request.instance && presence.last_heard(other) < at.now - request.stale;
    if (silent && evicted.instances.size() < kPurgeItemsMax) evicted.instances.push_back(other.number);
  }
  if (evicted.instances.empty()) return {};
  return evicted;
}

namespace {

// How many of the oldest are past their time, or more than may be kept.
template <class T>
std::uint32_t overdue(const Memory<T>& memory, Instant before, std::uint64_t count_max) {
  std::uint64_t surplus = memory.all.used() > count_max ? memory.all.used() - count_max : 0;
  std::uint32_t count = 0;
  for (Slot slot = memory.by_age.head; slot != 0 && count < kForgottenPerEntryMax;
       slot = memory.all[slot].next) {
    if (surplus == 0 && memory.all[slot].since >= before) break;
    surplus -= surplus > 0;
    ++count;
  }
  return count;
}

}  // namespace

std::optional<StreamsForgotten> overdue_to_forget(const State& state, const Moment& at) {
  const Streams& all = state.streams;
  const StreamRules& rules = at.rules.streams;
  const Instant unseen = rules.seen_for > Duration{} ? at.now - rules.seen_for : Instant{};
  StreamsForgotten forgotten{
      .seen = overdue(all.seen, unseen, rules.remembered_max),
      .tombstones = overdue(all.tombstones, at.now - rules.tombstone_for, rules.remembered_max),
      .events = overdue(all.events, unseen, rules.remembered_max),
      .receptors = overdue(all.receptors, unseen, rules.remembered_max),
      .checkpoints = overdue(all.checkpoints, unseen, rules.remembered_max),
      .kept = overdue(all.kept, at.now - rules.kept_for, rules.letters_max),
  };
  for (Slot slot = all.idle.head; slot != 0 && forgotten.idle.size() < kForgottenPerEntryMax;
       slot = all.streams[slot].next) {
    if (all.streams[slot].idle_since >= at.now - rules.idle_for) break;
    forgotten.idle.push_back(all.streams[slot].number);
  }
  if (forgotten == StreamsForgotten{}) return {};
  return forgotten;
}

std::optional<LettersPurged> surplus_letters(const State& state, const Moment& at) {
  const Memory<Letter>& dead = state.streams.dead;
  if (dead.all.used() <= at.rules.streams.letters_max) return {};
  LettersPurged purged;
  std::uint64_t surplus = dead.all.used() - at.rules.streams.letters_max;
  for (Slot slot = dead.by_age.head; surplus > 0 && purged.letters.size() < kLettersPerEntryMax;
       slot = dead.all[slot].next, --surplus)
    purged.letters.push_back(dead.all[slot].number);
  return purged;
}

}  // namespace baton::core
