// How far a command has got that reads or writes a checkpoint.
#pragma once

#include <cstdint>

#include "checkpoint/metadata.h"
#include "checkpoint/shard_file.h"
#include "cli/progress.h"

namespace baton::cli {

// A bar of MiB on the terminal.
class CheckpointBar {
 public:
  explicit CheckpointBar(std::uint64_t bytes) : all_(bytes) {}
  checkpoint::Progress shown() {
    return [this](std::uint64_t bytes) { progress_.show(bytes >> 20, bytes, all_); };
  }
  void clear() { progress_.clear(); }  // before anything is printed

 private:
  const std::uint64_t all_;
  cli::Progress progress_{"MiB"};
};

inline std::uint64_t file_bytes(const checkpoint::CheckpointMetadata& metadata) {
  std::uint64_t sum = 0;
  for (const checkpoint::ShardMetadata& shard : metadata.shards) sum += shard.bytes;
  return sum;
}

}  // namespace baton::cli
