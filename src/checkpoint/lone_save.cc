#include "checkpoint/lone_save.h"

#include <fmt/format.h>

#include "checkpoint/atomic_commit_protocol.h"
#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_validator.h"
#include "checkpoint/save_plan.h"

namespace baton::checkpoint {
namespace {

Result<ShardMetadata> write_for(Storage& storage, const CheckpointId& id, Rank rank,
                                const std::vector<TensorInfo>& slices,
                                const std::vector<std::size_t>& to_write, const RankContent& content,
                                const WriteOptions& options) {
  std::vector<TensorInfo> written;
  written.reserve(to_write.size());
  for (const std::size_t index : to_write) written.push_back(slices[index]);
  auto shard = write_shard(
      storage, shard_path(id, rank), written,
      [&](std::size_t index, const Give& give) { return content(rank, to_write[index], give); }, options);
  if (shard) shard->rank = rank;
  return shard;
}

Result<Verdict> write_all(Storage& storage, CheckpointMetadata& metadata,
                          const std::vector<std::vector<TensorInfo>>& by_rank,
                          const std::vector<std::vector<std::size_t>>& plan, const RankContent& content,
                          const WriteOptions& options) {
  std::uint64_t before = 0;
  WriteOptions together = options;
  if (options.progress) together.progress = [&](std::uint64_t bytes) { options.progress(before + bytes); };
  for (Rank rank = 0; rank < by_rank.size(); ++rank) {
    if (plan[rank].empty()) continue;
    auto shard = write_for(storage, metadata.id, rank, by_rank[rank], plan[rank], content, together);
    if (!shard) return std::unexpected(shard.error());
    for (const TensorMetadata& tensor : shard->tensors) before += tensor.bytes;
    metadata.shards.push_back(*std::move(shard));
  }
  if (auto valid = CheckpointValidator::validate_or_fail(metadata); !valid)
    return std::unexpected(valid.error());
  return AtomicCommitProtocol(storage).commit(metadata);
}

}  // namespace

Result<CheckpointId> save_alone(Storage& storage, CheckpointMetadata metadata,
                                const std::vector<std::vector<TensorInfo>>& by_rank,
                                const RankContent& content, const WriteOptions& options) {
  const auto plan = assign_writers(by_rank);
  if (!plan) return std::unexpected(plan.error());
  auto id = new_attempt(storage, metadata.id.prefix);
  if (!id) return id;
  metadata.id = *id;
  metadata.world_size = static_cast<Rank>(by_rank.size());
  metadata.shards.clear();
  const auto verdict = write_all(storage, metadata, by_rank, *plan, content, options);
  if (verdict && *verdict == Verdict::commit) return id;
  const Error why =
      verdict ? Error{Errc::closed, to_text(*id) + " was given up by somebody else"} : verdict.error();
  if (auto ended = AtomicCommitProtocol(storage).give_up(*id, why); !ended)
    return std::unexpected(ended.error());
  return id;
}

}  // namespace baton::checkpoint
