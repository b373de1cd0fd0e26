// A task and the lease under which a worker holds it.
//
//        create              grant               complete
//        ------> waiting -------------> leased -------------> completed
//                  ^  |                  | | |
//                  |  |   lease expires, | | | fail, no retry left
//                  |  |   fail and retry,| | '--------------> failed
//                  |  |   release        | |
//                  '--|------------------' | cancel
//                     |                    '----------------> dead
//                     '-- cancel, or no attempt left -------^
//
// completed, failed and dead are final. A task that is to run again is a new task that names the old one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "core/ids.h"

namespace baton::core {

enum class TaskState : std::uint8_t { waiting, leased, completed, failed, dead };
inline constexpr std::size_t kTaskStates = 5;
std::string_view name_of(TaskState state);
constexpr bool is_final(TaskState state) { return state >= TaskState::completed; }

// Bytes the core does not look into: they stay in the log, the state says where and what they hash to.
struct BlobRef {
  Lsn lsn = 0;               // of the record they are part of
  std::uint64_t hash = 0;    // content_hash of the bytes
  std::uint32_t offset = 0;  // where they start, in the log's own terms
  std::uint32_t length = 0;
  friend bool operator==(const BlobRef&, const BlobRef&) = default;
};

// When and how often a failed task is tried again. All integers: every compiler computes the same.
struct RetryPolicy {
  std::uint32_t max_failures = 5;      // the failure with this number is final
  Duration base = seconds(1);          // wait after the first failure
  std::uint32_t factor_percent = 200;  // each wait is this much of the one before
  Duration max = minutes(5);           // no wait is longer
  std::uint32_t jitter_percent = 10;   // … give or take this much
  friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;
};

inline constexpr std::uint32_t kDefaultMaxAttempts = 20;

// What few tasks have; those that have none of it share slot 0.
struct TaskOptions {
  std::string key;            // chosen by the submitter, unique in the namespace
  std::uint64_t content = 0;  // hash of everything submitted under that key
  RetryPolicy retry;
  std::uint32_t max_attempts = kDefaultMaxAttempts;
  Duration max_hold;  // 0: a lease may be extended for ever
  TaskId retry_of;    // the finished task this one repeats
  Slot next = 0;
};

// How a hold on the task ended, newest first; the first one of a final task is how the task ended.
enum class Ended : std::uint8_t { expired, completed, retried, failed, released, dead };
std::string_view name_of(Ended how);

struct Ending {
  Lsn task = 0;
  Lsn lease = 0;  // 0 where nobody held the task
  Epoch lease_epoch = 0;
  Ended how = Ended::expired;
  bool told = false;  // a TaskCancelled for this lease is in the log
  Instant retry_at;   // retried, released: not before
  BlobRef note;       // result or reason
  Slot next = 0;
};

// Which of a task's blobs: its payload, or the note of one of its endings.
enum class BlobPart : std::uint8_t { payload, note };

enum class DeadReason : std::uint8_t { none, cancelled, attempts_exhausted };
std::string_view name_of(DeadReason why);

// Which list or timer a task is linked into; follows from its state, and is never written down.
enum class Shelf : std::uint8_t { none, ready, delayed, doomed, finished };

struct Task {
  Lsn lsn = 0;
  Instant created_at;
  Instant since;  // waiting: eligible from here on; else when it came into its state
  Lsn place = 0;  // of the entry that brought it into its state
  BlobRef payload;
  Epoch epoch = 0;
  Slot lane = 0;
  std::uint32_t attempt = 0;   // grants so far
  std::uint32_t failures = 0;  // failures that count
  TaskState state = TaskState::waiting;
  DeadReason dead_reason = DeadReason::none;
  Shelf shelf = Shelf::none;
  // Links within the state.
  Slot options = 0;
  Slot lease = 0;
  Slot endings = 0;
  Slot prev = 0;  // on the delayed shelf: its position in the timer
  Slot next = 0;

  TaskId id() const { return {epoch, lsn}; }
};
static_assert(sizeof(Task) == 96, "ten million of them: every byte counts");

struct Lease {
  Lsn lsn = 0;
  Lsn task = 0;
  Instant granted_at;
  Instant expiry;  // held while now < expiry
  Epoch epoch = 0;
  Slot task_slot = 0;
  Slot worker = 0;
  std::uint32_t timer = 0;  // its position in the expiry timer
  Slot next = 0;
};

}  // namespace baton::core
