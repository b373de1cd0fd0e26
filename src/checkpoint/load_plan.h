// Which bytes of which shards a rank needs: whole shards, dealt out in turn, or exactly the slices it wants.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/metadata.h"
#include "checkpoint/shard_file.h"
#include "checkpoint/tensor.h"

namespace baton::checkpoint {

// Shard i goes to rank i modulo the number of ranks, as in the source. By rank, and empty for a rank that
// gets none.
std::vector<std::vector<std::size_t>> compute_shard_assignments(std::size_t shard_count,
                                                                Rank target_world_size);

// How what is wanted and what there is fit together.
struct LoadReport {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;      // wanted, and not there
  std::vector<std::string> unexpected;   // there, and wanted by no rank
  std::vector<std::string> mismatched;   // there with another dtype or shape; in words
  std::vector<std::string> passed_over;  // checkpoints that could not be loaded, and why
  std::uint64_t bytes_needed = 0;
  std::uint64_t bytes_read = 0;
};

struct LoadPlan {
  std::vector<std::vector<Copy>> by_shard;  // in the order of the metadata's shards
  std::vector<const std::byte*> filled;     // where the memory begins that something is read into
  std::vector<TensorTarget> left;           // and what nothing is, since it is missing or does not fit
  LoadReport report;
};

// Plans for one checkpoint, which outlives it.
class LoadPlanner {
 public:
  explicit LoadPlanner(const CheckpointMetadata& metadata);
  ~LoadPlanner();
  LoadPlanner(const LoadPlanner&) = delete;
  LoadPlanner& operator=(const LoadPlanner&) = delete;

  // Copies for all that fits. What does not is in the report.
  LoadPlan plan(std::span<const TensorTarget> wanted) const;
  // The same for what is known to fit; without a word of the rest, of which there may be much.
  LoadPlan plan_known(std::span<const TensorTarget> wanted) const;
  std::vector<std::string_view> names() const;  // of all tensors there are, in order

 private:
  struct Index;
  const std::unique_ptr<const Index> index_;
  const CheckpointMetadata& metadata_;
};

// Carries out all of it; returns how many bytes were read.
Result<std::uint64_t> read_planned(Storage& storage, const CheckpointMetadata& metadata, const LoadPlan& plan,
                                   const ReadOptions& options);

}  // namespace baton::checkpoint
