// Makes a failing scenario small: fewer items first, then plainer knobs, as long as the same thing fails.
#pragma once

#include <string>

#include "tests/sim/scenario.h"

namespace baton::sim {

struct Shrunk {
  Scenario scenario;
  std::uint64_t runs = 0;
};

Shrunk shrink(Scenario scenario, const std::string& id, std::uint64_t runs_max = 3000);

}  // namespace baton::sim
