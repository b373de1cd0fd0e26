#include "pipeline/result_shelf.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "pipeline/packing.h"

namespace baton::pipeline {
namespace {

constexpr std::size_t kInlineInAll = 4 * kInlineBytesMax;  // of one assignment

}  // namespace

ResultShelf::ResultShelf(const Graph& graph, const Schedule& schedule,
                         const std::vector<ModuleReport>& modules)
    : graph_(graph), schedule_(schedule), modules_(modules), held_(graph.size()) {
  for (const GraphNode& node : graph.nodes()) {
    for (const Consumed& consumed : node.spec->consumes) producers_[consumed.producer];
  }
  for (NodeIndex node = 0; node < graph.size(); ++node) {
    const auto producer = producers_.find(graph[node].spec->id);
    if (producer != producers_.end()) producer->second.push_back(node);
  }
}

Result<std::shared_ptr<const void>> ResultShelf::value_of(NodeIndex node) {
  Held& held = held_[node];
  if (!held.value && held.carried && !held.carried->blob) {
    auto value = graph_[node].spec->result.decode(held.carried->text);
    if (!value) return std::unexpected(value.error());
    held.value = std::move(*value);
  }
  return held.value;
}

Result<std::optional<Carried>> ResultShelf::carried_of(NodeIndex node) {
  Held& held = held_[node];
  const ResultType& type = graph_[node].spec->result;
  if (held.carried || !held.value || !type.travels()) return held.carried;
  auto carried = carry(type, held.value.get(), nullptr, {});
  if (!carried)
    return failure(carried.error().code, "the result of " + graph_[node].id + ": " + carried.error().message);
  held.carried = std::move(*carried);
  return held.carried;
}

Result<ModuleOrder> ResultShelf::order_of(NodeIndex node) {
  ModuleOrder order{.node = &graph_[node], .artifacts = artifacts_for(node)};
  for (const GraphNeed& need : graph_[node].needs) {
    Input& input = order.inputs.emplace_back();
    for (const NodeIndex other : need.on) {
      const ModuleReport& report = modules_[other];
      Settlement& one = input.emplace_back();
      one = {.module = report.id,
             .status = schedule_.status(other),
             .failure = report.failure,
             .skipped_because = schedule_.reason(other)};
      if (graph_[other].target) one.target = graph_[other].target->name;
      auto value = value_of(other);
      if (!value)
        return failure(value.error().code,
                       "the result of " + report.id + " cannot be read: " + value.error().message);
      one.value = std::move(*value);
      const auto& carried = held_[other].carried;
      if (!one.value && carried && carried->blob)
        order.large.push_back(
            {order.inputs.size() - 1, input.size() - 1, &graph_[other].spec->result, *carried->blob});
    }
  }
  return order;
}

// Of all instances of the modules it consumes from, which have run before it, whether or not it needs them
// directly.
std::vector<ArtifactRef> ResultShelf::artifacts_for(NodeIndex node) const {
  std::vector<ArtifactRef> all;
  for (const Consumed& consumed : graph_[node].spec->consumes) {
    for (const NodeIndex other : producers_.at(consumed.producer)) {
      std::ranges::copy_if(held_[other].artifacts, std::back_inserter(all),
                           [&](const ArtifactRef& artifact) { return artifact.name == consumed.name; });
    }
  }
  return all;
}

// Once for all who need it. Where it cannot be, it goes along after all.
const std::optional<BlobRef>& ResultShelf::stored(NodeIndex node) {
  Held& held = held_[node];
  if (!held.stored && store_ != nullptr) {
    if (auto blob = store_->put(bytes_of_text(held.carried->text), {})) held.stored = std::move(*blob);
  }
  return held.stored;
}

Result<ModuleAssignment> ResultShelf::assignment_of(NodeIndex node) {
  const GraphNode& one = graph_[node];
  ModuleAssignment assignment{.module = one.id,
                              .result_type = one.spec->result.schema,
                              .required_capabilities = one.capabilities,
                              .matrix_target = one.target ? one.target->name : std::string(),
                              // between two of them there is room for what only some can do
                              .priority = 2U * static_cast<std::uint32_t>(one.spec->priority),
                              .attempts_max = one.spec->idempotent ? 1 + one.spec->lost_retries : 1,
                              .always_run = one.spec->always_run,
                              .artifacts = artifacts_for(node)};
  std::size_t inline_bytes = 0;
  for (const GraphNeed& need : one.needs) {
    for (const NodeIndex other : need.on) {
      auto carried = carried_of(other);
      if (!carried) return std::unexpected(carried.error());
      DependencyResult& dependency = assignment.dependencies.emplace_back();
      // How it came by its value does not matter, and a master that was started again must say the same.
      const ModuleStatus ended = schedule_.status(other);
      dependency = {.module = graph_[other].id, .status = has_value(ended) ? ModuleStatus::succeeded : ended};
      if (ended == ModuleStatus::skipped) dependency.skipped_because = in_bounds(schedule_.reason(other));
      if (*carried) dependency.value = (*carried)->text, dependency.blob = (*carried)->blob;
      inline_bytes += dependency.value.size();
      if (inline_bytes > kInlineInAll && !dependency.value.empty()) {
        dependency.blob = stored(other);
        if (dependency.blob) dependency.value.clear();
      }
      if (modules_[other].failure.kind == FailureKind::none) continue;
      dependency.failure = in_bounds(modules_[other].failure);
      inline_bytes += dependency.failure->detail.size();
      if (inline_bytes > kInlineInAll) dependency.failure->detail.clear();  // the message has the reason
    }
  }
  return assignment;
}

}  // namespace baton::pipeline
