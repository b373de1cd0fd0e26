#include "pipeline/file_references.h"

#include <algorithm>

#include "pipeline/similar.h"

namespace baton::pipeline {
namespace {

std::string text_of(const Reference& reference) { return "${" + reference.root + "." + reference.rest + "}"; }

}  // namespace

void ReferenceCheck::run() {
  for (const FileStep& step : module_.steps) check(step.script);
  for (const std::string& word : module_.words) check(word);
  for (const auto& [name, value] : module_.environment) check(value);
  check(module_.directory);
  for (const auto& condition : {module_.run_if, module_.skip_if}) {
    if (condition) check_condition(*condition);
  }
}

void ReferenceCheck::check(const std::string& text) {
  auto references = references_in(text);
  if (!references) return map_.complain(node_, references.error().message);
  for (const Reference& reference : *references) {
    check(reference);
    if (reference.root == "env") check_is_no_secret(reference);
  }
}

// It would be part of a command, for all on the machine to see, and reach modules that do not list it.
// Whether there is one may be asked.
void ReferenceCheck::check_is_no_secret(const Reference& reference) {
  if (std::ranges::find(file_.secrets, reference.rest) == file_.secrets.end()) return;
  map_.complain(node_, text_of(reference) +
                           " is a secret: list it under `secrets` of the module, and let its " +
                           "command read the variable");
}

void ReferenceCheck::check_condition(const std::string& condition) {
  auto parts = parts_of_condition(condition);
  if (!parts) return map_.complain(node_, "'" + condition + "': " + parts.error().message);
  for (const Reference& reference : parts->references) check(reference);
  for (const Asked& asked : parts->asked) {
    if (asked.function != "exists") check_need(asked.argument, asked.function + "(" + asked.argument + ")");
  }
}

void ReferenceCheck::check(const Reference& reference) {
  std::vector<std::string> known;
  if (reference.root == "params") {
    for (const FileParameter& parameter : file_.parameters) known.push_back(parameter.name);
    check_among(reference, known);
  } else if (reference.root == "vars") {
    for (const auto& [one, value] : module_.variables) known.push_back(one);
    check_among(reference, known);
  } else if (reference.root == "run") {
    check_among(reference, {"id"});
  } else if (reference.root == "matrix") {
    for (const Target& target : spec_.targets) {
      for (const auto& [axis, value] : target.axes) known.push_back(axis);
    }
    check_among(reference, known);
  } else if (reference.root == "needs") {
    check_need(reference);
  }
}

void ReferenceCheck::check_need(const Reference& reference) {
  constexpr std::string_view kOutputs = ".outputs.";
  const std::string& rest = reference.rest;
  const std::string name = text_of(reference);
  const std::size_t outputs = rest.find(kOutputs);
  const std::size_t status = rest.ends_with(".status") ? rest.rfind(".status") : std::string::npos;
  if (outputs == std::string::npos && status == std::string::npos)
    return map_.complain(node_, name + ": of a module there are `.outputs.NAME` and `.status`");
  const std::string id = rest.substr(0, std::min(outputs, status));
  if (!check_need(id, name)) return;
  const auto known = needables_.find(id.substr(0, id.find('[')));
  if (known == needables_.end()) return;  // optional, and not there
  if (known->second.is_matrix && id.find('[') == std::string::npos)
    return map_.complain(node_, name + ": " + id + " is a matrix, so say which of it: " + id + "[TARGET]");
  if (outputs == std::string::npos) return;
  const std::string output = rest.substr(outputs + kOutputs.size());
  if (const auto& all = known->second.outputs; std::ranges::find(all, output) == all.end())
    map_.complain(node_, name + ": " + id + " does not declare it under `outputs`" + suggestion(output, all));
}

void ReferenceCheck::check_among(const Reference& reference, const std::vector<std::string>& known) {
  if (std::ranges::find(known, reference.rest) == known.end())
    map_.complain(node_, text_of(reference) + " is not known" + suggestion(reference.rest, known));
}

bool ReferenceCheck::check_need(const std::string& id, const std::string& name) {
  const std::string plain = id.substr(0, id.find('['));
  if (std::ranges::find(module_.needs, plain) != module_.needs.end()) return true;
  map_.complain(node_,
                name + ": the module does not need '" + plain + "'" + suggestion(plain, module_.needs));
  return false;
}

void add_command_to_key(CacheInputs& cache, const FileModule& module,
                        const std::map<std::string, std::string>& parameters) {
  if (cache.empty()) return;
  std::vector<std::string> parts;
  for (const auto& list : {module.words, module.shell, module.outputs}) {
    parts.push_back(std::to_string(list.size()));
    parts.insert(parts.end(), list.begin(), list.end());
  }
  // With how many there are of each, so that one cannot be taken for another.
  parts.push_back(std::to_string(module.steps.size()));
  for (const FileStep& step : module.steps) parts.push_back(step.script);
  for (const auto* values : {&module.environment, &module.variables, &parameters}) {
    parts.push_back(std::to_string(values->size()));
    for (const auto& [name, value] : *values) parts.push_back(name + "=" + value);
  }
  parts.insert(parts.end(), {module.directory, module.run_if.value_or(""), module.skip_if.value_or("")});
  for (const std::string& text : parts) {
    const auto references = references_in(text);
    if (!references) continue;  // it has been complained of
    for (const Reference& reference : *references) {
      if (reference.root == "env") cache.environment.push_back(reference.rest);
    }
  }
  for (const auto& condition : {module.run_if, module.skip_if}) {
    const auto asks = condition ? parts_of_condition(*condition) : Result<ConditionParts>();
    if (!condition || !asks) continue;
    for (const Asked& asked : asks->asked) {
      if (asked.function == "exists") cache.existence.push_back(asked.argument);
    }
  }
  cache.parts.insert(cache.parts.end(), parts.begin(), parts.end());
}

}  // namespace baton::pipeline
