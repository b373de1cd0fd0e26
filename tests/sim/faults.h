// How often each kind of fault has struck. A run in which one never did proves nothing about it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

enum class Fault : std::uint8_t {
  kill,
  power_cut,
  cut_within_operation,
  cut_in_recovery,
  sector_lost,
  batch_torn,
  name_lost,
  clean_stop,
  sync_failed_cache_kept,
  sync_failed_cache_dropped,
  operation_failed,
  sync_lied,
  lie_lost_entries,
  disk_full,
  submission_refused,
  space_returned,
  read_failed,
  bit_rotted,
  sector_zeroed,
  rot_refused,
  rot_harmless,
  slow_flush,
  wall_forward,
  wall_back,
  drift,
  stall,
  request_lost,
  answer_lost,
  request_doubled,
  reordered,
  party_cut_off,
  retried,
  gave_up,
  worker_crashed,
  worker_stalled,
  worker_doubled,
  worker_lied,
  snapshot_made,
  interleaved,
  segment_removed,
  blob_moved,
  started_from_snapshot,
  torn_tail_dropped,
  count,
};
inline constexpr std::size_t kFaults = static_cast<std::size_t>(Fault::count);
std::string_view name_of(Fault fault);

struct Faults {
  std::array<std::uint64_t, kFaults> counts{};
  void struck(Fault fault, std::uint64_t times = 1) { counts[static_cast<std::size_t>(fault)] += times; }
  std::uint64_t operator[](Fault fault) const { return counts[static_cast<std::size_t>(fault)]; }
  void add(const Faults& other);
  std::string table() const;
  std::vector<std::string> missing() const;
};

}  // namespace baton::sim
