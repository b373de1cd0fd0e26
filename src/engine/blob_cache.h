// Payloads of late, kept in memory so that handing out a fresh task reads nothing from the disk.
// Bounded in bytes; the oldest go first. Losing one costs a read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "base/bytes.h"

namespace baton::engine {

using SharedBytes = std::shared_ptr<const Bytes>;  // shared: a reply may hold it after the cache has let go

// By number: of an entry, or of a message. Numbers only grow, so they are places in a row with gaps in it,
// which costs less than a table.
class BlobCache {
 public:
  explicit BlobCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  void keep(std::uint64_t number, Bytes bytes);
  // Whatever comes has a higher number. Said now and then, no gap is long to fill.
  void pass(std::uint64_t number);
  SharedBytes find(std::uint64_t number) const;  // null if it is not there
  std::size_t bytes() const { return bytes_; }

 private:
  std::uint64_t next() const { return first_ + row_.size(); }
  void add(SharedBytes blob);
  static std::size_t cost(const SharedBytes& blob);

  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::uint64_t first_ = 0;      // the number of the first in the row
  std::deque<SharedBytes> row_;  // null where nothing was kept
};

}  // namespace baton::engine
