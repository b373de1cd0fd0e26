// Saving: every rank writes its own shard, and all of them become one checkpoint or none.
//
//   ready      all_gather: what each rank has; the plan of who writes what; the attempt's name, by rank 0
//   write      each rank its shard, straight to storage, into the attempt's own directory
//   written    gather: what was written, to rank 0; an error of any rank ends it here, for all
//   decide     rank 0 writes the manifest, or gives the attempt up (AtomicCommitProtocol)
//   committed  broadcast: everybody hears it, and takes rank 0's word for it
//
// Whoever has an error before that, or does not hear rank 0, tries to give the attempt up, and hears what was
// decided: so a rank that missed the last step still learns whether there is a checkpoint. If rank 0 cannot
// say whether its decision is durable, the save has failed for all, and a later load may find the checkpoint
// or not.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/aligned_memory.h"
#include "checkpoint/collective.h"
#include "checkpoint/metadata.h"
#include "checkpoint/storage.h"
#include "checkpoint/tensor.h"

namespace baton::checkpoint {

// What a rank has. Of a save the tensors are the caller's and stay where they are; what a load brings lies in
// `data`.
struct ShardData {
  std::vector<TensorSource> tensors;
  std::map<std::string, std::string> objects;  // what is no tensor: name -> JSON text
  AlignedMemory data;
};
using LocalSave = std::function<Result<ShardData>()>;

struct SaveOptions {
  TrainingMetadata training;
  ShardingMetadata sharding;
  std::map<std::string, std::string> custom;
  bool incremental = false;                // slices that the newest checkpoint has too are not written again
  bool sha256 = false;                     // of each slice, in the manifest; a core computes 1 to 2 GB/s
  Duration deadline = kOperationDeadline;  // for each step that waits for other ranks
  std::stop_token stop;
};

struct SaveResult {
  CheckpointId id;
  std::optional<CheckpointMetadata> metadata;  // on rank 0
  std::uint64_t bytes_written = 0;             // by this rank
  std::uint64_t bytes_reused = 0;
};

class CheckpointCoordinator {
 public:
  // Both outlive it.
  CheckpointCoordinator(Collective& collective, Storage& storage)
      : collective_(collective), storage_(storage) {}

  // Called by every rank with the same prefix. `local_save` says what this rank has; its error is told to
  // all.
  Result<SaveResult> coordinate_save(const std::string& prefix, const LocalSave& local_save,
                                     const SaveOptions& options);

 private:
  struct Ready;
  Result<Ready> get_ready(const std::string& prefix, const Result<ShardData>& mine,
                          const SaveOptions& options);
  // Who writes what. Every rank comes to the same plan, or to the same error.
  Status plan(const std::string& prefix, const std::vector<Bytes>& announcements, const ShardData& mine,
              const SaveOptions& options, Ready& ready);
  // Slices that are too many to be brought are put beside the shards, and read there by all.
  Status take_from_aside(const Ready& ready, const ShardData& mine, const SaveOptions& options,
                         std::vector<std::vector<TensorInfo>>& by_rank);
  bool is_aside(const Ready& ready) const;
  std::unexpected<Error> refused(const Ready& ready, const Error& why);
  Result<RankReport> write(const Ready& ready, const ShardData& mine, const SaveOptions& options,
                           SaveResult& result);
  // What rank 0 says came of it; an error if that was not heard.
  Result<Status> finish(const Ready& ready, const Result<RankReport>& mine, const SaveOptions& options,
                        SaveResult& result);
  // On rank 0.
  Result<SaveResult> commit(const Ready& ready, const std::vector<Bytes>& reports, const SaveOptions& options,
                            const SaveResult& result);
  Result<SaveResult> give_up(const CheckpointId& id, const Error& why, SaveResult result);
  Result<SaveResult> with_manifest(const CheckpointId& id, SaveResult result);
  Call call(const std::string& prefix, std::string_view step, const SaveOptions& options) const;

  Collective& collective_;
  Storage& storage_;
};

}  // namespace baton::checkpoint
