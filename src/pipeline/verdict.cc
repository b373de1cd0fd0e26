#include "pipeline/verdict.h"

#include <algorithm>
#include <vector>

namespace baton::pipeline {
namespace {

std::string told(const GraphNode& node, ModuleStatus ended) {
  return node.id + " " + std::string(ending(ended));
}

// Of the instances of a matrix those with the module's own target come first: they are what it is about.
std::vector<NodeIndex> nearest_first(const Graph& graph, NodeIndex node, const GraphNeed& need) {
  std::vector<NodeIndex> all = need.on;
  const Target* own = graph[node].target;
  if (own == nullptr) return all;
  std::ranges::stable_partition(all, [&](NodeIndex other) {
    const Target* target = graph[other].target;
    return target != nullptr && target->name == own->name;
  });
  return all;
}

Verdict judge_required(const Graph& graph, NodeIndex node, const GraphNeed& need,
                       const std::function<ModuleStatus(NodeIndex)>& status) {
  bool any_ran = false, any_skipped = false;
  for (const NodeIndex other : need.on) {
    const ModuleStatus ended = status(other);
    if (ended == ModuleStatus::cancelled) return {Verdict::cancel, told(graph[other], ended)};
    if (spoils_run(ended)) return {Verdict::fail, failure_before(graph, node, status)};
    if (ended == ModuleStatus::skipped) {
      any_skipped = true;
    } else if (need.takes_value && !has_value(ended)) {
      return {Verdict::skip, graph[other].id + " failed, which it may, and so has no result"};
    } else {
      any_ran = true;
    }
  }
  if (any_ran || !any_skipped) return {};
  return {Verdict::skip, told(graph[nearest_first(graph, node, need).front()], ModuleStatus::skipped)};
}

Verdict judge_failed(const GraphNeed& need, const std::function<ModuleStatus(NodeIndex)>& status) {
  for (const NodeIndex other : need.on) {
    const ModuleStatus ended = status(other);
    if (ended == ModuleStatus::failed || ended == ModuleStatus::timed_out ||
        ended == ModuleStatus::ignored_failure)
      return {};
  }
  return {Verdict::skip, "nothing failed that it is there for"};
}

}  // namespace

std::string failure_before(const Graph& graph, NodeIndex node,
                           const std::function<ModuleStatus(NodeIndex)>& status) {
  std::string not_run;
  for (const GraphNeed& need : graph[node].needs) {
    if (need.kind != NeedKind::required) continue;
    for (const NodeIndex other : nearest_first(graph, node, need)) {
      const ModuleStatus ended = status(other);
      if (ended == ModuleStatus::cancelled || !spoils_run(ended)) continue;
      if (ended != ModuleStatus::dependency_failed) return told(graph[other], ended);
      if (not_run.empty()) not_run = told(graph[other], ended);
    }
  }
  return not_run;
}

Verdict verdict_on(const Graph& graph, NodeIndex node, const std::function<ModuleStatus(NodeIndex)>& status) {
  for (const GraphNeed& need : graph[node].needs) {
    Verdict verdict;
    if (need.kind == NeedKind::required) verdict = judge_required(graph, node, need, status);
    if (need.kind == NeedKind::failed) verdict = judge_failed(need, status);
    if (verdict.kind == Verdict::run) continue;
    // One that always runs does so whatever became of the others, unless it cannot be called without their
    // result.
    const bool lacks_value = need.takes_value && !std::ranges::all_of(need.on, [&](NodeIndex on) {
                               return has_value(status(on));
                             });
    if (!graph[node].spec->always_run) return verdict;
    if (lacks_value) return {Verdict::skip, verdict.reason};
  }
  return {};
}

}  // namespace baton::pipeline
