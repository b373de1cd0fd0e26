// What a request comes to: one entry and a reply, a reply from what is already true, or a refusal.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/event.h"
#include "core/limits.h"
#include "core/stream/work_request.h"

namespace baton::core {

// When a request is decided, and under which rules. `lsn` is what the entry will get, if there is one.
struct Moment {
  Instant now;
  Epoch epoch = 0;
  Lsn lsn = 0;
  const Rules& rules;
};

struct Submitted {
  TaskId task;
  bool existed = false;  // the key was known, with the same content
};
struct Granted {
  TaskId task;
  LeaseId lease;
  std::uint32_t attempt = 0;
  Duration ttl;  // relative: a worker's clock is its own
  BlobRef payload;
};
enum class NothingBecause : std::uint8_t { no_task, paused, at_capacity };
struct Nothing {
  NothingBecause why = NothingBecause::no_task;
};
struct Extended {
  Duration ttl;  // what is left, and durable
};
struct ExtendedMany {
  std::vector<Result<Extended>> items;
};
// The attempt is over, and this is how: completed, retried (not before), failed or released.
struct Committed {
  Ended outcome = Ended::completed;
  Instant retry_at;
};
struct Cancelled {};  // the worker has lost its authority; its result is discarded
struct Accepted {};
struct Purged {
  std::uint32_t count = 0;
  std::optional<std::uint64_t> last_letter;  // where it was about letters: the newest there has ever been
};

using Reply = std::variant<Submitted, Granted, Nothing, Extended, ExtendedMany, Committed, Cancelled,
                           Accepted, Purged, WorkProcessed>;

struct Append {
  Event event;
  Reply reply;
};
struct Reject {
  Errc code;
  std::string message;
};
using Decision = std::variant<Append, Reply, Reject>;

}  // namespace baton::core
