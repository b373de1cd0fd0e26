// The results of a run, as objects or as text, and who needs them: what ran here is encoded when somebody
// elsewhere wants it, what ran elsewhere is decoded when somebody here does.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/coordinator.h"
#include "pipeline/execute.h"
#include "pipeline/report.h"
#include "pipeline/schedule.h"

namespace baton::pipeline {

class ResultShelf {
 public:
  // All of them outlive it; `modules` is told of how each ended.
  ResultShelf(const Graph& graph, const Schedule& schedule, const std::vector<ModuleReport>& modules);

  // For assignments with many results, each of them small.
  void store_in(BlobStore* store) { store_ = store; }

  // One of both, or both.
  void put(NodeIndex node, std::shared_ptr<const void> value, std::optional<Carried> carried,
           std::vector<ArtifactRef> artifacts) {
    held_[node] = {std::move(value), std::move(carried), std::move(artifacts), {}};
  }

  // Null: it has none, or a large one that is stored.
  Result<std::shared_ptr<const void>> value_of(NodeIndex node);
  const std::shared_ptr<const void>& value_at_hand(NodeIndex node) const { return held_[node].value; }
  // Nothing: it has none, or it stays here.
  Result<std::optional<Carried>> carried_of(NodeIndex node);

  // What the module needs, for its body; and for a worker.
  Result<ModuleOrder> order_of(NodeIndex node);
  Result<ModuleAssignment> assignment_of(NodeIndex node);

 private:
  struct Held {
    std::shared_ptr<const void> value;
    std::optional<Carried> carried;
    std::vector<ArtifactRef> artifacts;
    std::optional<BlobRef> stored;  // the value, where an assignment had no room for it
  };
  std::vector<ArtifactRef> artifacts_for(NodeIndex node) const;
  const std::optional<BlobRef>& stored(NodeIndex node);

  const Graph& graph_;
  const Schedule& schedule_;
  const std::vector<ModuleReport>& modules_;
  std::vector<Held> held_;
  std::map<std::string, std::vector<NodeIndex>>
      producers_;  // instances of modules that somebody consumes from
  BlobStore* store_ = nullptr;
};

}  // namespace baton::pipeline
