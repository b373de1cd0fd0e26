#include "checkpoint/distributed_checkpoint.h"

#include "checkpoint/catalog.h"

namespace baton::checkpoint {

Result<SaveResult> DistributedCheckpoint::save(std::uint64_t step, ShardData mine, SaveOptions options) {
  options.training.step = step;
  return CheckpointCoordinator(collective_, storage_)
      .coordinate_save(step_prefix(step), [&]() -> Result<ShardData> { return std::move(mine); }, options);
}

Result<Ticket> DistributedCheckpoint::save_async(std::uint64_t step, const ShardData& mine,
                                                 SaveOptions options) {
  if (!saver_) {
    auto saver = AsyncSaver::create(collective_, storage_);
    if (!saver) return std::unexpected(saver.error());
    saver_ = *std::move(saver);
  }
  options.training.step = step;
  return saver_->save(step_prefix(step), mine, options);
}

Result<LoadResult> DistributedCheckpoint::load(const std::string& prefix,
                                               std::span<const TensorTarget> wanted,
                                               const LoadOptions& options) {
  return CheckpointLoader(collective_, storage_).coordinate_load(prefix, wanted, options);
}

Status DistributedCheckpoint::close() { return saver_ ? saver_->close() : Status{}; }

}  // namespace baton::checkpoint
