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

#include <stop_token>
#include <vector>

#include "base/result.h"
#include "stream/work_batch.h"

namespace baton::stream {

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
