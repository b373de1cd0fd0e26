// Streams as the coordinator knows them: who works, which streams have messages, who holds which, and what
// is remembered so that nothing happens twice.
//
//            store               claim                 report on everything
//   (none) --------> ready ----------------> held ----------------------------> ready, or drained
//                      ^                      |
//                      '----------------------'
//          the lease is over and somebody claims it; the holder leaves, or is evicted
//
// A message without a stream has one to itself, which has no id: so holding is the same for all. Streams,
// messages and letters are named by numbers that only grow; those are what entries of the log speak of.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/mutant.h"
#include "base/paged.h"
#include "base/time.h"
#include "core/id_index.h"
#include "core/ids.h"
#include "core/name_map.h"
#include "core/stream/chain.h"
#include "core/stream/uuid_map.h"
#include "core/stream/versions.h"
#include "core/task/task.h"
#include "stream/work.h"

namespace baton::core::streams {

using Number = std::uint64_t;

inline constexpr Instant kNever{std::numeric_limits<std::int64_t>::max()};

// When a stream may be handed out. Of two at the same time the one that became so first comes first.
struct Ready {
  Instant at;
  Lsn since = 0;
  Number stream = 0;
  Slot slot = 0;
  friend auto operator<=>(const Ready&, const Ready&) = default;
};

struct Stream {
  stream::StreamId id;  // nil: the only message in it has no stream
  Number number = 0;
  Slot service = 0;
  stream::Lane lane = stream::Lane::outbox;
  std::uint32_t parking = 0;  // dead letters behind which it stops until they are replayed or purged
  std::int32_t partition = -1;
  Slot owner = 0;                 // the instance that holds it
  std::uint32_t outstanding = 0;  // handed out, and not yet reported on
  std::uint32_t pending = 0;      // messages that are there
  std::uint32_t letters = 0;      // dead ones that may come back
  Lsn epoch = 0;                  // of the last claim
  Instant lease_until;
  Instant ready_at = kNever;  // held: when the lease ends, so a lost stream comes round by itself
  Lsn ready_since = 0;        // the entry that made it so
  std::uint64_t next_seq = 1;
  std::uint64_t given_seq = 0;  // handed out up to here, under this epoch
  Instant idle_since;
  Chain messages;  // by sequence
  Slot prev = 0;   // among those its owner holds, or the idle ones
  Slot next = 0;

  bool is_loose() const { return id.value.is_nil(); }
  bool is_idle() const { return pending == 0 && owner == 0 && letters == 0; }
  Ready ready(Slot slot) const { return {ready_at, ready_since, number, slot}; }
};

struct Message {
  stream::MessageId id;
  Number number = 0;
  Slot stream = 0;
  std::uint64_t seq = 0;
  BlobRef body;
  BlobRef error;  // what the last failure said
  Instant stored_at;
  Instant due;      // not before; 0: it has not failed
  Lsn settled = 0;  // reported on under this epoch, and still here
  std::uint32_t data_bytes = 0;
  std::int32_t status = 1;
  std::uint32_t deliveries = 0;  // that ended, and neither well nor by being given back
  std::uint32_t failures = 0;
  std::int32_t reason = 99;
  stream::FailurePolicy policy = stream::FailurePolicy::block;
  bool is_event = false;
  Slot prev = 0;
  Slot next = 0;
};

// A message that nobody tries any more, or that is done and was kept for people to look at.
struct Letter {
  Message message;  // its links are not used; `stream` is 0 if it had none
  Number number = 0;
  Slot service = 0;
  stream::Lane lane = stream::Lane::outbox;
  bool is_dead = false;
  bool parks = false;
  Instant since;
  stream::InstanceId by;
  Slot prev = 0;
  Slot next = 0;
};

struct Instance {
  stream::InstanceId id;
  Number number = 0;
  Slot service = 0;
  std::string host;
  std::int32_t process = 0;
  std::string metadata;
  Instant started;
  Instant heard;  // as it was last recorded
  Chain held;     // streams
  std::uint32_t holds = 0;
  std::uint64_t streams = 0;   // of what it holds; the rest are messages without one
  std::uint64_t messages = 0;  // it was given, and has not reported on
  Slot next = 0;
};

struct LaneOfService {
  std::set<Ready> ready;  // streams, held ones too
  std::set<Ready> loose;  // messages without a stream
  std::uint64_t messages = 0;
  std::uint64_t held = 0;     // of the messages
  std::uint64_t letters = 0;  // dead ones
  std::uint64_t streams = 0;  // that have messages
  std::uint64_t held_streams = 0;
  std::uint64_t parked_streams = 0;
};

struct Service {
  std::string ns;
  std::string name;
  Slot space = 0;
  std::map<stream::InstanceId, Slot> instances;
  std::array<LaneOfService, 2> lanes;
  std::uint64_t uses = 0;  // instances, streams, letters and messages seen that belong to it
  Slot next = 0;

  bool is_known() const { return !ns.empty(); }  // its slot is in use
  LaneOfService& at(stream::Lane lane) { return lanes[static_cast<std::size_t>(lane) - 1]; }
  const LaneOfService& at(stream::Lane lane) const { return lanes[static_cast<std::size_t>(lane) - 1]; }
};

// What belongs to a namespace and to no service in particular is found through it.
struct Space {
  std::string name;
  std::uint32_t services = 0;
  std::uint64_t uses = 0;   // what belongs to it and to no service
  Slot unused_service = 0;  // stays for the sake of that
  Slot next = 0;
};

// An inbox has seen this message.
struct Seen {
  stream::MessageId id;
  Slot service = 0;
  Instant since;
  Slot prev = 0;
  Slot next = 0;
};

// An evicted instance may still be running, and must not come back.
struct Tombstone {
  stream::InstanceId id;
  Slot space = 0;
  Instant since;
  Slot prev = 0;
  Slot next = 0;
};

// The events of a stream, whichever service stored them.
struct History {
  stream::StreamId id;
  Slot space = 0;
  std::uint32_t version = 0;  // of the newest
  std::uint32_t known = 0;    // events and checkpoints that are remembered
  std::uint32_t events = 0;   // of those; the newest ones
  Slot next = 0;
};

struct StoredEvent {
  stream::MessageId id;
  Slot history = 0;
  std::uint32_t version = 0;
  Instant since;
  Slot prev = 0;
  Slot next = 0;
};

struct Checkpoint {
  Slot history = 0;
  std::string perspective;
  std::uint32_t version = 0;  // all events up to here are processed
  Versions ahead;             // processed although an earlier one is missing
  stream::PerspectiveStatus status = stream::PerspectiveStatus::none;
  std::string error;
  Instant since;
  Slot prev = 0;
  Slot next = 0;
};

struct ReceptorRecord {
  stream::MessageId event;
  Slot space = 0;
  std::string receptor;
  stream::ReceptorStatus status = stream::ReceptorStatus::none;
  std::int32_t attempts = 0;
  std::string error;
  Instant since;
  Slot prev = 0;
  Slot next = 0;
};

// What is remembered, the oldest first.
template <class T>
struct Memory {
  Slab<T> all;
  Chain by_age;
};

struct Streams {
  Number next_stream = 1;
  Number next_message = 1;
  Number next_letter = 1;

  Slab<Space> spaces;
  Slab<Service> services;
  Slab<Instance> instances;
  Slab<Stream> streams;
  Slab<Message> messages;
  Memory<Letter> dead;
  Memory<Letter> kept;
  Memory<Seen> seen;
  Memory<Tombstone> tombstones;
  Memory<StoredEvent> events;
  Memory<ReceptorRecord> receptors;
  Memory<Checkpoint> checkpoints;
  Slab<History> histories;

  NameMap space_names;
  NameMap service_names;
  IdIndex stream_numbers;
  IdIndex message_numbers;
  std::map<Number, Slot> instance_numbers;
  std::map<Number, Slot> dead_numbers;
  std::set<Number> dead_in_no_way;  // letters behind which no stream is parked
  Chain idle;                       // streams with nothing in them, the longest so first

  // Scopes: a lane of a service for streams and messages, a service for what an inbox has seen, else a space.
  UuidMap stream_ids;
  UuidMap message_ids;
  UuidMap instance_ids;
  UuidMap seen_ids;
  UuidMap tombstone_ids;
  UuidMap event_ids;
  UuidMap history_ids;
  NameMap receptor_names;    // of event and receptor
  NameMap checkpoint_names;  // of stream and perspective
};

constexpr std::uint32_t scope_of(Slot service, stream::Lane lane) {
  return service * 2 + (lane == stream::Lane::inbox ? 1 : 0);
}

Slot find_space(const Streams& all, std::string_view ns);
Slot find_service(const Streams& all, std::string_view ns, std::string_view service);
Slot find_instance(const Streams& all, std::string_view ns, stream::InstanceId id);
bool was_evicted(const Streams& all, std::string_view ns, stream::InstanceId id);
Slot find_message(const Streams& all, Slot service, stream::Lane lane, stream::MessageId id);
Slot find_event(const Streams& all, Slot space, stream::StreamId of, stream::MessageId id);
Slot find_receptor(const Streams& all, Slot space, stream::MessageId event, std::string_view receptor);
Slot find_checkpoint(const Streams& all, Slot space, stream::StreamId of, std::string_view perspective);

// When the first message of a stream may be tried again; all behind it wait as long.
inline Instant head_due(const Streams& all, const Stream& of) {
  return of.messages.head == 0 ? Instant{} : all.messages[of.messages.head].due;
}
// When it may be handed out, given that it has just come free, or been held for longer. One that stops behind
// a dead letter may not, whoever holds it: it would stand in the way of those that may.
inline Instant ready_from(const Stream& of, Instant head_due, Instant now) {
  if (of.parking > 0 && !mutant(Mutant::m34_parked_stream_handed_out)) return kNever;
  if (mutant(Mutant::m29_retry_overtaken)) head_due = {};
  if (of.owner != 0) return std::max(of.lease_until, head_due);
  return of.pending > 0 ? std::max(now, head_due) : kNever;
}
// Given to its holder, and not yet reported on.
constexpr bool is_out(const Stream& of, const Message& message) {
  return of.owner != 0 && message.seq <= of.given_seq && message.settled != of.epoch;
}

}  // namespace baton::core::streams
