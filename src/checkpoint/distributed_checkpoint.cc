#include "checkpoint/distributed_checkpoint.h"

#include "checkpoint/catalog.h"

namespace baton::checkpoint {

Result<SaveResult> DistributedCheckpoint::save(std::uint64_t step, ShardData mine, SaveOptions options) {
  options.training.step = step;
  const auto local_save = [&]() -> Result<ShardData> {
    if (auto earlier = close(); !earlier) {
      if (!options.stop.stop_requested())
        return failure(earlier.error().code, "the save before this one failed: " + earlier.error().message);
      saver_->tell_later(earlier.error());  // nobody may wait for what this call says
      return failure(Errc::closed, "it was stopped");
    }
    return std::move(mine);
  };
  return CheckpointCoordinator(collective_, storage_).coordinate_save(step_prefix(step), local_save, options);
}

Result<Ticket> DistributedCheckpoint::save_async(std::uint64_t step, const ShardData& mine,
                                                 SaveOptions options) {
  auto behind = saver();
  if (!behind) return std::unexpected(behind.error());
  options.training.step = step;
  return (*behind)->save(step_prefix(step), mine, options);
}

Result<SaveResult> DistributedCheckpoint::refuse(std::uint64_t step, const Error& why,
                                                 const SaveOptions& options) {
  return CheckpointCoordinator(collective_, storage_)
      .coordinate_save(
          step_prefix(step), [&]() -> Result<ShardData> { return std::unexpected(why); }, options);
}

Result<Ticket> DistributedCheckpoint::refuse_async(std::uint64_t step, const Error& why,
                                                   const SaveOptions& options) {
  auto behind = saver();
  if (!behind) return std::unexpected(behind.error());
  return (*behind)->refuse(step_prefix(step), why, options);
}

// Made when it is first needed: it takes a stream of the collective.
Result<AsyncSaver*> DistributedCheckpoint::saver() {
  if (!saver_) {
    auto made = AsyncSaver::create(collective_, storage_, async_);
    if (!made) return std::unexpected(made.error());
    saver_ = *std::move(made);
  }
  return saver_.get();
}

Result<LoadResult> DistributedCheckpoint::load(const std::string& prefix,
                                               std::span<const TensorTarget> wanted,
                                               const LoadOptions& options) {
  return CheckpointLoader(collective_, storage_).coordinate_load(prefix, wanted, options);
}

Result<LoadResult> DistributedCheckpoint::load(const std::string& prefix, const Wishes& wishes,
                                               const LoadOptions& options) {
  return CheckpointLoader(collective_, storage_).coordinate_load(prefix, wishes, options);
}

Status DistributedCheckpoint::close() { return saver_ ? saver_->close() : Status{}; }

bool DistributedCheckpoint::let_memory_go() { return !saver_ || saver_->let_memory_go(); }

}  // namespace baton::checkpoint
