// One shard file of a checkpoint: written in one go with its checksums, read block by block against them.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/metadata.h"
#include "checkpoint/storage.h"
#include "checkpoint/tensor.h"

namespace baton::checkpoint {

// Called now and then with how many bytes are done.
using Progress = std::function<void(std::uint64_t bytes)>;

struct WriteOptions {
  bool sha256 = false;  // of each slice
  std::stop_token stop;
  Progress progress;
};
Result<ShardMetadata> write_shard(Storage& storage, const std::string& path,
                                  const std::vector<TensorSource>& slices, const WriteOptions& options);

// The same with bytes that come in pieces: `content` gives all those of a slice, in order.
using Give = std::function<Status(ByteView piece)>;
using Content = std::function<Status(std::size_t slice, const Give& give)>;
Result<ShardMetadata> write_shard(Storage& storage, const std::string& path,
                                  const std::vector<TensorInfo>& slices, const Content& content,
                                  const WriteOptions& options);

// Bytes of a shard, and where they are wanted.
struct Copy {
  std::uint64_t begin = 0;  // in the file
  std::uint64_t bytes = 0;
  std::byte* to = nullptr;
};

enum class Verify : std::uint8_t {
  off,
  blocks,   // against the checksums of the blocks that are read
  touched,  // and against the SHA-256 of the slices, where they have one; those are then read whole
};
struct ReadOptions {
  Verify verify = Verify::touched;
  std::stop_token stop;
  Progress progress;
};
// Carries out the copies, which are in the order of `begin`. Reads whole blocks, each once and only those
// that are needed; returns how many bytes that were. CORRUPT says which file, which bytes and which tensors.
Result<std::uint64_t> read_shard(Storage& storage, const ShardMetadata& shard,
                                 const std::vector<Copy>& copies, const ReadOptions& options);

// The bytes of the tensors it is here for, and every byte of the file, against the checksums.
Status verify_tensors(Storage& storage, const ShardMetadata& shard);
Status verify_shard(Storage& storage, const ShardMetadata& shard, const ReadOptions& options);

}  // namespace baton::checkpoint
