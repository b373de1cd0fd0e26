#include "pipeline/graph_parts.h"

namespace baton::pipeline {

// Where modules differ, the rest says nothing.
std::string difference(const GraphParts& one, const GraphParts& other) {
  if (one.modules != other.modules) return "other modules";
  if (one.needs != other.needs) return "other needs";
  if (one.capabilities != other.capabilities) return "other capabilities";
  if (one.results != other.results) return "results of another form";
  return {};
}

}  // namespace baton::pipeline
