// A copy of a data directory from which it can be made again: all segments that are there, so every payload a
// task refers to, and the snapshots. It may be taken while a coordinator is writing.
#pragma once

#include <cstdint>

#include "log/disk.h"

namespace baton::engine {

struct Copied {
  std::uint64_t segments = 0;
  std::uint64_t snapshots = 0;
  std::uint64_t bytes = 0;
  std::uint64_t last = 0;  // entry
};

// Whether a copy may go there: Errc::conflict if it holds a log, or part of one.
Status check_target(log::Disk& to);

// Checks the source, copies it, and checks the copy. A copy that failed is taken away again; CONTROL comes
// last, so what is left of one that was cut short is no log. A restore is the same in the other direction: a
// coordinator started on it has a new epoch, so no lease or task id is given out twice.
Result<Copied> copy_directory(log::Disk& from, log::Disk& to);

}  // namespace baton::engine
