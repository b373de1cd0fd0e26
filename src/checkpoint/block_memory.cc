#include "checkpoint/block_memory.h"

#include "checkpoint/io_engine.h"

namespace baton::checkpoint {
namespace {

constexpr std::size_t kIdleMax = 2;

}  // namespace

BlockMemory::BlockMemory() { idle_.reserve(kIdleMax); }  // giving back needs none

AlignedMemory BlockMemory::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      AlignedMemory memory = std::move(idle_.back());
      idle_.pop_back();
      return memory;
    }
  }
  return allocate_aligned(kTransfersMax * kBlockBytes);
}

void BlockMemory::give_back(AlignedMemory memory) {
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleMax) idle_.push_back(std::move(memory));
}

}  // namespace baton::checkpoint
