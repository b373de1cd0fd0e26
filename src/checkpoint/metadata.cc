#include "checkpoint/metadata.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>

namespace baton::checkpoint {

std::strong_ordering operator<=>(const CheckpointId& one, const CheckpointId& other) {
  if (const auto order = one.prefix <=> other.prefix; order != 0) return order;
  if (const auto order = one.attempt.size() <=> other.attempt.size(); order != 0) return order;
  return one.attempt <=> other.attempt;
}

std::string directory_of(const CheckpointId& id) { return id.prefix + "/" + id.attempt; }
std::string manifest_path(const CheckpointId& id) { return directory_of(id) + ".manifest"; }
std::string shard_path(const CheckpointId& id, Rank rank) {
  return fmt::format("{}/r{:05}.safetensors", directory_of(id), rank);
}
std::string held_path(const CheckpointId& id) { return directory_of(id) + "/held"; }
std::string to_text(const CheckpointId& id) { return directory_of(id); }

bool ShardMetadata::has_sha256() const {
  return std::ranges::any_of(tensors, [](const TensorMetadata& slice) { return !slice.sha256.empty(); });
}

std::uint64_t CheckpointMetadata::tensor_bytes() const {
  std::uint64_t sum = 0;
  for (const ShardMetadata& shard : shards)
    for (const TensorMetadata& tensor : shard.tensors) sum += tensor.bytes;
  return sum;
}

std::int64_t wall_clock_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace baton::checkpoint
