#include "pipeline/result_shelf.h"

#include <exception>
#include <utility>

namespace baton::pipeline {

Result<std::shared_ptr<const void>> ResultShelf::value_of(NodeIndex node) {
  Held& held = held_[node];
  if (!held.value && held.encoded) {
    auto value = graph_[node].spec->result.decode(*held.encoded);
    if (!value) return std::unexpected(value.error());
    held.value = std::move(*value);
  }
  return held.value;
}

Result<std::optional<std::string>> ResultShelf::text_of(NodeIndex node) {
  Held& held = held_[node];
  const ResultType& type = graph_[node].spec->result;
  if (held.encoded || !held.value || !type.travels()) return held.encoded;
  try {
    held.encoded = type.encode(held.value.get());
  } catch (const std::exception& failed) {
    return failure(Errc::invalid_request,
                   "the result of " + graph_[node].id + " cannot be written: " + failed.what());
  }
  return held.encoded;
}

std::vector<Input> ResultShelf::inputs_of(NodeIndex node) {
  std::vector<Input> inputs;
  for (const GraphNeed& need : graph_[node].needs) {
    Input& input = inputs.emplace_back();
    for (const NodeIndex other : need.on) {
      const ModuleReport& report = modules_[other];
      Settlement& one = input.emplace_back();
      one = {.module = report.id,
             .status = schedule_.status(other),
             .failure = report.failure,
             .skipped_because = schedule_.reason(other)};
      if (graph_[other].target) one.target = graph_[other].target->name;
      if (auto value = value_of(other)) one.value = std::move(*value);
    }
  }
  return inputs;
}

Result<ModuleAssignment> ResultShelf::assignment_of(NodeIndex node) {
  const GraphNode& one = graph_[node];
  ModuleAssignment assignment{.module = one.id,
                              .result_type = one.spec->result.schema,
                              .required_capabilities = one.capabilities,
                              .matrix_target = one.target ? one.target->name : std::string(),
                              .priority = 3U * static_cast<std::uint32_t>(one.spec->priority),
                              .attempts_max = one.spec->idempotent ? 1 + one.spec->lost_retries : 1,
                              .always_run = one.spec->always_run};
  for (const GraphNeed& need : one.needs) {
    for (const NodeIndex other : need.on) {
      auto text = text_of(other);
      if (!text) return std::unexpected(text.error());
      DependencyResult& dependency = assignment.dependencies.emplace_back();
      // How it came by its value does not matter, and a master that was started again must say the same.
      const ModuleStatus ended = schedule_.status(other);
      dependency = {.module = graph_[other].id, .status = has_value(ended) ? ModuleStatus::succeeded : ended};
      if (ended == ModuleStatus::skipped) dependency.skipped_because = schedule_.reason(other);
      if (*text) dependency.value = std::move(**text);
      if (modules_[other].failure.kind != FailureKind::none) dependency.failure = modules_[other].failure;
    }
  }
  return assignment;
}

}  // namespace baton::pipeline
