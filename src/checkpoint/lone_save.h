// A checkpoint that one process writes in place of all ranks, shard after shard, from wherever its bytes
// come: it never has more of them than it was given last.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "checkpoint/metadata.h"
#include "checkpoint/shard_file.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

// Gives all bytes of a slice, by its place in what its rank has.
using RankContent = std::function<Status(Rank rank, std::size_t slice, const Give& give)>;

// The metadata says everything but the attempt and the shards. As of a save by ranks, all of it becomes a
// checkpoint or nothing is left.
Result<CheckpointId> save_alone(Storage& storage, CheckpointMetadata metadata,
                                const std::vector<std::vector<TensorInfo>>& by_rank,
                                const RankContent& content, const WriteOptions& options);

}  // namespace baton::checkpoint
