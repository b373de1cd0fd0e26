// How much the disk still has room for. Completions must get through when submissions no longer do, so space
// for them is set aside: the rest of the current segment, its successor, and room for a snapshot.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/engine.h"

namespace baton::engine {

struct DiskRoom {
  std::uint64_t free_bytes = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t batch_bytes_max = 0;  // with padding
  std::uint64_t left_in_segment = 0;  // of the one being written
  bool successor_ready = true;        // the next segment's file is there, or can be made
};

inline Admission admission_for(const DiskRoom& room) {
  const std::uint64_t reserve = 3 * room.segment_bytes;
  // The log goes to a new segment where a largest batch might not fit, and one may be filling already.
  const std::uint64_t margin = std::max(room.segment_bytes / 8, 2 * room.batch_bytes_max);
  if (!room.successor_ready && room.left_in_segment < margin) return Admission::closed;
  if (!room.successor_ready || room.free_bytes < reserve) return Admission::no_submissions;
  return Admission::open;
}

}  // namespace baton::engine
