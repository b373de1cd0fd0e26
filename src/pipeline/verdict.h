// What it means for a module how those ended that it needs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "pipeline/graph.h"

namespace baton::pipeline {

struct Verdict {
  enum Kind : std::uint8_t { run, skip, cancel, fail } kind = run;
  std::string reason;
};

// Why it cannot run: the first that it requires and that failed; if none did, the first that did not run
// either. Empty: neither is in its way.
std::string failure_before(const Graph& graph, NodeIndex node,
                           const std::function<ModuleStatus(NodeIndex)>& status);

// All that it needs is over.
Verdict verdict_on(const Graph& graph, NodeIndex node, const std::function<ModuleStatus(NodeIndex)>& status);

}  // namespace baton::pipeline
