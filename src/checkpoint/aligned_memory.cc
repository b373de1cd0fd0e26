#include "checkpoint/aligned_memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace baton::checkpoint {
namespace {

constexpr std::size_t kLargePage = 2 << 20;

}  // namespace

void FreeMemory::operator()(std::byte* memory) const { std::free(memory); }

AlignedMemory allocate_aligned(std::size_t bytes) {
  // Large memory comes in large pages, if there are any: fewer faults, and a disk is told of fewer pages.
  const std::size_t alignment = bytes >= kLargePage ? kLargePage : kMemoryAlignment;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  AlignedMemory memory(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
  if (!memory) throw std::bad_alloc();
  if (alignment == kLargePage) (void)::madvise(memory.get(), rounded, MADV_HUGEPAGE);  // advice, and no more
  return memory;
}

}  // namespace baton::checkpoint
