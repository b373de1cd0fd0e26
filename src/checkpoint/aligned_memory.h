// Memory that can be transferred to and from a disk past the page cache.
#pragma once

#include <cstddef>
#include <memory>

namespace baton::checkpoint {

inline constexpr std::size_t kMemoryAlignment = 4096;  // of memory, and of offsets and sizes in a file

struct FreeMemory {
  void operator()(std::byte* memory) const;
};
using AlignedMemory = std::unique_ptr<std::byte, FreeMemory>;
AlignedMemory allocate_aligned(std::size_t bytes);

}  // namespace baton::checkpoint
