// The reports of a request without its claim, for an instance that wants no work now.
#pragma once

#include "base/result.h"
#include "stream/work_coordinator.h"

namespace baton::stream {

// Part by part, so that what is said in one part may have happened although the next one failed. All of it
// may be repeated then.
Result<WorkBatch> report(WorkCoordinator& coordinator, const WorkBatchRequest& request);

}  // namespace baton::stream
