// A module of a pipeline file: a command, and what it gets to know.
//
// Values reach it as variables: BATON_RUN, BATON_MODULE, BATON_TARGET, BATON_PARAM_X, BATON_MATRIX_X,
// BATON_NEEDS_BUILD_VERSION for the output `version` of `build`, and what `env` and `secrets` name. Its
// outputs are lines NAME=VALUE in the file that BATON_OUTPUT names.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/expression.h"
#include "pipeline/module.h"

namespace baton::pipeline {

struct CommandOutputs {
  int exit_code = 0;
  std::map<std::string, std::string> outputs;
  // What of them must not be seen: whoever gets them may not know the secrets of the machine they are from.
  std::optional<std::vector<std::string>> secrets;
  friend bool operator==(const CommandOutputs&, const CommandOutputs&) = default;
};
BATON_FIELDS(CommandOutputs, exit_code, outputs, secrets)

struct FileStep {
  std::string name;
  std::string script;
};

struct FileModule {
  std::string id;
  std::vector<std::string> words;  // a command without a shell; or
  std::vector<FileStep> steps;     // scripts, one after the other
  std::vector<std::string> shell = {"sh", "-eu", "-c"};
  std::string directory;
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> variables;  // `vars`
  std::optional<std::string> run_if;
  std::optional<std::string> skip_if;
  std::vector<std::string> outputs;  // declared
  std::vector<std::string> needs;    // ids, as in the spec
  std::vector<std::string> secrets;
};

// What a reference stands for; nothing for those that are known only when the module runs.
std::function<std::shared_ptr<const void>(Context&, std::span<const Input>)> body_of(
    std::shared_ptr<const FileModule> module);
// `if` and `skip_if`.
InputCondition conditions_of(std::shared_ptr<const FileModule> module);

// As part of a variable's name: BUILD_IMAGE for build-image.
std::string variable_name(std::string_view text);

}  // namespace baton::pipeline
