// Complaints about a request that can be made without looking at any state, so that they are the same in
// every implementation, and come before anything is changed or sent.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "stream/work_coordinator.h"

namespace baton::stream {

Status check(const Instance& instance);
Status check(const WorkBatchRequest& request);
Status check(const ClaimRequest& request);
Status check(Lane lane, const std::vector<NewMessage>& messages, std::int32_t partitions);
Status check(const std::vector<Completion>& completions, WorkFlags flags);
Status check(const std::vector<Failure>& failures);
Status check(const std::vector<Held>& held);
Status check_seconds(Duration duration, std::string_view what);

}  // namespace baton::stream
