#include "core/stream/forgetting.h"

#include "core/stream/streams.h"

namespace baton::core {

using namespace streams;

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

}  // namespace baton::core
