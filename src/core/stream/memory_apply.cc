// What is remembered is forgotten, or lies elsewhere.
#include "core/stream/work_apply.h"

#include "base/check.h"
#include "core/stream/keeper.h"

namespace baton::core {

using namespace streams;

void fact(State& state, const StreamsForgotten& event, const Stamp&) {
  Keeper keeper(state.streams, state.digest);
  for (std::uint32_t i = 0; i < event.seen; ++i) keeper.forget_seen();
  for (std::uint32_t i = 0; i < event.tombstones; ++i) keeper.forget_tombstone();
  for (std::uint32_t i = 0; i < event.events; ++i) keeper.forget_event();
  for (std::uint32_t i = 0; i < event.receptors; ++i) keeper.forget_receptor();
  for (std::uint32_t i = 0; i < event.checkpoints; ++i) keeper.forget_checkpoint();
  for (std::uint32_t i = 0; i < event.kept; ++i) keeper.forget_kept();
  for (const Number number : event.idle) keeper.remove_stream(keeper.recorded_stream(number));
}

void fact(State& state, const MessageBlobMoved& event, const Stamp& at) {
  Streams& all = state.streams;
  Keeper keeper(all, state.digest);
  const auto length = static_cast<std::uint32_t>(event.blob.bytes.size());
  const auto move = [&](const auto& fact, Message& message) {
    BlobRef& ref = event.part == MessagePart::body ? message.body : message.error;
    BATON_CHECK(length > 0 && ref.hash == event.blob.hash && ref.length == length);
    const auto rewriting = keeper.rewrite(fact);
    ref = {.lsn = at.lsn, .hash = event.blob.hash, .offset = at.body_end - length, .length = length};
  };
  if (event.is_letter) {
    Letter& letter = all.dead.all[keeper.recorded_letter(event.number)];
    move(letter, letter.message);
  } else {
    Message& message = all.messages[keeper.recorded_message(event.number)];
    move(message, message);
  }
}

}  // namespace baton::core
