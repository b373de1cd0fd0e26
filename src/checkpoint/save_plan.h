// Who writes what. Each rank says which slices it has; a slice that several ranks have is written by one of
// them, so that each writes about as much as the others. Every rank works this out for itself from the same
// facts and comes to the same plan.
#pragma once

#include <cstddef>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "checkpoint/tensor.h"

namespace baton::checkpoint {

Bytes encode(const std::vector<TensorInfo>& slices);
Result<std::vector<TensorInfo>> decode_slices(ByteView bytes);

// By rank: the indexes, in order, of the slices that it writes. INVALID_REQUEST or CONFLICT if the slices do
// not make up whole tensors, and the error names the tensor and the ranks.
Result<std::vector<std::vector<std::size_t>>> assign_writers(
    const std::vector<std::vector<TensorInfo>>& by_rank);

}  // namespace baton::checkpoint
