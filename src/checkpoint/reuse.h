// Slices that have not changed since an earlier checkpoint are referred to, not written again.
#pragma once

#include <vector>

#include "checkpoint/metadata.h"
#include "checkpoint/storage.h"
#include "checkpoint/tensor.h"

namespace baton::checkpoint {

// Takes out of `slices` what `base` has with the same place and content, and returns where that lies: files
// of `base`, each with just these tensors. A file that is gone or damaged there is not referred to. If a
// SHA-256 is wanted, that has to be there and the same too.
std::vector<ShardMetadata> take_unchanged(Storage& storage, const CheckpointMetadata& base,
                                          std::vector<TensorSource>& slices, bool sha256);

}  // namespace baton::checkpoint
