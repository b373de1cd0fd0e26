// What may be asked of the authority. Each request is decided alone, becomes at most one log entry, and
// lives in a namespace that it cannot look out of.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "core/blob.h"
#include "core/ids.h"
#include "core/names.h"
#include "core/stream/work_event.h"
#include "core/stream/work_request.h"
#include "core/task/task.h"

namespace baton::core {

// A task is named by its id, or by the key it was submitted under.
struct TaskRef {
  TaskId id;
  std::string key;  // used if not empty

  TaskRef() = default;
  TaskRef(TaskId task) : id(task) {}
  static TaskRef by_key(std::string key) {
    TaskRef ref;
    ref.key = std::move(key);
    return ref;
  }
};

struct SubmitTask {
  std::string ns;
  std::string queue;
  Blob payload;
  std::string key;            // optional; the same key and content again gives the same task
  std::uint8_t priority = 0;  // 0 to 9, larger first
  Duration delay;             // eligible only after this long
  Capabilities requires_capabilities;
  RetryPolicy retry;
  std::uint32_t max_attempts = kDefaultMaxAttempts;
  Duration max_hold;  // 0: no limit
};

// A worker asks for one task. Of all it may take: the highest priority, then the one eligible longest.
struct LeaseTask {
  std::string ns;
  std::vector<std::string> queues;
  std::string worker;
  Capabilities capabilities;
  Duration ttl = seconds(30);
};

struct ExtendLease {
  std::string ns;
  TaskRef task;
  LeaseId lease;
  Duration ttl = seconds(30);
};

// Many leases of one worker at once, in one entry; each has a verdict of its own.
struct ExtendLeases {
  std::string ns;
  std::vector<ExtendLease> items;  // their own `ns` is not looked at
};

struct CompleteTask {
  std::string ns;
  TaskRef task;
  LeaseId lease;
  Blob result;
};

struct FailTask {
  std::string ns;
  TaskRef task;
  LeaseId lease;
  Blob reason;
  bool final = false;  // true: do not retry, whatever the policy says
  Duration delay;      // 0: as the policy says
};

// Gives the task back unharmed: no failure is counted, and it is eligible at once or after the delay.
struct ReleaseTask {
  std::string ns;
  TaskRef task;
  LeaseId lease;
  Duration delay;
};

// The submitter no longer wants it. Whoever holds it learns at the next contact.
struct CancelTask {
  std::string ns;
  TaskRef task;
  std::string actor;
  Blob note;
};

// A dead or failed task once more, as a new task with the old one's payload and options but not its key.
struct RequeueTask {
  std::string ns;
  TaskRef task;
  std::string key;  // optional, of the new task
};

struct PauseQueue {
  std::string ns;
  std::string queue;
};
struct ResumeQueue {
  std::string ns;
  std::string queue;
};

// Forgets finished tasks of a queue now instead of at the end of their retention, oldest first.
struct PurgeQueue {
  std::string ns;
  std::string queue;
  std::uint32_t count_max = 0;  // 0: as many as one entry takes
};

// From the engine: a blob that is alone in an old segment goes to the head of the log.
struct MoveBlob {
  struct OfMessage {
    std::uint64_t number = 0;  // of the message, or of the dead letter
    bool is_letter = false;
    MessagePart part = MessagePart::body;
  };
  TaskId task;
  BlobPart part = BlobPart::payload;
  Lsn lease = 0;  // whose ending the note belongs to
  BlobRef from;
  Blob blob;
  std::optional<OfMessage> message;  // if it belongs to one, and not to a task
};

using Request = std::variant<SubmitTask, LeaseTask, ExtendLease, ExtendLeases, CompleteTask, FailTask,
                             ReleaseTask, CancelTask, RequeueTask, PauseQueue, ResumeQueue, PurgeQueue,
                             MoveBlob, ProcessWork, LeaveWork, ReplayLetters, PurgeLetters>;

}  // namespace baton::core
