// The one thing to use in a training loop: saves and loads of a rank's state, in the foreground or behind it.
//
//   DistributedCheckpoint checkpoint(collective, storage);
//   checkpoint.load("", targets, {.fall_back = true});           // the newest one that is whole
//   checkpoint.save(1000, {.tensors = …}, {});                   // durable when it returns
//   auto ticket = checkpoint.save_async(1001, {.tensors = …}, {});
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "checkpoint/async_saver.h"
#include "checkpoint/checkpoint_coordinator.h"
#include "checkpoint/checkpoint_loader.h"
#include "checkpoint/retention.h"

namespace baton::checkpoint {

class DistributedCheckpoint {
 public:
  // Every rank opens one; both outlive it.
  DistributedCheckpoint(Collective& collective, Storage& storage, const AsyncOptions& async = {})
      : collective_(collective), storage_(storage), async_(async) {}

  // Under "step-…", with the step in its metadata.
  Result<SaveResult> save(std::uint64_t step, ShardData mine, SaveOptions options);
  Result<Ticket> save_async(std::uint64_t step, const ShardData& mine, SaveOptions options);
  // In place of the other two, by a rank that cannot: all ranks hear why.
  Result<SaveResult> refuse(std::uint64_t step, const Error& why, const SaveOptions& options);
  Result<Ticket> refuse_async(std::uint64_t step, const Error& why, const SaveOptions& options);
  Result<LoadResult> load(const std::string& prefix, std::span<const TensorTarget> wanted,
                          const LoadOptions& options);
  Result<LoadResult> load(const std::string& prefix, const Wishes& wishes, const LoadOptions& options);
  // Waits for what is under way; the error of a save in the background that nobody has heard of.
  Status close();
  // Of the copy that the last save in the background made, unless that is under way (AsyncSaver).
  bool let_memory_go();

 private:
  Result<AsyncSaver*> saver();

  Collective& collective_;
  Storage& storage_;
  const AsyncOptions async_;
  std::unique_ptr<AsyncSaver> saver_;
};

}  // namespace baton::checkpoint
