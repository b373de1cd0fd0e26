// The statements of work coordination: requests as arguments, rows as answers.
#pragma once

#include <vector>

#include "postgres/connection.h"
#include "stream/work_coordinator.h"

namespace baton::postgres {

Call heartbeat_call(const stream::Instance& instance, Duration stale);
Call store_call(stream::InstanceId instance, stream::Lane lane,
                const std::vector<stream::NewMessage>& messages, std::int32_t partitions);
Call complete_call(stream::InstanceId instance, stream::Lane lane,
                   const std::vector<stream::Completion>& completions, bool keep);
Call fail_call(stream::InstanceId instance, stream::Lane lane, const std::vector<stream::Failure>& failures);
Call renew_call(stream::InstanceId instance, stream::Lane lane, const std::vector<stream::Held>& held,
                Duration lease);
Call release_call(stream::InstanceId instance, stream::Lane lane, const std::vector<stream::Held>& held);
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

stream::Standing standing_of(const Rows& rows);
std::vector<stream::Verdict> verdicts_of(const Rows& rows, std::size_t count);
std::vector<stream::Work> work_of(const Rows& rows);

}  // namespace baton::postgres
