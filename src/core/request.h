// What may be asked of the authority. Each request is decided alone, becomes at most one log entry, and
// lives in a namespace that it cannot look out of.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/time.h"
#include "core/ids.h"
#include "core/names.h"
#include "core/task/task.h"

namespace baton::core {

// Bytes of a request and their hash, computed by whoever builds the request, off the loop. The hash decides
// what is a repetition and what a conflict, so the two cannot be changed apart.
class Blob {
 public:
  Blob() = default;
  explicit Blob(Bytes content)
      : bytes_(std::move(content)), hash_(bytes_.empty() ? 0 : content_hash(bytes_)) {}
  explicit Blob(std::string_view text) : Blob(Bytes(bytes_of(text).begin(), bytes_of(text).end())) {}
  Blob(const Blob&) = default;
  Blob& operator=(const Blob&) = default;
  Blob(Blob&& from) noexcept : bytes_(std::exchange(from.bytes_, {})), hash_(std::exchange(from.hash_, 0)) {}
  Blob& operator=(Blob&& from) noexcept {
    bytes_ = std::exchange(from.bytes_, {});
    hash_ = std::exchange(from.hash_, 0);
    return *this;
  }
  ~Blob() = default;

  const Bytes& bytes() const { return bytes_; }
  std::uint64_t hash() const { return hash_; }  // 0 if there are no bytes
  // The bytes for somebody else; none are left here.
  Bytes take() {
    hash_ = 0;
    return std::exchange(bytes_, {});
  }

 private:
  Bytes bytes_;
  std::uint64_t hash_ = 0;
};

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
  TaskId task;
  BlobPart part = BlobPart::payload;
  Lsn lease = 0;  // whose ending the note belongs to
  BlobRef from;
  Blob blob;
};

using Request =
    std::variant<SubmitTask, LeaseTask, ExtendLease, ExtendLeases, CompleteTask, FailTask, ReleaseTask,
                 CancelTask, RequeueTask, PauseQueue, ResumeQueue, PurgeQueue, MoveBlob>;

}  // namespace baton::core
