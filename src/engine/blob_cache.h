// Payloads of late, kept in memory so that handing out a fresh task reads nothing from the disk.
// Bounded in bytes, and as much again for places where most numbers have none; the oldest go first. Losing
// one costs a read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/bytes.h"

namespace baton::engine {

using SharedBytes = std::shared_ptr<const Bytes>;

// By number: of an entry, or of a message. Numbers only grow, so they are places in a row with gaps in it,
// which costs less than a table. The bytes lie one behind the other in a ring: whoever submits much writes
// memory in order, and the allocator has nothing to do with it.
class BlobCache {
 public:
  explicit BlobCache(std::size_t bytes_max);

  void keep(std::uint64_t number, ByteView bytes);
  // Whatever comes has a higher number. Said now and then, no gap is long to fill.
  void pass(std::uint64_t number);
  SharedBytes find(std::uint64_t number) const;  // a copy, or null if it is not there
  std::size_t bytes() const { return row_.empty() ? 0 : written_ - row_.front().begin; }

 private:
  struct Place {
    std::uint64_t begin;  // how much had been written before it
    std::uint32_t length;
  };

  std::uint64_t next() const { return first_ + row_.size(); }
  std::size_t capacity() const { return blocks_.size() * block_bytes_; }
  std::byte* at(std::uint64_t begin) const {
    return blocks_[begin / block_bytes_ % blocks_.size()].get() + begin % block_bytes_;
  }
  void add(ByteView bytes);

  std::size_t block_bytes_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;  // the ring; made when they are first needed
  std::uint64_t written_ = 0;                         // ever, with what was left free at the ends of blocks
  std::uint64_t first_ = 0;                           // the number of the first in the row
  std::deque<Place> row_;                             // of length 0 where nothing was kept
};

}  // namespace baton::engine
