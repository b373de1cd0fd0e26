#include "checkpoint/reuse.h"

#include <algorithm>
#include <map>
#include <set>

#include "checkpoint/shard_file.h"

namespace baton::checkpoint {
namespace {

struct Known {
  std::size_t shard = 0;
  const TensorMetadata* tensor = nullptr;
};

}  // namespace

std::vector<ShardMetadata> take_unchanged(Storage& storage, const CheckpointMetadata& base,
                                          std::vector<TensorSource>& slices) {
  std::map<TensorInfo, Known> known;
  for (std::size_t i = 0; i < base.shards.size(); ++i)
    for (const TensorMetadata& tensor : base.shards[i].tensors) known.emplace(tensor.info, Known{i, &tensor});

  std::map<std::size_t, std::vector<TensorMetadata>> by_shard;
  for (const TensorSource& slice : slices) {
    const auto same_place = known.find(slice.info);
    if (same_place != known.end() && fingerprint(slice.data) == same_place->second.tensor->fingerprint)
      by_shard[same_place->second.shard].push_back(*same_place->second.tensor);
  }

  std::vector<ShardMetadata> reused;
  std::set<TensorInfo> taken;
  for (auto& [index, tensors] : by_shard) {
    std::ranges::sort(tensors, {}, &TensorMetadata::begin);
    ShardMetadata shard = base.shards[index];
    shard.tensors = std::move(tensors);
    if (!verify_tensors(storage, shard)) continue;
    for (const TensorMetadata& tensor : shard.tensors) taken.insert(tensor.info);
    reused.push_back(std::move(shard));
  }
  std::erase_if(slices, [&](const TensorSource& slice) { return taken.contains(slice.info); });
  return reused;
}

}  // namespace baton::checkpoint
