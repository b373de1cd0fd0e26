#include "checkpoint/aligned_memory.h"

#include <cstdlib>
#include <new>

namespace baton::checkpoint {

void FreeMemory::operator()(std::byte* memory) const { std::free(memory); }

AlignedMemory allocate_aligned(std::size_t bytes) {
  const std::size_t rounded = (bytes + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment;
  AlignedMemory memory(static_cast<std::byte*>(std::aligned_alloc(kMemoryAlignment, rounded)));
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace baton::checkpoint
