// Tries the log against every crash there is, within bounds.
//
// Every short sequence of operations is run on a SimDisk; at every disk operation the power goes, with
// every subset of what was pending (sampled where there are too many); the log is recovered, also with a
// second crash on the way. Whatever happens: all that was acknowledged is there, in order, and nothing
// that was not appended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace baton::sim {

struct CrashBounds {
  int operations_max = 3;
  std::uint64_t second_crash_one_in = 16;  // of the recoveries are themselves interrupted, everywhere
};

struct CrashCheck {
  std::uint64_t sequences = 0;
  std::uint64_t recoveries = 0;
  std::uint64_t interrupted_recoveries = 0;
  std::optional<std::string> violation;  // the first one, with what led to it
};

CrashCheck check_power_cuts(const CrashBounds& bounds);

// The same sequences, with the n-th sync failing (in each way a sync can fail) or the n-th operation
// failing, for every n. A failed flush ends the process; then the machine is restarted or loses power.
CrashCheck check_failures(const CrashBounds& bounds);

}  // namespace baton::sim
