// Many seeds: runs them on several processes, adds up what they reached, and shrinks the first that fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/sim/world.h"

namespace baton::sim {

struct Tally {
  std::uint64_t seeds = 0;
  std::uint64_t steps = 0;
  std::uint64_t crashes = 0;
  std::uint64_t entries = 0;
  std::uint64_t refused = 0;
  std::uint64_t repeated = 0;              // run twice, to see that nothing but the seed decides
  std::uint64_t hash = 0;                  // of all seeds' hashes, in any order
  std::uint64_t failed_seed = UINT64_MAX;  // the smallest
  Faults faults;
  Coverage coverage;

  void add(const Run& run, std::uint64_t seed);
  void add(const Tally& other);
};

// Seeds first, first + 1, … on `jobs` processes. Stops early where one fails.
Tally run_seeds(std::uint64_t first, std::uint64_t count, unsigned jobs);

}  // namespace baton::sim
