// One turn of an instance: all it says in one call, and all it is answered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "stream/work.h"

namespace baton::stream {

inline constexpr std::int32_t kPartitions = 10'000;
inline constexpr Duration kLease = minutes(5);
inline constexpr Duration kStale = minutes(10);
inline constexpr std::size_t kItemsMax = 10'000;                       // in one list of a call
inline constexpr std::size_t kMessageBytesMax = std::size_t{1} << 20;  // data of one message

// In the order in which it takes effect.
struct WorkBatchRequest {
  Instance instance;
  std::vector<Completion> outbox_completions;
  std::vector<Completion> inbox_completions;
  std::vector<Failure> outbox_failures;
  std::vector<Failure> inbox_failures;
  std::vector<ReceptorResult> receptor_completions;
  std::vector<ReceptorResult> receptor_failures;
  std::vector<PerspectiveResult> perspective_completions;
  std::vector<PerspectiveResult> perspective_failures;
  std::vector<Held> outbox_renewals;
  std::vector<Held> inbox_renewals;
  std::vector<NewMessage> new_outbox_messages;
  std::vector<NewMessage> new_inbox_messages;
  WorkFlags flags = WorkFlags::none;
  std::int32_t partitions = kPartitions;
  std::optional<std::int32_t> partitions_max;  // distinct ones this instance holds streams of
  Duration lease = kLease;                     // whole seconds
  Duration stale = kStale;                     // instances silent for longer are evicted
  ClaimLimits limits;
};

// Where an instance stands among the active ones of its service that ask for work, itself included, ordered
// by id: stream s is offered to the one with `partition_of(s) % active == rank`, and after a grace to
// everybody.
struct Standing {
  std::int32_t rank = 0;
  std::int32_t active = 1;
};

// One verdict for each item, in the order of the request, and the work that was claimed by this call.
struct WorkBatch {
  Standing standing;
  std::vector<Verdict> outbox_completions;
  std::vector<Verdict> inbox_completions;
  std::vector<Verdict> outbox_failures;
  std::vector<Verdict> inbox_failures;
  std::vector<Verdict> receptor_completions;
  std::vector<Verdict> receptor_failures;
  std::vector<Verdict> perspective_completions;
  std::vector<Verdict> perspective_failures;
  std::vector<Verdict> outbox_renewals;
  std::vector<Verdict> inbox_renewals;
  std::vector<Verdict> new_outbox_messages;
  std::vector<Verdict> new_inbox_messages;
  std::vector<Work> work;  // by lane and stream, in order
};

struct ClaimRequest {
  bool outbox = true;
  bool inbox = true;
  Duration lease = kLease;
  Duration stale = kStale;
  std::optional<std::int32_t> partitions_max;
  ClaimLimits limits;
};

// What a turn claims; nothing, if its flags say so.
inline std::optional<ClaimRequest> claim_of(const WorkBatchRequest& request) {
  const bool outbox = !has(request.flags, WorkFlags::skip_outbox_claiming);
  const bool inbox = !has(request.flags, WorkFlags::skip_inbox_claiming);
  if (!outbox && !inbox) return std::nullopt;
  return ClaimRequest{.outbox = outbox,
                      .inbox = inbox,
                      .lease = request.lease,
                      .stale = request.stale,
                      .partitions_max = request.partitions_max,
                      .limits = request.limits};
}

}  // namespace baton::stream
