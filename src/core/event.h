// The facts the log is made of. Each carries every value that applying it needs, because replay has nothing
// else to ask: no clock, no policy, no request.
//
// Tasks and leases are named by their lsn, which is unique within a log. A fact borrows its text and bytes
// from the request it was decided from, or from the record it was read from. Where a fact carries a blob,
// the blob is the last part of the record, so that its place in the log is known; of several, in order.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"
#include "core/blob.h"
#include "core/ids.h"
#include "core/stream/work_event.h"
#include "core/task/task.h"

namespace baton::core {

struct TaskCreated {
  std::string_view ns;
  std::string_view queue;
  std::string_view capabilities;  // canonical
  std::string_view key;           // may be empty
  std::uint64_t content = 0;      // with a key: hash of all that was submitted
  std::uint8_t priority = 0;
  Instant eligible_at;  // not before the entry's own time
  RetryPolicy retry;
  std::uint32_t max_attempts = 0;
  Duration max_hold;
  TaskId retry_of;         // a repeated task …
  BlobRef payload_of_old;  // … shares the old one's payload
  BlobView payload;
};

struct LeaseGranted {  // the lease is named by this entry's own lsn
  Lsn task = 0;
  std::uint32_t attempt = 0;
  Instant expiry;
  std::string_view worker;
};

struct LeaseExtended {
  Lsn task = 0;
  Lsn lease = 0;
  Instant expiry;
};

struct LeasesExtended {
  std::vector<LeaseExtended> items;
};

struct LeaseExpired {
  Lsn task = 0;
  Lsn lease = 0;
};

struct TaskCompleted {
  Lsn task = 0;
  Lsn lease = 0;
  BlobView result;
};

// A worker was told that it had lost its authority. Changes nothing but that it was told.
struct TaskCancelled {
  Lsn task = 0;
  Lsn lease = 0;
};

struct TaskFailed {
  Lsn task = 0;
  Lsn lease = 0;
  Ended outcome = Ended::failed;  // retried, failed or released
  std::uint32_t failures = 0;     // after this one
  Instant retry_at;
  BlobView reason;
};

struct TaskDead {
  Lsn task = 0;
  DeadReason why = DeadReason::cancelled;
  std::string_view actor;
  BlobView note;
};

struct TasksPurged {
  std::vector<Lsn> tasks;  // all of one queue, all finished
};

struct QueuePaused {
  std::string_view ns;
  std::string_view queue;
};
struct QueueResumed {
  std::string_view ns;
  std::string_view queue;
};

struct BlobMoved {
  Lsn task = 0;
  BlobPart part = BlobPart::payload;
  Lsn lease = 0;  // whose ending the note belongs to
  BlobView blob;
};

// Control facts: they touch no task and no lease.
struct EpochStarted {
  SecretKey key;  // the same in every epoch of a log
};
struct StateDigest {
  std::uint64_t digest = 0;  // of the state before this entry
};
struct SnapshotTaken {
  Lsn lsn = 0;
  std::uint64_t digest = 0;
};
struct Sealed {};  // a clean stop

using Event =
    std::variant<TaskCreated, LeaseGranted, LeaseExtended, LeasesExtended, LeaseExpired, TaskCompleted,
                 TaskCancelled, TaskFailed, TaskDead, TasksPurged, QueuePaused, QueueResumed, BlobMoved,
                 WorkBatchApplied, InstancesEvicted, InstanceLeft, LettersReplayed, LettersPurged,
                 StreamsForgotten, MessageBlobMoved, EpochStarted, StateDigest, SnapshotTaken, Sealed>;

}  // namespace baton::core
