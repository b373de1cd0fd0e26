// A server that is killed, cut off, paused and starved while people use it, and what its history comes to.
//
//   people --> proxy --> server      rounds of faults, each ended by a kill; then peace, and what is left is
//                ^--- faults ---^    worked off; then the histories and the log are checked
#pragma once

#include <cstdint>

#include "tests/chaos/stage.h"
#include "tests/chaos/tally.h"

namespace baton::chaos {

struct OrdealOptions {
  Setting setting = Setting::plain;
  std::uint64_t seed = 1;
  unsigned rounds = 5;
  int mutant = 0;  // a deliberate fault of the server, see base/mutant.h
};

Tally run_ordeal(const OrdealOptions& options);

}  // namespace baton::chaos
