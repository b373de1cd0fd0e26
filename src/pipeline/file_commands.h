// What a module in a pipeline file runs: a script, the words of a command, or steps.
#pragma once

#include "pipeline/file_module.h"
#include "pipeline/yaml_reader.h"

namespace baton::pipeline {

// Takes it out of the map, which is of `node`. What is wrong is complained of.
void read_commands(YamlMap& map, const Yaml& node, Complaints& complaints, FileModule& module);

}  // namespace baton::pipeline
