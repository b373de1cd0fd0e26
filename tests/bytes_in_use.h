// For tests: how much memory the process has asked for and not given back.
#pragma once

#include <malloc.h>

#include <cstddef>

namespace baton {

// Counted where it is asked for, so what the allocator keeps for later is not in it.
inline std::size_t bytes_in_use() {
  const auto used = ::mallinfo2();
  return used.uordblks + used.hblkhd;
}

}  // namespace baton
