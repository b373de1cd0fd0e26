// What is refused before a save begins, so that nothing has been written by then; and before it is committed.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "checkpoint/checkpoint_coordinator.h"

namespace baton::checkpoint {

// By its name a checkpoint is found, and its metadata is shown: they must not tell of two steps.
Status check_name(const std::string& prefix, std::uint64_t step);
// Every name is text, every slice has its bytes, and every object is JSON.
Status check_data(const ShardData& mine);
// Whoever commits sees what all ranks have written. Each may have written to a disk of its own, under a path
// that is the same everywhere: nobody could load that.
Status check_written(Storage& storage, const CheckpointMetadata& metadata);

}  // namespace baton::checkpoint
