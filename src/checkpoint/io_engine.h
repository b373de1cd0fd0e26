// Transfers between memory and files, several at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "checkpoint/aligned_memory.h"

namespace baton::checkpoint {

inline constexpr unsigned kTransfersMax = 8;  // at once; more do not make a disk faster

struct Transfer {
  enum class Direction : bool { read, write };
  Direction direction = Direction::read;
  int descriptor = -1;
  std::uint64_t offset = 0;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::size_t tag = 0;  // the caller's, to know it again
};
struct Completion {
  std::size_t tag = 0;
  std::int64_t result = 0;  // bytes, or an errno below zero
};

class IoEngine {
 public:
  virtual ~IoEngine() = default;
  // At most kTransfersMax are under way.
  virtual void submit(const Transfer& transfer) = 0;
  // Waits for one of them.
  virtual Completion wait() = 0;
};

// How bytes get to the disk and back, from best to worst. `buffered` goes through the page cache.
enum class IoMode : std::uint8_t { direct_ring, direct, buffered };
std::string_view describe(IoMode mode);

// io_uring; nothing where the kernel or a container forbids it.
std::unique_ptr<IoEngine> ring_engine();
// Threads that call pread and pwrite.
std::unique_ptr<IoEngine> thread_engine();
std::unique_ptr<IoEngine> engine_for(IoMode mode);

}  // namespace baton::checkpoint
