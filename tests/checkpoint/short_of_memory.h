// A thread that does not get one piece of memory, just when a test wants it not to.
#pragma once

#include <cstddef>

namespace baton::checkpoint {

// While there is one, this thread gets `pieces` of memory from operator new, then once none, then all it asks
// for.
class ShortOfMemory {
 public:
  explicit ShortOfMemory(std::size_t pieces);
  ~ShortOfMemory();
  ShortOfMemory(const ShortOfMemory&) = delete;
  ShortOfMemory& operator=(const ShortOfMemory&) = delete;

  bool has_happened() const;  // it asked for that many
};

}  // namespace baton::checkpoint
