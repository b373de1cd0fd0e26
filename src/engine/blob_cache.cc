#include "engine/blob_cache.h"

#include <algorithm>

#include "base/check.h"

namespace baton::engine {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{4} << 20;  // no blob is larger

}  // namespace

BlobCache::BlobCache(std::size_t bytes_max)
    : block_bytes_(std::min(bytes_max, kBlockBytes)),
      blocks_(bytes_max < sizeof(Place) ? 0 : bytes_max / block_bytes_) {}

void BlobCache::add(ByteView bytes) {
  if (bytes.size() + sizeof(Place) > block_bytes_) bytes = {};  // nor is all the rest forgotten for it
  const std::size_t cost = bytes.size() + sizeof(Place);
  if (const std::size_t used = written_ % block_bytes_; used + cost > block_bytes_)
    written_ += block_bytes_ - used;
  if (!bytes.empty()) {
    auto& block = blocks_[written_ / block_bytes_ % blocks_.size()];
    if (!block) block = std::make_unique_for_overwrite<std::byte[]>(block_bytes_);
    std::ranges::copy(bytes, at(written_));
  }
  row_.push_back({.begin = written_, .length = static_cast<std::uint32_t>(bytes.size())});
  written_ += cost;
  for (; row_.front().begin + capacity() < written_; row_.pop_front()) ++first_;
}

void BlobCache::pass(std::uint64_t number) {
  if (row_.empty()) first_ = number + 1;
  while (next() <= number) add({});
}

void BlobCache::keep(std::uint64_t number, ByteView bytes) {
  BATON_CHECK(number > 0 && number >= next());
  if (blocks_.empty()) return;
  pass(number - 1);
  add(bytes);
}

SharedBytes BlobCache::find(std::uint64_t number) const {
  if (number < first_ || number >= next()) return nullptr;
  const auto [begin, length] = row_[number - first_];
  return length == 0 ? nullptr : std::make_shared<const Bytes>(at(begin), at(begin) + length);
}

}  // namespace baton::engine
