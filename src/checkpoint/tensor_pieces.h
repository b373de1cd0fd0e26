// Tensors of a checkpoint from their first element to their last, in pieces: memory does not grow with them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "checkpoint/aligned_memory.h"
#include "checkpoint/load_plan.h"
#include "checkpoint/metadata.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

inline constexpr std::uint64_t kPieceBytes = 32 << 20;

// Elements of a whole tensor in row-major order, from `begin` to before `end`.
struct Elements {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
// A slice that is cut along its first dimension at most, in order.
std::vector<Elements> pieces_of(const TensorInfo& rows);

class TensorPieces {
 public:
  // Both outlive it.
  TensorPieces(Storage& storage, const CheckpointMetadata& metadata);

  // One of the pieces, verified; it is there until the next call. Before the first one the metadata is
  // validated, and what has a SHA-256 is compared with that.
  Result<ByteView> read(const TensorInfo& tensor, const Elements& piece);
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  Status check();

  Storage& storage_;
  const CheckpointMetadata& metadata_;
  const LoadPlanner planner_;
  AlignedMemory memory_;  // of a piece; none before the first
  std::uint64_t bytes_read_ = 0;
};

}  // namespace baton::checkpoint
