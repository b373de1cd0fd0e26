// What the tests of streams in the core share: instances, messages and calls by number.
#pragma once

#include <string>
#include <vector>

#include "core/state_codec.h"
#include "core/stream/dead_letters.h"
#include "core/stream/forgetting.h"
#include "core/stream/work_decision.h"
#include "core/testing.h"

namespace baton::core {

inline stream::Uuid numbered(unsigned kind, unsigned number) {
  stream::Uuid uuid;
  uuid.bytes[0] = std::byte(kind);
  for (unsigned i = 0; i < 4; ++i) uuid.bytes[15 - i] = std::byte(number >> (8 * i));
  return uuid;
}
inline stream::MessageId message_id(unsigned number) { return {numbered(1, number)}; }
inline stream::StreamId stream_id(unsigned number) { return {numbered(2, number)}; }
inline stream::InstanceId instance_id(unsigned number) { return {numbered(3, number)}; }

inline StoreMessage a_message(unsigned number, unsigned of_stream) {
  StoreMessage message{.id = message_id(number), .body = Blob("body " + std::to_string(number))};
  if (of_stream != 0) message.stream = stream_id(of_stream);
  message.data_bytes = 4;
  return message;
}

inline ProcessWork a_call(unsigned instance) { return {.ns = "n", .instance = instance_id(instance)}; }
inline ProcessWork a_heartbeat(unsigned instance, Duration stale = stream::kStale) {
  ProcessWork call = a_call(instance);
  call.heartbeat = {.id = call.instance, .service = "orders", .host = "here", .process = 1};
  call.stale = stale;
  return call;
}
inline ProcessWork a_store(unsigned instance, std::vector<StoreMessage> messages) {
  ProcessWork call = a_call(instance);
  call.messages.inbox = std::move(messages);
  return call;
}
inline ProcessWork a_claim(unsigned instance, stream::ClaimRequest claim = {}) {
  ProcessWork call = a_call(instance);
  call.claim = claim;
  return call;
}
inline ProcessWork a_completion(unsigned instance, const std::vector<GivenMessage>& work) {
  ProcessWork call = a_call(instance);
  for (const GivenMessage& one : work) {
    call.completions[one.lane].push_back(
        {.held = {one.message, stream::Epoch{static_cast<std::int64_t>(one.epoch)}},
         .status = stream::MessageStatus::event_stored | stream::MessageStatus::published});
  }
  return call;
}

inline State reloaded(const State& state) {
  StateWriter writer(state);
  StateReader reader;
  for (Bytes piece; writer.next(piece); piece.clear()) {
    const auto taken = reader.take(piece);
    EXPECT_TRUE(taken.has_value());
  }
  auto read = reader.finish();
  EXPECT_TRUE(read.has_value()) << (read ? "" : read.error().message);
  return read ? std::move(*read) : State{};
}

}  // namespace baton::core
