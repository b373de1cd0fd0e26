// The matrix of a module in a pipeline file: a list of targets, or axes whose combinations are.
#pragma once

#include <vector>

#include "pipeline/module.h"
#include "pipeline/yaml_reader.h"

namespace baton::pipeline {

// What is wrong with it is complained of to the map.
std::vector<Target> targets_of(YamlMap& map, const Yaml& matrix);

}  // namespace baton::pipeline
