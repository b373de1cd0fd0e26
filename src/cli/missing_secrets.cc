#include "cli/missing_secrets.h"

#include <algorithm>
#include <cstdlib>

#include "cli/output.h"

namespace baton::cli {

std::vector<pipeline::Problem> missing_secrets(const pipeline::PipelineFile& file,
                                               const pipeline::Graph& graph, const OfNode& fits) {
  std::vector<pipeline::Problem> missing;
  for (const pipeline::AskedVariable& one : file.asked_secrets) {
    const auto is_asked_by = [&](const pipeline::GraphNode& node) {
      return node.spec->id == one.if_unset.module && !node.left_out && fits(node);
    };
    if (std::getenv(one.name.c_str()) == nullptr && std::ranges::any_of(graph.nodes(), is_asked_by))
      missing.push_back(one.if_unset);
  }
  return missing;
}

void tell_of_missing_secrets(const pipeline::PipelineFile& file, const pipeline::Graph& graph) {
  for (const pipeline::Problem& one :
       missing_secrets(file, graph, [](const pipeline::GraphNode&) { return true; }))
    to_errors("{}\n", pipeline::describe(one));
}

std::vector<bool> bound_to_run(const pipeline::PipelineFile& file, const pipeline::Graph& graph,
                               const OfNode& can_run) {
  std::vector<bool> is_bound(graph.size());
  const auto holds = [&](const pipeline::GraphNeed& need) {
    if (need.kind == pipeline::NeedKind::failed) return false;
    return need.kind != pipeline::NeedKind::required ||
           std::ranges::all_of(need.on, [&](pipeline::NodeIndex other) { return is_bound[other]; });
  };
  for (const pipeline::NodeIndex index : graph.in_order()) {
    const pipeline::GraphNode& node = graph[index];
    is_bound[index] = !node.left_out && !file.conditional.contains(node.spec->id) && can_run(node) &&
                      std::ranges::all_of(node.needs, holds);
  }
  return is_bound;
}

}  // namespace baton::cli
