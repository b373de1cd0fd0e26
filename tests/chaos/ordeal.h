// A server that is killed, cut off, paused and starved while people use it, and what its history comes to.
//
//   people --> proxy --> server        rounds of faults, each ended by a kill; then peace, and all that is
//   left
//                ^----- faults -----^  is worked off; then the histories and the log are checked
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/chaos/checks.h"
#include "tests/chaos/stage.h"

namespace baton::chaos {

struct OrdealOptions {
  Setting setting = Setting::plain;
  std::uint64_t seed = 1;
  unsigned rounds = 5;
};

// Sums over ordeals.
struct Tally {
  unsigned rounds = 0;
  std::uint64_t operations = 0;
  std::uint64_t unknown = 0;  // of them
  std::uint64_t submitted = 0, recovered = 0, lost = 0, phantom = 0, doubly_completed = 0, repeated_work = 0;
  std::uint64_t writes = 0, stale_writes = 0;
  std::map<std::string, std::uint64_t> faults;  // that really happened, by kind
  Complaints complaints;

  void add(const Tally& other);
  std::string summary() const;
};

Tally run_ordeal(const OrdealOptions& options);

}  // namespace baton::chaos
