// Memory for blocks on their way to and from the disk.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "checkpoint/aligned_memory.h"
#include "checkpoint/checksum.h"

namespace baton::checkpoint {

// Is kept for the next file: fresh pages cost more than what is done with them.
class BlockMemory {
 public:
  BlockMemory();
  AlignedMemory take();  // for kTransfersMax blocks
  void give_back(AlignedMemory memory);

 private:
  std::mutex mutex_;
  std::vector<AlignedMemory> idle_;
};

// One file's share of it.
class BlockBuffers {
 public:
  explicit BlockBuffers(std::shared_ptr<BlockMemory> from) : from_(std::move(from)), memory_(from_->take()) {}
  ~BlockBuffers() { from_->give_back(std::move(memory_)); }
  BlockBuffers(const BlockBuffers&) = delete;
  BlockBuffers& operator=(const BlockBuffers&) = delete;
  std::byte* at(std::size_t index) const { return memory_.get() + index * kBlockBytes; }

 private:
  const std::shared_ptr<BlockMemory> from_;
  AlignedMemory memory_;
};

}  // namespace baton::checkpoint
