#include "engine/blob_cache.h"

#include <utility>

namespace baton::engine {

void BlobCache::keep(core::Lsn record, Bytes bytes) {
  const std::size_t cost = bytes.size() + kOverhead;
  if (cost > bytes_max_) return;
  while (bytes_ + cost > bytes_max_) {
    const auto oldest = blobs_.find(oldest_first_.front());
    oldest_first_.pop_front();
    bytes_ -= oldest->second->size() + kOverhead;
    blobs_.erase(oldest);
  }
  const bool added = blobs_.emplace(record, std::make_shared<const Bytes>(std::move(bytes))).second;
  if (!added) return;
  oldest_first_.push_back(record);
  bytes_ += cost;
}

SharedBytes BlobCache::find(core::Lsn record) const {
  const auto found = blobs_.find(record);
  return found == blobs_.end() ? nullptr : found->second;
}

}  // namespace baton::engine
