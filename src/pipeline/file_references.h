// What the commands and conditions of a module in a pipeline file refer to: whether all of it is there, and
// what a cached result depends on because of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pipeline/expression.h"
#include "pipeline/file_module.h"
#include "pipeline/pipeline_file.h"
#include "pipeline/yaml_reader.h"

namespace baton::pipeline {

// What others may refer to of a module that they need.
struct Needable {
  std::vector<std::string> outputs;
  bool is_matrix = false;
};

// Complains to the map, at the node. All outlive it.
class ReferenceCheck {
 public:
  ReferenceCheck(const PipelineFile& file, const std::map<std::string, Needable>& needables, YamlMap& map,
                 const Yaml& node, const ModuleSpec& spec, const FileModule& module)
      : file_(file), needables_(needables), map_(map), node_(node), spec_(spec), module_(module) {}

  void run();

 private:
  void check(const std::string& text);
  void check_condition(const std::string& condition);
  void check(const Reference& reference);
  void check_is_no_secret(const Reference& reference);
  void check_among(const Reference& reference, const std::vector<std::string>& known);
  void check_need(const Reference& reference);
  bool check_need(const std::string& id, const std::string& name);

  const PipelineFile& file_;
  const std::map<std::string, Needable>& needables_;
  YamlMap& map_;
  const Yaml& node_;
  const ModuleSpec& spec_;
  const FileModule& module_;
};

// Whatever says what is run is part of the key, if there is one.
void add_command_to_key(CacheInputs& cache, const FileModule& module,
                        const std::map<std::string, std::string>& parameters);

}  // namespace baton::pipeline
