// The results of a run, as objects or as text, and who needs them: what ran here is encoded when somebody
// elsewhere wants it, what ran elsewhere is decoded when somebody here does.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/coordinator.h"
#include "pipeline/report.h"
#include "pipeline/schedule.h"

namespace baton::pipeline {

class ResultShelf {
 public:
  // All of them outlive it; `modules` is told of how each ended.
  ResultShelf(const Graph& graph, const Schedule& schedule, const std::vector<ModuleReport>& modules)
      : graph_(graph), schedule_(schedule), modules_(modules), held_(graph.size()) {}

  void put(NodeIndex node, std::shared_ptr<const void> value) { held_[node].value = std::move(value); }
  void put(NodeIndex node, std::string encoded, std::vector<ArtifactRef> artifacts) {
    held_[node] = {nullptr, std::move(encoded), std::move(artifacts)};
  }

  // Null: it has none.
  Result<std::shared_ptr<const void>> value_of(NodeIndex node);
  const std::shared_ptr<const void>& value_at_hand(NodeIndex node) const { return held_[node].value; }
  // Nothing: it has none, or it stays here.
  Result<std::optional<std::string>> text_of(NodeIndex node);

  // What the module needs, for its body; and for a worker.
  std::vector<Input> inputs_of(NodeIndex node);
  Result<ModuleAssignment> assignment_of(NodeIndex node);

 private:
  struct Held {
    std::shared_ptr<const void> value;
    std::optional<std::string> encoded;
    std::vector<ArtifactRef> artifacts;
  };

  const Graph& graph_;
  const Schedule& schedule_;
  const std::vector<ModuleReport>& modules_;
  std::vector<Held> held_;
};

}  // namespace baton::pipeline
