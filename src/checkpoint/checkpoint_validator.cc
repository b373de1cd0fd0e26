#include "checkpoint/checkpoint_validator.h"

#include <fmt/format.h>

#include <map>

#include "checkpoint/rectangle.h"

namespace baton::checkpoint {
namespace {

bool stays_within(const std::string& path) {
  if (path.empty() || path.front() == '/') return false;
  return ("/" + path + "/").find("/../") == std::string::npos;
}

struct Slices {
  const TensorInfo* first = nullptr;
  std::vector<Rectangle> all;
};

}  // namespace

ValidationResult CheckpointValidator::validate(const CheckpointMetadata& metadata) {
  ValidationResult result;
  std::map<std::string, Slices> tensors;
  if (metadata.world_size == 0) result.errors.emplace_back("its world has no ranks");
  if (metadata.shards.empty()) result.warnings.emplace_back("it has no shards, and so no tensors");
  for (const ShardMetadata& shard : metadata.shards) {
    if (shard.rank >= metadata.world_size)
      result.errors.push_back(
          fmt::format("{} is of rank {} in a world of {}", shard.path, shard.rank, metadata.world_size));
    if (!stays_within(shard.path))
      result.errors.push_back(fmt::format("\"{}\" does not lie in the store", shard.path));
    for (const TensorMetadata& tensor : shard.tensors) {
      Slices& slices = tensors[tensor.info.name];
      if (slices.first == nullptr) slices.first = &tensor.info;
      if (tensor.info.dtype != slices.first->dtype || tensor.info.global_shape != slices.first->global_shape)
        result.errors.push_back(fmt::format("tensor \"{}\" has two types or shapes", tensor.info.name));
      slices.all.push_back(tensor.info.slice);
    }
  }
  if (!result.is_valid()) return result;
  for (auto& [name, slices] : tensors) {
    if (const auto wrong = what_is_wrong_with(slices.first->global_shape, std::move(slices.all)))
      result.errors.push_back(
          fmt::format("tensor \"{}\" {}: {}", name, to_text(slices.first->global_shape), *wrong));
  }
  return result;
}

Status CheckpointValidator::validate_or_fail(const CheckpointMetadata& metadata) {
  const ValidationResult result = validate(metadata);
  if (result.is_valid()) return {};
  return failure(
      Errc::corrupt,
      fmt::format("{}: {}{}", to_text(metadata.id), result.errors.front(),
                  result.errors.size() > 1 ? fmt::format(", and {} more", result.errors.size() - 1) : ""));
}

ValidationResult CheckpointValidator::verify(Storage& storage, const CheckpointMetadata& metadata,
                                             const ReadOptions& options) {
  ValidationResult result = validate(metadata);
  std::uint64_t before = 0;
  for (const ShardMetadata& shard : metadata.shards) {
    ReadOptions with_sum = options;
    if (options.progress) with_sum.progress = [&](std::uint64_t bytes) { options.progress(before + bytes); };
    if (auto whole = verify_shard(storage, shard, with_sum); !whole)
      result.errors.push_back(whole.error().message);
    before += shard.bytes;
  }
  return result;
}

}  // namespace baton::checkpoint
