// Damages a small log in every way that fits into a loop, and looks whether anything acknowledged is
// silently lost or changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "log/format.h"
#include "tests/sim/sim_disk.h"

namespace baton::sim {

// Three segments; the newest holds three batches, the last of which takes several sectors.
struct SmallLog {
  SimDisk disk;
  std::vector<Bytes> bodies;  // of all records, by lsn - 1
  log::Lsn before_last_batch = 0;
  std::vector<std::string> segments;  // paths, oldest first
};
inline constexpr log::Options kSmallLogOptions{.segment_bytes = 20 << 10, .batch_bytes = 2048};
enum class Ending { closed, killed };
SmallLog small_log(Ending ending);

struct DamageCheck {
  std::uint64_t cases = 0;
  std::uint64_t refused = 0;
  std::optional<std::string> violation;
};

DamageCheck check_flipped_bits(Ending ending);
DamageCheck check_cut_files(Ending ending);
// Sectors that read as zeros. In a killed log the last batch may be dropped: that is what a power cut in
// the middle of writing it looks like.
DamageCheck check_zeroed_sectors(Ending ending);
// A batch that is sound in itself but carries another epoch than its segment.
DamageCheck check_foreign_epoch();

}  // namespace baton::sim
