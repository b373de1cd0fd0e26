// Something that must never happen has happened. Thrown from wherever it is noticed; the run ends with it.
#pragma once

#include <string>
#include <string_view>

#include "core/apply.h"

namespace baton::sim {

struct Violation {
  std::string id;  // I1 to I22, L1 to L7, "model", or the condition of a BATON_CHECK
  std::string what;
};

// Of an entry.
inline void demand(bool holds, const char* id, const core::Stamp& at, std::string_view what) {
  if (!holds) throw Violation{id, "entry " + std::to_string(at.lsn) + ": " + std::string(what)};
}

}  // namespace baton::sim
