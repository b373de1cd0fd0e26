// An assignment as an order for this machine, and what became of it as a result for others.
#pragma once

#include <optional>
#include <string>

#include "pipeline/coordinator.h"
#include "pipeline/execute.h"

namespace baton::pipeline {

// The results of what the module needs, as its body gets them. Returns what is wrong with them.
std::optional<ModuleFailure> unpack(const Graph& graph, const ModuleAssignment& assignment,
                                    ModuleOrder& order);

// Somebody may throw a whole log, and no coordinator would take a result with that in it. What is there of it
// is how it begins and how it ends, in whole characters; given again it stays as it is.
std::string in_bounds(std::string reason);
ModuleFailure in_bounds(ModuleFailure failure);

SerializedModuleResult packed(SerializedModuleResult result, const ModuleResult& ended, Duration took);
// With all that was said; where it is long and there is no store, with the end of it.
void attach_log(SerializedModuleResult& result, std::string log, BlobStore* store);

}  // namespace baton::pipeline
