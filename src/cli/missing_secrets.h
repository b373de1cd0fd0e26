// Secrets that modules get and this machine does not have: what is found missing only after hours of work
// would waste them.
#pragma once

#include <functional>
#include <vector>

#include "cli/pipeline_source.h"
#include "pipeline/graph.h"

namespace baton::cli {

using OfNode = std::function<bool(const pipeline::GraphNode&)>;

// Those of modules that are part of the run and fit.
std::vector<pipeline::Problem> missing_secrets(const pipeline::PipelineFile& file,
                                               const pipeline::Graph& graph, const OfNode& fits);

// Says which are missing of all modules: another machine may have them.
void tell_of_missing_secrets(const pipeline::PipelineFile& file, const pipeline::Graph& graph);

// Of each node whether nothing but a failure keeps it from running: neither a condition, nor that this
// machine cannot run it, nor that something it needs is skipped for such a reason.
std::vector<bool> bound_to_run(const pipeline::PipelineFile& file, const pipeline::Graph& graph,
                               const OfNode& can_run);

}  // namespace baton::cli
