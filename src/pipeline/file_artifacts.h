// The files of a module in a pipeline file: what it produces and consumes, and what its result depends on.
#pragma once

#include "pipeline/module.h"
#include "pipeline/yaml_reader.h"

namespace baton::pipeline {

// Each takes its keys out of the map; what is wrong is complained of.
void read_artifacts(YamlMap& map, const Complaints& complaints, ModuleSpec& spec);
void read_inputs(YamlMap& map, Complaints& complaints, ModuleSpec& spec);

}  // namespace baton::pipeline
