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
// nothing more. A call that is stopped through its token returns CLOSED, and nothing happened; or
// OUTCOME_UNKNOWN, where it had been sent to a coordinator elsewhere.
#pragma once

#include <stop_token>
#include <vector>

#include "base/result.h"
#include "stream/work_batch.h"

namespace baton::stream {

class WorkCoordinator {
 public:
  virtual ~WorkCoordinator() = default;

  Result<WorkBatch> process_work_batch(const WorkBatchRequest& request, std::stop_token stop = {}) {
    return do_process_work_batch(request, stop);
  }

  // The same in parts, each atomic by itself. An instance makes itself known by its first heartbeat.
  Result<Standing> heartbeat(const Instance& instance, Duration stale = kStale, std::stop_token stop = {}) {
    return do_heartbeat(instance, stale, stop);
  }
  Result<std::vector<Verdict>> store(InstanceId instance, Lane lane, const std::vector<NewMessage>& messages,
                                     std::int32_t partitions = kPartitions, std::stop_token stop = {}) {
    return do_store(instance, lane, messages, partitions, stop);
  }
  Result<std::vector<Work>> claim(InstanceId instance, const ClaimRequest& request = {},
                                  std::stop_token stop = {}) {
    return do_claim(instance, request, stop);
  }
  Result<std::vector<Verdict>> complete(InstanceId instance, Lane lane,
                                        const std::vector<Completion>& completions,
                                        WorkFlags flags = WorkFlags::none, std::stop_token stop = {}) {
    return do_complete(instance, lane, completions, flags, stop);
  }
  Result<std::vector<Verdict>> fail(InstanceId instance, Lane lane, const std::vector<Failure>& failures,
                                    std::stop_token stop = {}) {
    return do_fail(instance, lane, failures, stop);
  }
  Result<std::vector<Verdict>> renew(InstanceId instance, Lane lane, const std::vector<Held>& held,
                                     Duration lease = kLease, std::stop_token stop = {}) {
    return do_renew(instance, lane, held, lease, stop);
  }
  Result<std::vector<Verdict>> release(InstanceId instance, Lane lane, const std::vector<Held>& held,
                                       std::stop_token stop = {}) {
    return do_release(instance, lane, held, stop);
  }
  // All that the instance holds, to be taken up again.
  Result<std::vector<Work>> resume(InstanceId instance, std::stop_token stop = {}) {
    return do_resume(instance, stop);
  }
  // Until there may be something to claim that was not there before. False: time is up, or it was stopped. A
  // hint: whoever is not woken asks again after a while all the same. Of several who wait one is told, so let
  // each processor have a coordinator of its own.
  Result<bool> wait_for_work(Duration at_most, std::stop_token stop = {}) {
    return do_wait_for_work(at_most, stop);
  }
  // The instance goes: what it holds is given back, unharmed and at once.
  Status leave(InstanceId instance, std::stop_token stop = {}) { return do_leave(instance, stop); }

 private:
  // What each implementation does. It is called through the above, which know what is usual.
  virtual Result<WorkBatch> do_process_work_batch(const WorkBatchRequest& request, std::stop_token stop) = 0;
  virtual Result<Standing> do_heartbeat(const Instance& instance, Duration stale, std::stop_token stop) = 0;
  virtual Result<std::vector<Verdict>> do_store(InstanceId instance, Lane lane,
                                                const std::vector<NewMessage>& messages,
                                                std::int32_t partitions, std::stop_token stop) = 0;
  virtual Result<std::vector<Work>> do_claim(InstanceId instance, const ClaimRequest& request,
                                             std::stop_token stop) = 0;
  virtual Result<std::vector<Verdict>> do_complete(InstanceId instance, Lane lane,
                                                   const std::vector<Completion>& completions,
                                                   WorkFlags flags, std::stop_token stop) = 0;
  virtual Result<std::vector<Verdict>> do_fail(InstanceId instance, Lane lane,
                                               const std::vector<Failure>& failures,
                                               std::stop_token stop) = 0;
  virtual Result<std::vector<Verdict>> do_renew(InstanceId instance, Lane lane, const std::vector<Held>& held,
                                                Duration lease, std::stop_token stop) = 0;
  virtual Result<std::vector<Verdict>> do_release(InstanceId instance, Lane lane,
                                                  const std::vector<Held>& held, std::stop_token stop) = 0;
  virtual Result<std::vector<Work>> do_resume(InstanceId instance, std::stop_token stop) = 0;
  virtual Result<bool> do_wait_for_work(Duration at_most, std::stop_token stop) = 0;
  virtual Status do_leave(InstanceId instance, std::stop_token stop) = 0;
};

}  // namespace baton::stream
