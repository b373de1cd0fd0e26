#include "checkpoint/tensor_pieces.h"

#include <algorithm>

#include "checkpoint/checkpoint_validator.h"
#include "checkpoint/rectangle.h"
#include "checkpoint/shard_file.h"

namespace baton::checkpoint {

std::vector<Elements> pieces_of(const TensorInfo& rows) {
  const std::uint64_t count = *elements_of(rows.slice.shape);
  if (count == 0) return {};
  const std::uint64_t row = rows.slice.shape.empty() ? 1 : count / rows.slice.shape[0];
  const std::uint64_t begin = rows.slice.shape.empty() ? 0 : rows.slice.offset[0] * row;
  const std::uint64_t at_once = kPieceBytes / element_bytes(rows.dtype);
  std::vector<Elements> pieces;
  for (std::uint64_t at = begin; at < begin + count; at += at_once)
    pieces.push_back({at, std::min(at + at_once, begin + count)});
  return pieces;
}

TensorPieces::TensorPieces(Storage& storage, const CheckpointMetadata& metadata)
    : storage_(storage), metadata_(metadata), planner_(metadata) {}

Status TensorPieces::check() {
  if (auto valid = CheckpointValidator::validate_or_fail(metadata_); !valid) return valid;
  for (const ShardMetadata& shard : metadata_.shards) {
    if (!shard.has_sha256()) continue;
    if (auto same = verify_tensors(storage_, shard); !same) return same;
  }
  return {};
}

Result<ByteView> TensorPieces::read(const TensorInfo& tensor, const Elements& piece) {
  if (!memory_) {
    if (auto good = check(); !good) return std::unexpected(good.error());
    memory_ = allocate_aligned(kPieceBytes);
  }
  std::vector<TensorTarget> targets;
  std::uint64_t bytes = 0;
  for (Rectangle& part : rectangles_of(tensor.global_shape, piece.begin, piece.end)) {
    TensorInfo info{tensor.name, tensor.dtype, tensor.global_shape, std::move(part)};
    const std::uint64_t of_part = slice_bytes(info);
    targets.push_back({std::move(info), {memory_.get() + bytes, of_part}});
    bytes += of_part;
  }
  auto read = read_planned(storage_, metadata_, planner_.plan_known(targets), {.verify = Verify::blocks});
  if (!read) return std::unexpected(read.error());
  bytes_read_ += *read;
  return ByteView(memory_.get(), bytes);
}

}  // namespace baton::checkpoint
