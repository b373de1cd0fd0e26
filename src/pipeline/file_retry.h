// What a pipeline file says of failures: when a module is tried again, and when its failure does not matter.
#pragma once

#include "pipeline/module.h"
#include "pipeline/yaml_reader.h"

namespace baton::pipeline {

void read_retry(YamlMap& map, Complaints& complaints, ModuleSpec& spec);
void read_allowed_failure(YamlMap& map, ModuleSpec& spec);

}  // namespace baton::pipeline
