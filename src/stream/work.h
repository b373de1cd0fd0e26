// What a service says about its messages, and what it is given to do.
//
// A message waits in one of two lanes: the outbox (to be published) or the inbox (to be handled). Messages of
// one stream are handed out in the order in which they were stored, by one instance at a time; an instance
// holds the whole stream until it has reported on everything it was given. The numbers of the enumerations
// are part of the contract: they stand in the database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/time.h"
#include "stream/uuid.h"

namespace baton::stream {

enum class Lane : std::int16_t { outbox = 1, inbox = 2 };

// Flags, which only ever accumulate. Done is `published` in the outbox and `event_stored` in the inbox.
enum class MessageStatus : std::int32_t {
  none = 0,
  stored = 1,
  event_stored = 2,
  published = 4,
  failed = 32768
};

// `debug_mode` and the last two go in; `newly_stored` and `orphaned` (given to somebody before, who
// lost it) come out. The others are reserved, and refused.
enum class WorkFlags : std::int32_t {
  none = 0,
  newly_stored = 1,
  orphaned = 2,
  debug_mode = 4,  // what is done is kept for people to look at
  from_event_store = 8,
  high_priority = 16,
  retry_after_failure = 32,
  skip_inbox_claiming = 64,
  skip_outbox_claiming = 128,
};

enum class FailureReason : std::int32_t {
  none = 0,
  transport_not_ready = 1,
  transport_exception = 2,
  serialization_error = 3,
  validation_error = 4,
  max_attempts_exceeded = 5,
  lease_expired = 6,
  event_storage_failure = 7,
  unknown = 99,
};

// What a failure means for those behind it in the stream.
enum class FailurePolicy : std::int16_t {
  block = 0,        // it is tried again later, and they wait; after the last attempt it is a dead letter
  park = 1,         // it becomes a dead letter at once, and they go on
  park_stream = 2,  // likewise, but they wait until it is replayed or purged
};

enum class ReceptorStatus : std::int16_t { none = 0, processing = 1, completed = 2, failed = 4 };
enum class PerspectiveStatus : std::int16_t {
  none = 0,
  processing = 1,
  completed = 2,
  failed = 4,
  catching_up = 8
};

template <class E>
concept FlagSet = std::is_same_v<E, MessageStatus> || std::is_same_v<E, WorkFlags>;
template <FlagSet E>
constexpr E operator|(E a, E b) {
  return static_cast<E>(static_cast<std::int32_t>(a) | static_cast<std::int32_t>(b));
}
template <FlagSet E>
constexpr bool has(E set, E flag) {
  return (static_cast<std::int32_t>(set) & static_cast<std::int32_t>(flag)) != 0;
}

// Grows with every claim. Whoever reports under an old one is told `lost_lease`, and nothing changes.
struct Epoch {
  std::int64_t value = 0;
  friend auto operator<=>(const Epoch&, const Epoch&) = default;
};

// What became of one item of a call. All but `ok` left everything as it was.
enum class Verdict : std::uint8_t {
  ok,
  lost_lease,  // somebody else holds it by now, or nobody does
  unknown,     // no such message waits: it is done, or it never was
  duplicate,   // this was said before, or this message was stored before
};

struct Instance {
  InstanceId id;
  std::string service;  // instances of one service share its work
  std::string host;
  std::int32_t process = 0;
  std::string metadata;  // JSON, or empty: what was said before stays
};

struct NewMessage {
  MessageId id;
  std::optional<StreamId> stream;  // without one: no order, and any instance may have it
  std::string target;              // the destination (outbox) or handler (inbox)
  std::string type;
  std::string envelope_type;
  std::string data;       // JSON
  std::string metadata;   // JSON; empty: {}
  std::string scope;      // JSON; empty: none
  bool is_event = false;  // append it to the event store of its stream as well
  FailurePolicy policy = FailurePolicy::block;
};

// A message as its holder names it. Without an epoch, whoever holds the message now may speak of it.
struct Held {
  MessageId message;
  std::optional<Epoch> epoch;
  friend bool operator==(const Held&, const Held&) = default;
};
struct Completion {
  Held held;
  MessageStatus status = MessageStatus::none;  // added to what it has; `none` gives the message back
};
struct Failure {
  Held held;
  MessageStatus completed = MessageStatus::none;  // what was achieved all the same
  std::string error;
  FailureReason reason = FailureReason::unknown;
  std::optional<FailurePolicy> policy;  // instead of the message's own
};

struct ReceptorResult {
  MessageId event;
  std::string receptor;
  ReceptorStatus status = ReceptorStatus::completed;
  std::string error;
  std::int32_t attempt = 1;
};
// A perspective has processed these events of a stream; if none are named, all up to `last_event`. The
// checkpoint moves to the last event before which none is missing.
struct PerspectiveResult {
  StreamId stream;
  std::string perspective;
  MessageId last_event;
  std::vector<MessageId> processed;
  PerspectiveStatus status = PerspectiveStatus::completed;
  std::string error;
};

struct Work {
  Lane lane = Lane::outbox;
  MessageId message;
  Epoch epoch;
  std::optional<StreamId> stream;
  std::int32_t partition = -1;  // without a stream: -1
  std::int64_t sequence = 0;    // in its stream, from 1, without gaps
  std::string target;
  std::string type;
  std::string envelope_type;
  std::string data;
  std::string metadata;
  std::string scope;
  MessageStatus status = MessageStatus::stored;
  WorkFlags flags = WorkFlags::none;
  std::int32_t deliveries = 1;  // this one included; those given back unharmed do not count
  std::int32_t failures = 0;
  FailureReason reason = FailureReason::unknown;  // of the last failure
  std::string error;

  Held held() const { return {message, epoch}; }
};

// Of one claim, for each lane. The first message is given however large it is.
struct ClaimLimits {
  std::int32_t streams = 300;
  std::int32_t messages = 300;
  std::int32_t messages_per_stream = 100;
  std::int64_t bytes = std::int64_t{8} << 20;
};

}  // namespace baton::stream
