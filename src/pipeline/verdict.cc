#include "pipeline/verdict.h"

#include <algorithm>

namespace baton::pipeline {
namespace {

Verdict judge_required(const Graph& graph, const GraphNeed& need,
                       const std::function<ModuleStatus(NodeIndex)>& status) {
  bool any_ran = false;
  std::string skipped;
  for (const NodeIndex other : need.on) {
    const ModuleStatus ended = status(other);
    if (ended == ModuleStatus::cancelled)
      return {Verdict::cancel, graph[other].id + " " + std::string(ending(ended))};
    if (spoils_run(ended)) return {Verdict::fail, graph[other].id + " " + std::string(ending(ended))};
    if (ended == ModuleStatus::skipped) {
      skipped = graph[other].id + " was skipped";
    } else if (need.takes_value && !has_value(ended)) {
      return {Verdict::skip, graph[other].id + " failed, which it may, and so has no result"};
    } else {
      any_ran = true;
    }
  }
  if (!any_ran && !skipped.empty()) return {Verdict::skip, skipped};
  return {};
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

Verdict verdict_on(const Graph& graph, NodeIndex node, const std::function<ModuleStatus(NodeIndex)>& status) {
  for (const GraphNeed& need : graph[node].needs) {
    Verdict verdict;
    if (need.kind == NeedKind::required) verdict = judge_required(graph, need, status);
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
