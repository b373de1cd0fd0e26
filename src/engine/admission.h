// How much the disk still has room for. Completions must get through when submissions no longer do, and a
// snapshot must get done, for without one no segment is ever removed. So space is set aside for both:
//
//   free:  [ completions ][ log until the next snapshot is due ][ that snapshot ][ submissions …
//
// A snapshot leaves alone what is set aside for completions, unless it is small beside it. The log in between
// is why it can be made at all: if submissions and snapshots stopped at the same point, a disk that baton
// filled would stay full.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/engine.h"
#include "log/format.h"

namespace baton::engine {

struct DiskRoom {
  std::uint64_t free_bytes = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t batch_bytes_max = 0;   // with padding
  std::uint64_t left_in_segment = 0;   // of the one being written
  bool successor_ready = true;         // the next segment's file is there, or can be made
  std::uint64_t snapshot_every = 0;    // bytes of log between two snapshots
  std::uint64_t snapshot_to_come = 0;  // bytes the next one will take, or the one being written still takes
};

// The rest of the current segment, its successor, and one more.
constexpr std::uint64_t set_aside_for_completions(std::uint64_t segment_bytes) { return 3 * segment_bytes; }

// Whoever makes snapshots rarely, or by hand, does not wait for one with the disk held free. Once the disk is
// nearly full, one is due after so much log all the same.
constexpr std::uint64_t log_until_snapshot(std::uint64_t snapshot_every, std::uint64_t segment_bytes) {
  return std::min(snapshot_every, 4 * segment_bytes);
}

// What submissions, and whatever else is not the log's, leave free.
inline std::uint64_t set_aside(const DiskRoom& room) {
  return set_aside_for_completions(room.segment_bytes) +
         log_until_snapshot(room.snapshot_every, room.segment_bytes) + room.snapshot_to_come;
}

inline Admission admission_for(const DiskRoom& room) {
  const std::uint64_t margin = log::end_margin(room.segment_bytes, room.batch_bytes_max);
  if (!room.successor_ready && room.left_in_segment < margin) return Admission::closed;
  if (!room.successor_ready || room.free_bytes < set_aside(room)) return Admission::no_submissions;
  return Admission::open;
}

}  // namespace baton::engine
