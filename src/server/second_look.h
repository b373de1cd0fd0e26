// What a question has seen is read a little later. Meanwhile it may have been copied forward and the old
// segment have gone, so whoever does not find it looks again, once, and reads everything anew.
#pragma once

#include <cstddef>

#include "base/bytes.h"
#include "base/result.h"

namespace baton::server {

class SecondLook {
 public:
  // What a part is called when it is fetched, and which one it was.
  std::size_t index_of(std::size_t part) const { return 2 * part + (is_taken_ ? 1 : 0); }
  static std::size_t part_of(std::size_t index) { return index / 2; }
  // Of the first look, and there has been a second.
  bool is_outdated(std::size_t index) const { return is_taken_ && index % 2 == 0; }
  // True if it has to be taken now, on account of this.
  bool is_due(const Result<Bytes>& bytes) {
    if (bytes || bytes.error().code != Errc::not_found || is_taken_) return false;
    return is_taken_ = true;
  }

 private:
  bool is_taken_ = false;
};

}  // namespace baton::server
