// Which files somebody needs. A checkpoint may name files of older attempts, so one that is pruned leaves its
// files to others; and a save that is under way may come to name those of the checkpoint it is based on.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/catalog.h"
#include "checkpoint/metadata.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

using Paths = std::set<std::string>;

// For a save that means to refer to files of `base`. Whoever removes manifests looks for this afterwards, so
// either this finds the manifest gone, and is false, or the files stay.
bool hold_files(Storage& storage, const CheckpointId& attempt, const CheckpointMetadata& base);

// What all but those that are `going` need. WRONG_STATE while a manifest cannot be read, which may name
// anything.
Result<Paths> referred_to(Storage& storage, const std::vector<Attempt>& attempts,
                          const std::set<CheckpointId>& going = {});

// Whether anybody needs a file that the attempt wrote; yes if that is not known.
bool is_referred_to(Storage& storage, const CheckpointId& id);

}  // namespace baton::checkpoint
