#include "checkpoint/slice_digests.h"

#include <fmt/format.h>

#include <algorithm>

namespace baton::checkpoint {

SliceDigests::SliceDigests(const ShardMetadata& shard, const std::vector<Copy>& copies) : shard_(shard) {
  auto copy = copies.begin();
  for (const TensorMetadata& tensor : shard.tensors) {
    if (tensor.sha256.empty() || tensor.bytes == 0) continue;
    while (copy != copies.end() && copy->begin + copy->bytes <= tensor.begin) ++copy;
    if (copy != copies.end() && copy->begin < tensor.begin + tensor.bytes) slices_.push_back(&tensor);
  }
}

std::vector<Copy> SliceDigests::with_whole_slices(std::vector<Copy> copies) const {
  for (const TensorMetadata* slice : slices_) copies.push_back({slice->begin, slice->bytes, nullptr});
  std::ranges::sort(copies, {}, &Copy::begin);
  return copies;
}

void SliceDigests::add(std::uint64_t offset, ByteView bytes) {
  const std::uint64_t end = offset + bytes.size();
  for (; next_ < slices_.size() && slices_[next_]->begin < end; ++next_) {
    const TensorMetadata& slice = *slices_[next_];
    const std::uint64_t slice_end = slice.begin + slice.bytes;
    const std::uint64_t from = std::max(slice.begin, offset);
    sum_.add(text_of(bytes.subspan(from - offset, std::min(slice_end, end) - from)));
    if (end < slice_end) return;
    if (sum_.hex() != slice.sha256) changed_.push_back(&slice);
  }
}

Status SliceDigests::finish() const {
  if (changed_.empty()) return {};
  const TensorInfo& first = changed_.front()->info;
  return failure(Errc::corrupt,
                 fmt::format("{} is not what was written: tensor \"{}\" {} has another SHA-256{}",
                             shard_.path, first.name, to_text(first.slice),
                             changed_.size() > 1 ? fmt::format(", and {} more", changed_.size() - 1) : ""));
}

}  // namespace baton::checkpoint
