// The statements of work coordination: requests as arguments, rows as answers.
#pragma once

#include <vector>

#include "postgres/connection.h"
#include "stream/work_coordinator.h"

namespace baton::postgres {

// What a transaction of several parts reports on and stores into. All of it is locked before the first part,
// in one order for everybody; otherwise two of them could wait for each other.
struct Touched {
  std::vector<stream::Held> reported[2];    // by lane, the outbox first
  std::vector<stream::StreamId> stored[2];  // likewise
  std::vector<stream::StreamId> of_events;

  bool is_nothing() const;
  void store(stream::Lane lane, const std::vector<stream::NewMessage>& messages);
};

Call heartbeat_call(const stream::Instance& instance, Duration stale);
Call begin_call(const stream::Instance& instance, Duration stale, const Touched& touched,
                std::int32_t partitions);  // a heartbeat that locks
Call lock_call(stream::InstanceId instance, const Touched& touched, std::int32_t partitions);
Call store_call(stream::InstanceId instance, stream::Lane lane,
                const std::vector<stream::NewMessage>& messages, std::int32_t partitions);
Call complete_call(stream::InstanceId instance, stream::Lane lane,
                   const std::vector<stream::Completion>& completions, bool keep);
Call fail_call(stream::InstanceId instance, stream::Lane lane, const std::vector<stream::Failure>& failures);
Call renew_call(stream::InstanceId instance, stream::Lane lane, const std::vector<stream::Held>& held,
                Duration lease);
Call release_call(stream::InstanceId instance, stream::Lane lane, const std::vector<stream::Held>& held);
// For a batch that has both completions and failures of receptors, or of perspectives.
Call lock_results_call(const stream::WorkBatchRequest& request);
Call receptor_call(stream::InstanceId instance, const std::vector<stream::ReceptorResult>& results,
                   bool failed);
Call perspective_call(stream::InstanceId instance, const std::vector<stream::PerspectiveResult>& results,
                      bool failed);
// Two calls in this order claim work: the first leases it, the second reads it. The streams of `stored` were
// just stored by this instance, which has them first.
Call lease_call(stream::InstanceId instance, const stream::ClaimRequest& request,
                const std::vector<stream::NewMessage>& stored = {});
Call given_call(stream::InstanceId instance);
Call resume_call(stream::InstanceId instance);
Call leave_call(stream::InstanceId instance);

}  // namespace baton::postgres
