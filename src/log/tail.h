// What the place means at which the last segment can no longer be read.
//
// After a power cut the last batch may be there in part: any subset of its sectors reached the medium, the
// others read as the zeros the file was made of. Nobody was told about such a batch, so it is dropped.
// Everything else that cannot be read was acknowledged, or might have been, and is never dropped. Evidence
// decides: the durable lsn that later batches and CONTROL carry, and whether the damage looks like lost
// sectors. That a record follows is no evidence by itself: sectors arrive in any order.
#pragma once

#include <cstdint>
#include <string>

#include "log/control.h"
#include "log/segment_reader.h"

namespace baton::log {

enum class TailKind { end, torn, corrupt };

struct TailVerdict {
  TailKind kind = TailKind::end;
  std::uint64_t damage_end = 0;  // behind the last byte that is not zero
  std::string reason;            // why it was refused
};

// `at` is where a batch should begin and none can be read.
Result<TailVerdict> judge_tail(FileWindow& window, const SegmentHeader& header, const Position& at,
                               const Control& control);
// The same for a segment behind which others were removed, up to `next`: nobody says any more where it ended,
// so it ends where only zeros follow, or a torn batch if a process ended before `next` was begun.
Result<TailVerdict> judge_unpinned(FileWindow& window, const SegmentHeader& header, const Position& at,
                                   const SegmentHeader& next);

}  // namespace baton::log
