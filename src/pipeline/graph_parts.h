// What has to be the same on all machines of a run, part by part and as hashes, so that a difference can be
// named without sending the graph.
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/codec.h"

namespace baton::pipeline {

struct GraphParts {
  std::uint64_t modules = 0;  // their ids, and the name of the pipeline
  std::uint64_t needs = 0;
  std::uint64_t capabilities = 0;
  std::uint64_t results = 0;  // the form of them
  friend bool operator==(const GraphParts&, const GraphParts&) = default;
};
BATON_FIELDS(GraphParts, modules, needs, capabilities, results)

// "other modules"; empty: no part differs.
std::string difference(const GraphParts& one, const GraphParts& other);

}  // namespace baton::pipeline
