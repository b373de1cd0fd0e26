// For tests: how much memory the process has asked for and not given back.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Of the sanitizer, whose allocator it is then; g++ comes without the header.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#else
#include <malloc.h>
#endif

namespace baton {

// Counted where it is asked for, so what the allocator keeps for later is not in it.
inline std::size_t bytes_in_use() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return __sanitizer_get_current_allocated_bytes();
#else
  const auto used = ::mallinfo2();
  return used.uordblks + used.hblkhd;
#endif
}

}  // namespace baton
