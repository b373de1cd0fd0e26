#include "tests/sim/faults.h"

#include <fmt/format.h>

namespace baton::sim {
namespace {

constexpr std::array<std::string_view, kFaults> kNames{{
    "process killed",
    "power cut",
    "power cut between two disk operations",
    "power cut in recovery",
    "unsynced sector lost",
    "batch torn",
    "unsynced name lost",
    "clean stop",
    "sync failed, cache kept",
    "sync failed, cache dropped",
    "disk operation failed",
    "sync lied",
    "entries lost by a lie",
    "disk full",
    "submission refused for space",
    "space returned",
    "read failed",
    "bit flipped",
    "sector zeroed",
    "damage refused",
    "damage harmless",
    "slow flush",
    "wall clock forward",
    "wall clock back",
    "boot clock drifts",
    "coordinator stalled",
    "request lost",
    "answer lost",
    "request doubled",
    "requests reordered",
    "party cut off",
    "asked again",
    "given up",
    "worker crashed",
    "worker stalled past expiry",
    "worker sent twice",
    "worker lied",
    "snapshot made",
    "step while a snapshot is written",
    "segment removed",
    "blob moved",
    "started from a snapshot",
    "torn tail dropped",
}};

}  // namespace

std::string_view name_of(Fault fault) { return kNames[static_cast<std::size_t>(fault)]; }

void Faults::add(const Faults& other) {
  for (std::size_t i = 0; i < kFaults; ++i) counts[i] += other.counts[i];
}

std::string Faults::table() const {
  fmt::memory_buffer out;
  for (std::size_t i = 0; i < kFaults; ++i) {
    fmt::format_to(std::back_inserter(out), "  {:<40}{:>12}\n", kNames[i], counts[i]);
  }
  return fmt::to_string(out);
}

std::vector<std::string> Faults::missing() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kFaults; ++i) {
    if (counts[i] == 0) names.emplace_back(kNames[i]);
  }
  return names;
}

}  // namespace baton::sim
