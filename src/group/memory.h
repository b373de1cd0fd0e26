// What a rank remembers of a stream, to hand it back should whoever brings the ranks together have forgotten.
//
// To an operation that ended well everybody came, so everybody had heard how those before it ended: they may
// go. To one that failed somebody may have come late or not at all, and still has to hear of those before.
#pragma once

#include <cstdint>
#include <vector>

#include "group/meeting.h"

namespace baton::group {

inline constexpr std::size_t kRememberedMax = 16;  // the one that ended well, and the last that failed

class Memory {
 public:
  void add(Kept kept);
  std::uint64_t next() const { return kept_.empty() ? 0 : kept_.back().number + 1; }
  const std::vector<Kept>& kept() const { return kept_; }

 private:
  std::vector<Kept> kept_;  // in order
};

}  // namespace baton::group
