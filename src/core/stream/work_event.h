// The facts about streams. One call of an instance is one WorkBatchApplied: what it came to, not what was
// asked, in the order in which it takes effect.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/blob.h"
#include "core/ids.h"
#include "stream/work.h"

namespace baton::core {

// It is new, or what was recorded of it is not up to date any more.
struct InstanceHeard {
  bool joins = false;
  std::string_view service;  // joins; else empty
  std::string_view host;     // empty: as before, as is a process of 0
  std::int32_t process = 0;
  std::string_view metadata;  // likewise
};

// What became of a message that was handed out.
enum class Reported : std::uint8_t {
  done,      // it is gone
  kept,      // likewise, but people may look at it for a while
  returned,  // done in part, or not at all: it can be claimed again
  retried,   // it failed, and is tried again when it is due
  dead,      // it failed, and nobody tries it any more
};
struct MessageReported {
  std::uint64_t message = 0;
  Reported how = Reported::done;
  std::int32_t status = 0;  // from now on
  // Of a failure:
  std::int32_t reason = 0;
  stream::FailurePolicy policy = stream::FailurePolicy::block;
  Instant due;
  BlobView error;
};

struct StreamRenewed {
  std::uint64_t stream = 0;
  Instant until;
};

// The stream is the last one opened before it in the entry with that id, or the one that is there.
struct MessageStored {
  stream::MessageId id;
  stream::Lane lane = stream::Lane::outbox;
  std::uint64_t stream = 0;  // its number; 0: it has none
  std::uint32_t data_bytes = 0;
  bool appends_event = false;
  bool is_event = false;
  stream::FailurePolicy policy = stream::FailurePolicy::block;
  BlobView body;
};

struct StreamOpened {  // they are numbered in this order
  stream::StreamId id;
  stream::Lane lane = stream::Lane::outbox;
  std::int32_t partition = 0;
};

struct StreamClaimed {
  std::uint64_t stream = 0;
  std::uint64_t given_seq = 0;  // up to this one, and …
  std::uint32_t count = 0;      // … this many of them
};

struct ReceptorRecorded {
  stream::MessageId event;
  std::string_view receptor;
  stream::ReceptorStatus status = stream::ReceptorStatus::none;
  std::int32_t attempts = 0;
  std::string_view error;
};

struct CheckpointMoved {
  stream::StreamId stream;
  std::string_view perspective;
  stream::PerspectiveStatus status = stream::PerspectiveStatus::none;
  std::string_view error;
  std::uint32_t version = 0;         // all events up to here are processed
  std::vector<std::uint32_t> ahead;  // newly processed, although an earlier one is missing
};

struct WorkBatchApplied {  // the epoch of its claims is this entry's own lsn
  std::string_view ns;
  stream::InstanceId instance;
  std::optional<InstanceHeard> heard;
  std::vector<MessageReported> reports;
  std::vector<ReceptorRecorded> receptors;
  std::vector<CheckpointMoved> checkpoints;
  std::vector<StreamRenewed> renewals;
  std::vector<StreamOpened> opened;
  std::vector<MessageStored> stored;
  Instant lease_until;  // of the claims
  std::vector<StreamClaimed> claims;

  bool changes_nothing() const {
    return !heard && reports.empty() && receptors.empty() && checkpoints.empty() && renewals.empty() &&
           stored.empty() && claims.empty();
  }
};

struct InstancesEvicted {  // all they held is free, and the deliveries count
  std::vector<std::uint64_t> instances;
};
struct InstanceLeft {  // all it held is free, and unharmed
  std::uint64_t instance = 0;
};

struct LettersReplayed {
  std::vector<std::uint64_t> letters;
  bool remembers = false;  // inboxes, what came back, as if it had just come; older entries do not know of it
};
struct LettersPurged {
  std::vector<std::uint64_t> letters;
};

// The oldest of what is remembered, so many of each, is remembered no longer.
struct StreamsForgotten {
  std::uint32_t seen = 0;
  std::uint32_t tombstones = 0;
  std::uint32_t events = 0;
  std::uint32_t receptors = 0;
  std::uint32_t checkpoints = 0;
  std::uint32_t kept = 0;
  std::vector<std::uint64_t> idle;  // streams

  friend bool operator==(const StreamsForgotten&, const StreamsForgotten&) = default;
};

// Which text of a message.
enum class MessagePart : std::uint8_t { body, error };
struct MessageBlobMoved {
  std::uint64_t number = 0;  // of the message, or of the dead letter
  bool is_letter = false;
  MessagePart part = MessagePart::body;
  BlobView blob;
};

}  // namespace baton::core
