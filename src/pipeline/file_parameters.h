// The parameters of a pipeline file, and the values that they have in a run.
#pragma once

#include <map>
#include <string>

#include "pipeline/pipeline_file.h"
#include "pipeline/yaml_reader.h"

namespace baton::pipeline {

// Takes `params` out of the map, and the values from what was given. What is wrong is complained of. False:
// what parameters there are is not known.
bool read_parameters(YamlMap& top, Complaints& complaints, const std::map<std::string, std::string>& given,
                     PipelineFile& file);

}  // namespace baton::pipeline
