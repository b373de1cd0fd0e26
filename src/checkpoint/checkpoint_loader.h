// Loading: all ranks load the same checkpoint, or all hear why not.
//
//   choice      rank 0 finds and validates a manifest; broadcast
//   compatible  does it fit what each rank wants? Nothing has been read until then
//   load        each rank its shards or slices, verified
//   loaded      vote: if it is damaged for one, it is for all; with fall_back the next older one is chosen
#pragma once

#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint_coordinator.h"
#include "checkpoint/collective.h"
#include "checkpoint/load_plan.h"
#include "checkpoint/metadata.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

struct LoadOptions {
  bool strict = true;  // what is missing, unexpected or does not fit is an error, not a report
  // To the newest one that is whole; CORRUPT if there are some and none is. One that has nothing for memory
  // into which a damaged one was read is no way out either.
  bool fall_back = false;
  Verify verify = Verify::touched;
  Duration deadline = kOperationDeadline;  // for each step that waits for other ranks
  std::stop_token stop;
};

struct LoadResult {
  CheckpointMetadata metadata;
  std::vector<ShardData> shards;  // of a load of whole shards
  LoadReport report;
};

// What a rank wants of a checkpoint, once it is known what is in it. Asked again for each one that is tried;
// an error is told to all ranks. What a checkpoint may have nothing for lies in memory that lasts until the
// load has ended.
using Wishes = std::function<Result<std::vector<TensorTarget>>(const CheckpointMetadata&)>;

class CheckpointLoader {
 public:
  // Both outlive it.
  CheckpointLoader(Collective& collective, Storage& storage) : collective_(collective), storage_(storage) {}

  // An empty prefix is the newest checkpoint. Whole shards, dealt out to `target_world_size` ranks in turn; a
  // rank may get several, or none.
  Result<LoadResult> coordinate_load(const std::string& prefix, Rank target_world_size,
                                     const LoadOptions& options);
  // Just what this rank wants, from whatever ranks wrote it. After an error the memory holds anything.
  Result<LoadResult> coordinate_load(const std::string& prefix, std::span<const TensorTarget> wanted,
                                     const LoadOptions& options);
  Result<LoadResult> coordinate_load(const std::string& prefix, const Wishes& wishes,
                                     const LoadOptions& options);

 private:
  // What this rank does with a checkpoint: says whether it fits, then reads it.
  struct Part {
    std::function<Result<Bytes>(LoadResult&)> fits;  // with what the others are to know of it
    std::function<Status(LoadResult&)> read;
  };
  Result<LoadResult> load_together(const std::string& prefix, const Part& part, const LoadOptions& options);
  // The next checkpoint to try, on all ranks.
  struct Search;
  struct Choice {
    CheckpointId id;
    Result<CheckpointMetadata> metadata;
  };
  Result<Choice> choose(const Call& call, Search& search, const LoadOptions& options);
  Status agree(const Call& call, const Part& part, LoadResult& result, const Status& chosen, bool strict);

  Collective& collective_;
  Storage& storage_;
};

}  // namespace baton::checkpoint
