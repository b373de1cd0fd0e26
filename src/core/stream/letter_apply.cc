// Dead letters come back into their streams, or are gone for good.
#include "core/stream/work_apply.h"

#include "base/check.h"
#include "core/stream/keeper.h"
#include "core/stream/rules.h"

namespace baton::core {
namespace {

using namespace streams;

// A letter is gone from the dead ones; its stream goes on if it was the last in the way.
void take_letter(State& state, Keeper& keeper, Slot slot, const Stamp& at) {
  Streams& all = state.streams;
  const Letter letter = all.dead.all[slot];
  keeper.remove_dead(slot);
  if (letter.message.stream == 0) return;
  Stream& stream = all.streams[letter.message.stream];
  const StreamChange change = keeper.change(letter.message.stream);
  BATON_CHECK(stream.letters > 0 && stream.parking >= (letter.parks ? 1 : 0));
  --stream.letters;
  stream.parking -= letter.parks ? 1 : 0;
  make_ready(stream, ready_from(stream, head_due(all, stream), at.time), at.lsn);
}

// Into its old place, and if somebody holds the stream, as one that was not handed out.
void put_back(State& state, Keeper& keeper, const Letter& letter, bool remembers, const Stamp& at) {
  Streams& all = state.streams;
  Message message = letter.message;
  if (message.stream == 0) {
    message.stream = keeper.add(Stream{.number = all.next_stream++,
                                       .service = letter.service,
                                       .lane = letter.lane,
                                       .next_seq = message.seq,
                                       .idle_since = at.time});
  }
  Stream& stream = all.streams[message.stream];
  const StreamChange change = keeper.change(message.stream);
  message.number = all.next_message++;
  message.status &= ~static_cast<std::int32_t>(stream::MessageStatus::failed);
  message.failures = 0;
  message.deliveries = 0;
  message.due = {};
  message.settled = stream.epoch;
  message.prev = message.next = 0;
  keeper.add(message);
  // What waits is remembered, and when it is done for as long again.
  if (remembers && letter.lane == stream::Lane::inbox)
    keeper.remember(Seen{.id = message.id, .service = letter.service, .since = at.time});
  const std::uint64_t next_seq = stream.next_seq;
  take_message(stream, at.time, at.lsn);
  if (!stream.is_loose()) stream.next_seq = next_seq;
}

}  // namespace

void fact(State& state, const LettersReplayed& event, const Stamp& at) {
  Keeper keeper(state.streams, state.digest);
  for (const Number number : event.letters) {
    const Slot slot = keeper.recorded_letter(number);
    const Letter letter = state.streams.dead.all[slot];
    // First the message, then the letter: its stream, or else its service, is never without either.
    put_back(state, keeper, letter, event.remembers, at);
    take_letter(state, keeper, slot, at);
  }
}

void fact(State& state, const LettersPurged& event, const Stamp& at) {
  Keeper keeper(state.streams, state.digest);
  for (const Number number : event.letters) take_letter(state, keeper, keeper.recorded_letter(number), at);
}

}  // namespace baton::core
