// Coordinates the messages of many instances of a service: who holds which stream, what is done, what is
// next.
//
//   WorkBatchRequest request{.instance = me};
//   for (;;) {
//     auto batch = coordinator.process_work_batch(request, stop);
//     ... handle batch->work in order, stream by stream, and note what became of it in the next request
//   }
//
// Every call is atomic: all of it happened, or nothing did. Every call may be repeated after a reply was lost
// (OUTCOME_UNKNOWN): what was said before is answered with `duplicate`, `unknown` or `lost_lease` and changes
// nothing more. A call that is stopped through its token returns CLOSED, and nothing happened.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/result.h"
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

// Where an instance stands among the active ones of its service, ordered by id: stream s is offered to the
// one with `partition_of(s) % active == rank`, and after a grace to everybody.
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

class WorkCoordinator {
 public:
  virtual ~WorkCoordinator() = default;

  virtual Result<WorkBatch> process_work_batch(const WorkBatchRequest& request,
                                               std::stop_token stop = {}) = 0;

  // The same in parts, each atomic by itself. An instance makes itself known by its first heartbeat.
  virtual Result<Standing> heartbeat(const Instance& instance, Duration stale = kStale,
                                     std::stop_token stop = {}) = 0;
  virtual Result<std::vector<Verdict>> store(InstanceId instance, Lane lane,
                                             const std::vector<NewMessage>& messages,
                                             std::int32_t partitions = kPartitions,
                                             std::stop_token stop = {}) = 0;
  virtual Result<std::vector<Work>> claim(InstanceId instance, const ClaimRequest& request = {},
                                          std::stop_token stop = {}) = 0;
  virtual Result<std::vector<Verdict>> complete(InstanceId instance, Lane lane,
                                                const std::vector<Completion>& completions,
                                                WorkFlags flags = WorkFlags::none,
                                                std::stop_token stop = {}) = 0;
  virtual Result<std::vector<Verdict>> fail(InstanceId instance, Lane lane,
                                            const std::vector<Failure>& failures,
                                            std::stop_token stop = {}) = 0;
  virtual Result<std::vector<Verdict>> renew(InstanceId instance, Lane lane, const std::vector<Held>& held,
                                             Duration lease = kLease, std::stop_token stop = {}) = 0;
  virtual Result<std::vector<Verdict>> release(InstanceId instance, Lane lane, const std::vector<Held>& held,
                                               std::stop_token stop = {}) = 0;
  // All that the instance holds, to be taken up again.
  virtual Result<std::vector<Work>> resume(InstanceId instance, std::stop_token stop = {}) = 0;
  // Until there may be something to claim that was not there before. False: time is up, or it was stopped. A
  // hint: whoever is not woken asks again after a while all the same.
  virtual Result<bool> wait_for_work(Duration at_most, std::stop_token stop = {}) = 0;
  // The instance goes: what it holds is given back, unharmed and at once.
  virtual Status leave(InstanceId instance, std::stop_token stop = {}) = 0;
};

}  // namespace baton::stream
