// The coordinator's replies to calls about streams.
#pragma once

#include "base/result.h"
#include "stream/work_batch.h"
#include "wire/resp_value.h"

namespace baton::client {

// What the call did not ask for is not in it.
Result<stream::WorkBatch> batch_of(const wire::RespValue& reply);

}  // namespace baton::client
