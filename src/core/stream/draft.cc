#include "core/stream/draft.h"

#include <algorithm>

namespace baton::core::streams {

DraftStream& Draft::stream(Slot slot) {
  const Stream& known = all_.streams[slot];
  const auto [at, added] = streams_.try_emplace(known.number);
  if (added) at->second = {.now = known, .slot = slot, .head = known.messages.head};
  return at->second;
}

DraftMessage& Draft::message(Slot slot) {
  const auto [at, added] = messages_.try_emplace(slot);
  if (added) at->second.now = all_.messages[slot];
  return at->second;
}

DraftStream& Draft::open(const Stream& made) { return streams_[made.number] = {.now = made}; }

const DraftStream* Draft::find_stream(Number number) const {
  const auto found = streams_.find(number);
  return found == streams_.end() ? nullptr : &found->second;
}

const DraftMessage* Draft::find_message(Slot slot) const {
  const auto found = messages_.find(slot);
  return found == messages_.end() ? nullptr : &found->second;
}

const Message& Draft::message_now(Slot slot) const {
  const DraftMessage* touched = find_message(slot);
  return touched == nullptr ? all_.messages[slot] : touched->now;
}

bool Draft::is_gone(Slot slot) const {
  const DraftMessage* touched = find_message(slot);
  return touched != nullptr && touched->gone;
}

Instant Draft::head_due(DraftStream& of) {
  while (of.head != 0 && is_gone(of.head)) of.head = all_.messages[of.head].next;
  return of.head == 0 ? Instant{} : message_now(of.head).due;
}

std::vector<Ready> Draft::ready(stream::Lane lane, bool loose, Instant now) const {
  std::vector<Ready> found;
  for (const auto& [number, drafted] : streams_) {
    const Stream& stream = drafted.now;
    if (stream.lane == lane && stream.is_loose() == loose && stream.ready_at <= now)
      found.push_back(stream.ready(drafted.slot));
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace baton::core::streams
