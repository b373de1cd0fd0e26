// What the values of a module in a pipeline file refer to: whether all of it is there, and what a cached
// result depends on because of it.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "pipeline/expression.h"
#include "pipeline/file_module.h"
#include "pipeline/pipeline_file.h"
#include "pipeline/yaml_reader.h"

namespace baton::pipeline {

using FindValue = std::function<const Yaml*(const char* key)>;  // of a module, or of the defaults; or null

// The values that may refer to something, as they stand in the file.
struct ReferringValues {
  std::vector<const Yaml*> texts;
  std::vector<const Yaml*> paths;   // of artifacts
  std::vector<const Yaml*> inputs;  // they may not
  std::vector<const Yaml*> conditions;
};
// `environment` is that of all modules; may be null.
ReferringValues referring_values(const FindValue& find, const Yaml* environment);

// What others may refer to of a module that they need.
struct Needable {
  std::vector<std::string> outputs;
  std::vector<std::string> targets;
  bool is_matrix = false;
  // Otherwise they were complained of.
  bool outputs_are_known = true;
  bool artifacts_are_known = true;
};
Needable needable_of(const FindValue& find);  // without its targets

// What is said of the whole file.
struct ReferenceScope {
  const PipelineFile& file;
  std::map<std::string, Needable> modules;  // by id
  std::set<std::string> unread;  // "params", "vars": which was complained of, and what they are is not known
};

// All outlive it.
class ReferenceCheck {
 public:
  ReferenceCheck(const ReferenceScope& scope, Complaints& complaints, const ModuleSpec& spec,
                 const FileModule& module, std::vector<AskedVariable>& variables)
      : scope_(scope), complaints_(complaints), spec_(spec), module_(module), variables_(variables) {}

  void run(const ReferringValues& values);

 private:
  void check_text(const Yaml& value);
  void check_path(const Yaml& value);
  void check_input(const Yaml& value);
  void check_condition(const Yaml& value);
  std::string trouble(const Reference& reference) const;
  std::string trouble_among(const Reference& reference, const std::vector<std::string>& known) const;
  std::string trouble_with_need(const Reference& reference) const;
  std::string trouble_with_need(const std::string& id, const std::string& name) const;
  void complain(const Yaml& value, const Reference& reference, std::string trouble);
  void note_variable(const Yaml& value, const Reference& reference, const char* if_unset);

  const ReferenceScope& scope_;
  Complaints& complaints_;
  const ModuleSpec& spec_;
  const FileModule& module_;
  std::vector<AskedVariable>& variables_;
};

// Whatever says what is run is part of the key, if there is one.
void add_command_to_key(CacheInputs& cache, const FileModule& module,
                        const std::map<std::string, std::string>& parameters);

}  // namespace baton::pipeline
