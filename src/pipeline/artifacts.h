// The artifacts of one module: what it consumes is put into its place before the body runs, and what it
// produces is stored before its result is known to anybody.
#pragma once

#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "pipeline/coordinator.h"
#include "pipeline/graph.h"
#include "pipeline/site.h"

namespace baton::pipeline {

// Names the module, the artifact and the place.
struct ArtifactFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Both throw ArtifactFailed. Paths are from the folder of the run. The artifacts of a matrix come from each
// of its instances, or from the one with the same target if there is one, and go into folders by target where
// `into` says into which folder.
void fetch_artifacts(const Site& site, const GraphNode& node, const std::vector<ArtifactRef>& artifacts,
                     const std::stop_token& stop);
// But for those that its body stores itself, as `stored` says.
std::vector<ArtifactRef> store_artifacts(const Site& site, const GraphNode& node,
                                         std::vector<ArtifactRef> stored, const std::stop_token& stop);

// One, for bodies that do it themselves. `consumed.into` may be absolute.
void fetch_artifact(const Site& site, const GraphNode& node, const Consumed& consumed,
                    const std::vector<ArtifactRef>& artifacts, const std::stop_token& stop);
ArtifactRef store_artifact(const Site& site, const GraphNode& node, const Produced& produced,
                           const std::stop_token& stop);

// A path with the values of a matrix in it: out/${matrix.os}.
std::string on_target(std::string path, const GraphNode& node);

}  // namespace baton::pipeline
