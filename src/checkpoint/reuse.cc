#include "checkpoint/reuse.h"

#include <algorithm>
#include <map>
#include <set>

#include "checkpoint/shard_file.h"
#include "wire/sha256.h"

namespace baton::checkpoint {
namespace {

struct Known {
  std::size_t shard = 0;
  const TensorMetadata* tensor = nullptr;
};

bool is_content_of(const TensorMetadata& known, ByteView data, bool sha256) {
  if (fingerprint(data) != known.fingerprint) return false;
  if (!sha256) return true;
  wire::Sha256 sum;
  sum.add(text_of(data));
  return sum.hex() == known.sha256;
}

}  // namespace

std::vector<ShardMetadata> take_unchanged(Storage& storage, const CheckpointMetadata& base,
                                          std::vector<TensorSource>& slices, bool sha256) {
  std::map<TensorInfo, Known> known;
  for (std::size_t i = 0; i < base.shards.size(); ++i)
    for (const TensorMetadata& tensor : base.shards[i].tensors) known.emplace(tensor.info, Known{i, &tensor});

  std::map<std::size_t, std::vector<TensorMetadata>> by_shard;
  for (const TensorSource& slice : slices) {
    const auto same_place = known.find(slice.info);
    if (same_place == known.end()) continue;
    const auto& [shard, tensor] = same_place->second;
    if (is_content_of(*tensor, slice.data, sha256)) by_shard[shard].push_back(*tensor);
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
