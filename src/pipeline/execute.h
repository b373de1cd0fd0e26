// One module, from its skip conditions to its last hook, on the thread that calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "pipeline/coordinator.h"
#include "pipeline/graph.h"
#include "pipeline/site.h"

namespace baton::pipeline {

// What a module came to.
struct ModuleResult {
  ModuleStatus status = ModuleStatus::failed;
  std::shared_ptr<const void> value;
  std::optional<Carried> carried;  // the value, if it was to be made ready for other machines
  std::vector<ArtifactRef> artifacts;
  ModuleFailure failure;
  std::string skipped_because;
  std::uint32_t tries = 0;  // on this machine
  Duration transfer;        // how long artifacts and large values took to come and go
};

// The result of a needed module that is too large to be at hand.
struct LargeInput {
  std::size_t need = 0, instance = 0;  // which of the inputs
  const ResultType* type = nullptr;
  BlobRef blob;
};

struct ModuleOrder {
  const GraphNode* node = nullptr;
  std::vector<Input> inputs;  // one for each need
  std::vector<LargeInput> large;
  std::vector<ArtifactRef> artifacts;  // that it may consume
  std::uint32_t attempt = 1;           // the how manieth machine it is given to
  bool is_carried = false;             // its value is wanted on other machines
};

// Watches over the tries of a module, each of which has its own time.
class Supervisor {
 public:
  virtual ~Supervisor() = default;
  // The next one begins after the delay. The token is triggered when its time is up, or when nobody wants the
  // module any more.
  virtual std::stop_token next_try(Duration delay) = 0;
  // Why it was triggered: its time was up.
  virtual bool is_late() = 0;
};

// Nothing is thrown, whatever the body does.
ModuleResult execute(const Site& site, const ModuleOrder& order, Supervisor& supervisor);

// As the one that needs it sees it.
Settlement settlement_of(const GraphNode& node, const ModuleResult& result);
// A failure becomes one that is ignored, if the module is allowed to fail so.
ModuleStatus status_of_failure(const GraphNode& node, const ModuleFailure& failure);

}  // namespace baton::pipeline
