#include "pipeline/file_commands.h"

#include <string>
#include <utility>

namespace baton::pipeline {
namespace {

void read_script(YamlMap& map, const Yaml& run, FileModule& module) {
  for (std::string& script : map.texts_of(run, "run")) {
    if (script.empty()) map.complain(run, "run is empty");
    module.steps.push_back({{}, std::move(script)});
  }
  if (run.kind == Yaml::Kind::list && run.items.empty()) map.complain(run, "run is empty");
}

void read_steps(YamlMap& map, const Yaml& steps, Complaints& complaints, FileModule& module) {
  if (steps.items.empty()) map.complain(steps, "steps has to be a list of `{name, run}`, of one at least");
  for (const Yaml& step : steps.items) {
    if (step.kind != Yaml::Kind::map) {
      map.complain(step, "a step is `{name, run}`");
      continue;
    }
    YamlMap one(step, complaints, module.id);
    module.steps.push_back({one.text("name").value_or("step " + std::to_string(module.steps.size() + 1)),
                            one.text("run").value_or("")});
    if (module.steps.back().script.empty()) one.complain(step, "a step needs `run`");
    one.finish();
  }
}

}  // namespace

void read_commands(YamlMap& map, const Yaml& node, Complaints& complaints, FileModule& module) {
  const Yaml* run = map.take("run");
  const Yaml* command = map.take("cmd");
  const Yaml* steps = map.take("steps");
  if ((run != nullptr) + (command != nullptr) + (steps != nullptr) != 1)
    map.complain(node, "it needs one of `run` (a script), `cmd` (a list of words) and `steps`");
  if (run != nullptr) read_script(map, *run, module);
  if (command != nullptr) {
    if (command->kind == Yaml::Kind::list && !command->items.empty())
      module.words = map.texts_of(*command, "cmd");
    else
      map.complain(*command, "cmd has to be a list: the program and its arguments");
  }
  if (steps != nullptr) read_steps(map, *steps, complaints, module);
  if (const auto shell = map.texts("shell"); !shell.empty()) module.shell = shell;
}

}  // namespace baton::pipeline
