// Slices of a shard against their SHA-256, while they go by. A part of a slice says nothing, so those that
// are touched have to be read whole.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "checkpoint/metadata.h"
#include "checkpoint/shard_file.h"
#include "wire/sha256.h"

namespace baton::checkpoint {

class SliceDigests {
 public:
  // Of the slices that have a SHA-256 and that the copies, in the order of `begin`, touch.
  SliceDigests(const ShardMetadata& shard, const std::vector<Copy>& copies);

  bool is_empty() const { return slices_.empty(); }
  std::vector<Copy> with_whole_slices(std::vector<Copy> copies) const;

  // Bytes of the file, in order, and all of each of these slices among them.
  void add(std::uint64_t offset, ByteView bytes);
  // CORRUPT names the first slice that is not what was written.
  Status finish() const;

 private:
  const ShardMetadata& shard_;
  std::vector<const TensorMetadata*> slices_;
  std::size_t next_ = 0;
  wire::Sha256 sum_;  // of what came of the next one
  std::vector<const TensorMetadata*> changed_;
};

}  // namespace baton::checkpoint
