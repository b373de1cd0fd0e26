// Something that must never happen has happened. Thrown from wherever it is noticed; the run ends with it.
#pragma once

#include <string>

namespace baton::sim {

struct Violation {
  std::string id;  // I1 to I22, L1 to L7, "model", or the condition of a BATON_CHECK
  std::string what;
};

}  // namespace baton::sim
