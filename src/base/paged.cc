#include "base/paged.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace baton {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kWorthwhile = std::size_t{1} << 20;

}  // namespace

void* take_block(std::size_t bytes) {
  const std::size_t alignment = bytes >= kWorthwhile ? kHugePage : alignof(std::max_align_t);
  void* block = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (block == nullptr) throw std::bad_alloc();
  // A wish, not a need: where it is refused, small pages do.
  if (bytes >= kWorthwhile) (void)madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

void give_back_block(void* block) { std::free(block); }

}  // namespace baton
