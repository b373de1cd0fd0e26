// Checkpoints as files that others read or write, and for another number of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/metadata.h"
#include "checkpoint/shard_file.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

struct Converted {
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;  // of tensors
  CheckpointId id;          // of what was made in the store
};

// None of these holds more than a piece of a tensor in memory (tensor_pieces.h).

// One safetensors file with every tensor whole.
Result<Converted> export_whole(Storage& from, const CheckpointMetadata& metadata, Storage& to,
                               const std::string& path, const Progress& progress);
// The shards and the manifest under flat names: {prefix}_shard_{number}.bin, {prefix}.metadata.json. Every
// byte is told twice: verified, then copied.
Result<Converted> export_flat(Storage& from, const CheckpointMetadata& metadata, Storage& to,
                              const Progress& progress);

// A checkpoint of all that is in these safetensors files.
Result<Converted> import_files(Storage& from, const std::vector<std::string>& paths, Storage& to,
                               const std::string& prefix, std::uint64_t step, const WriteOptions& options);

// The same checkpoint as `ranks` ranks would have written it, each with rows of its own, as another attempt
// under its name.
Result<Converted> reshard(Storage& storage, const CheckpointMetadata& metadata, Rank ranks,
                          const Progress& progress);

}  // namespace baton::checkpoint
