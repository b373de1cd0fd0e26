// How streams and messages would stand after what a call has come to so far. What comes later in the call is
// decided by this, though nothing has happened yet.
#pragma once

#include <cstddef>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include "core/stream/streams.h"

namespace baton::core::streams {

// Of its messages those from `head` on are there, but for some that are noted as gone; then come the added.
struct DraftStream {
  Stream now;
  Slot slot = 0;  // 0: it does not exist yet
  Slot head = 0;
  std::vector<std::size_t> added;  // places in the entry's list of stored messages
};
struct DraftMessage {
  Message now;
  bool gone = false;
};

class Draft {
 public:
  // `memory` is given back as a whole when the call is decided.
  Draft(const Streams& all, std::pmr::memory_resource& memory)
      : all_(all), streams_(&memory), messages_(&memory) {}

  const Streams& all() const { return all_; }
  // As they are, to be changed.
  DraftStream& stream(Slot slot);
  DraftMessage& message(Slot slot);
  // One that the call brings into being.
  DraftStream& open(const Stream& made);
  DraftStream& opened(Number number) { return streams_.at(number); }

  const DraftStream* find_stream(Number number) const;  // null: nobody has touched it
  const DraftMessage* find_message(Slot slot) const;
  const Message& message_now(Slot slot) const;
  bool is_gone(Slot slot) const;
  Instant head_due(DraftStream& of);  // 0 where nothing waits for a time

  // Touched ones that may be handed out by `now`, in order.
  std::vector<Ready> ready(stream::Lane lane, bool loose, Instant now) const;

 private:
  const Streams& all_;
  std::pmr::unordered_map<Number, DraftStream> streams_;
  std::pmr::unordered_map<Slot, DraftMessage> messages_;
};

}  // namespace baton::core::streams
