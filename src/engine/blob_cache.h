// Payloads of late, kept in memory so that handing out a fresh task reads nothing from the disk.
// Bounded in bytes; the oldest go first. Losing one costs a read.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <unordered_map>

#include "base/bytes.h"
#include "core/ids.h"

namespace baton::engine {

using SharedBytes = std::shared_ptr<const Bytes>;  // shared: a reply may hold it after the cache has let go

class BlobCache {
 public:
  explicit BlobCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  void keep(core::Lsn record, Bytes bytes);
  SharedBytes find(core::Lsn record) const;  // null if it is not there
  std::size_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kOverhead = 128;  // what an entry costs beside its bytes

  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::unordered_map<core::Lsn, SharedBytes> blobs_;
  std::deque<core::Lsn> oldest_first_;
};

}  // namespace baton::engine
