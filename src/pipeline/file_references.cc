#include "pipeline/file_references.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "pipeline/similar.h"

namespace baton::pipeline {
namespace {

// The value, or those that it is made of.
void add_scalars(std::vector<const Yaml*>& all, const Yaml* value) {
  if (value == nullptr) return;
  if (value->kind == Yaml::Kind::scalar) all.push_back(value);
  for (const Yaml& item : value->items) add_scalars(all, &item);
  for (const auto& [name, one] : value->fields) add_scalars(all, &one);
}

bool is_among(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

std::string without_target(const std::string& id) { return id.substr(0, id.find('[')); }

// The paths that a condition asks for, with ${matrix.…} as it is. False: one of them is known only when the
// module runs.
bool add_existence(CacheInputs& cache, const std::string& condition, const FileModule& module,
                   const std::map<std::string, std::string>& parameters) {
  constexpr char kUnknown = '\0';
  const auto found = [](const std::map<std::string, std::string>& all, const std::string& name) {
    const auto one = all.find(name);
    return one == all.end() ? std::string() : one->second;
  };
  const auto resolve = [&](const Reference& reference) -> Result<std::string> {
    if (reference.root == "params") return found(parameters, reference.rest);
    if (reference.root == "vars") return found(module.variables, reference.rest);
    if (reference.root == "matrix") return spelled(reference);
    if (reference.root != "env") return std::string(1, kUnknown);
    const char* const value = std::getenv(reference.rest.c_str());
    return value != nullptr && *value != '\0' ? std::string(value) : reference.otherwise.value_or("");
  };
  bool are_known = true;
  const auto ask = [&](const Asked& asked) -> Result<bool> {
    if (asked.function != "exists") return false;
    cache.existence.push_back(asked.argument);
    are_known &= asked.argument.find(kUnknown) == std::string::npos;
    return false;
  };
  (void)evaluate(condition, resolve, ask);  // one that makes no sense was complained of
  return are_known;
}

}  // namespace

ReferringValues referring_values(const FindValue& find, const Yaml* environment) {
  ReferringValues all;
  for (const char* key : {"run", "cmd", "dir", "env"}) add_scalars(all.texts, find(key));
  if (const Yaml* steps = find("steps")) {
    for (const Yaml& step : steps->items) add_scalars(all.texts, step.find("run"));
  }
  add_scalars(all.texts, environment);
  for (const char* key : {"produces", "consumes"}) add_scalars(all.paths, find(key));
  add_scalars(all.inputs, find("inputs"));
  for (const char* key : {"if", "skip_if"}) add_scalars(all.conditions, find(key));
  return all;
}

Needable needable_of(const FindValue& find) {
  Needable one{.is_matrix = find("matrix") != nullptr};
  if (const Yaml* produces = find("produces")) one.artifacts_are_known = produces->kind == Yaml::Kind::map;
  const Yaml* outputs = find("outputs");
  if (outputs == nullptr) return one;
  one.outputs_are_known = outputs->kind != Yaml::Kind::map;
  if (outputs->kind == Yaml::Kind::scalar) one.outputs.push_back(outputs->text);
  for (const Yaml& name : outputs->items) one.outputs.push_back(name.text);
  return one;
}

void ReferenceCheck::run(const ReferringValues& values) {
  for (const Yaml* text : values.texts) check_text(*text);
  for (const Yaml* path : values.paths) check_path(*path);
  for (const Yaml* input : values.inputs) check_input(*input);
  for (const Yaml* condition : values.conditions) check_condition(*condition);
}

void ReferenceCheck::check_text(const Yaml& value) {
  for (const Reference& reference : references_in(value.text)) {
    complain(value, reference, trouble(reference));
    note_variable(value, reference, "the module fails");
    // It would be part of a command, for all on the machine to see, and reach modules that do not list it.
    // Whether there is one may be asked.
    if (reference.root == "env" && is_among(scope_.file.secrets, reference.rest))
      complain(value, reference,
               spelled(reference) + " is a secret: list it under `secrets` of the module, and let its " +
                   "command read the variable");
  }
}

// It is needed before the module runs, and where it does not.
void ReferenceCheck::check_path(const Yaml& value) {
  for (const Reference& reference : references_in(value.text)) {
    const std::string wrong = trouble(reference);
    const bool fits = !wrong.empty() || reference.root == "matrix";
    complain(
        value, reference,
        fits ? wrong : spelled(reference) + ": a path of an artifact may have ${matrix.AXIS} in it alone");
  }
}

// A pattern with one in it would match nothing, and nobody would know why the result is never kept.
void ReferenceCheck::check_input(const Yaml& value) {
  for (const Reference& reference : references_in(value.text))
    complain(value, reference, spelled(reference) + ": nothing is replaced in `inputs`");
}

void ReferenceCheck::check_condition(const Yaml& value) {
  const auto parts = parts_of_condition(value.text);
  if (!parts) return complaints_.add(value.place, spec_.id, "'" + value.text + "': " + parts.error().message);
  for (const Reference& reference : parts->references) {
    complain(value, reference, trouble(reference));
    note_variable(value, reference, "it counts as empty");
  }
  for (const Asked& asked : parts->asked) {
    if (asked.function == "exists") continue;
    const std::string wrong = trouble_with_need(asked.argument, asked.function + "(" + asked.argument + ")");
    if (!wrong.empty()) complaints_.add(complaints_.place_in(value, 0, asked.argument), spec_.id, wrong);
  }
}

void ReferenceCheck::complain(const Yaml& value, const Reference& reference, std::string trouble) {
  if (trouble.empty()) return;
  const YamlPlace place = complaints_.place_in(value, reference.at, spelled(reference));
  complaints_.add(place, spec_.id, std::move(trouble));
}

void ReferenceCheck::note_variable(const Yaml& value, const Reference& reference, const char* if_unset) {
  if (reference.root != "env" || reference.otherwise) return;
  const std::string name = spelled(reference);
  const YamlPlace place = complaints_.place_in(value, reference.at, name);
  variables_.push_back({reference.rest,
                        {spec_.id, complaints_.where(place),
                         name + " is not set here; where it is not, " + if_unset +
                             ", unless a default is given: ${env." + reference.rest + ":-…}"}});
}

std::string ReferenceCheck::trouble(const Reference& reference) const {
  if (std::string wrong = trouble_with(reference); !wrong.empty()) return wrong;
  std::vector<std::string> known;
  if (reference.root == "needs") return trouble_with_need(reference);
  if (reference.root == "env" || scope_.unread.contains(reference.root)) return {};
  if (reference.root == "run") known.emplace_back("id");
  if (reference.root == "params") {
    for (const FileParameter& parameter : scope_.file.parameters) known.push_back(parameter.name);
  } else if (reference.root == "vars") {
    for (const auto& [one, value] : module_.variables) known.push_back(one);
  } else if (reference.root == "matrix") {
    const bool is_strange = spec_.targets.empty() && scope_.modules.at(spec_.id).is_matrix;
    if (is_strange) return {};
    for (const Target& target : spec_.targets) {
      for (const auto& [axis, value] : target.axes) known.push_back(axis);
    }
  }
  return trouble_among(reference, known);
}

std::string ReferenceCheck::trouble_among(const Reference& reference,
                                          const std::vector<std::string>& known) const {
  if (is_among(known, reference.rest)) return {};
  return spelled(reference) + " is not known" + suggestion(reference.rest, known);
}

std::string ReferenceCheck::trouble_with_need(const Reference& reference) const {
  constexpr std::string_view kOutputs = ".outputs.";
  const std::string& rest = reference.rest;
  const std::string name = spelled(reference);
  const std::size_t outputs = rest.find(kOutputs);
  const std::size_t status = rest.ends_with(".status") ? rest.rfind(".status") : std::string::npos;
  if (outputs == std::string::npos && status == std::string::npos)
    return name + ": of a module there are `.outputs.NAME` and `.status`";
  const std::string id = rest.substr(0, std::min(outputs, status));
  if (std::string wrong = trouble_with_need(id, name); !wrong.empty()) return wrong;
  const auto known = scope_.modules.find(without_target(id));
  if (known == scope_.modules.end()) return {};  // optional, and not there
  if (known->second.is_matrix && id.find('[') == std::string::npos)
    return name + ": " + id + " is a matrix, so say which of it: " + id + "[TARGET]";
  if (outputs == std::string::npos || !known->second.outputs_are_known) return {};
  const std::string output = rest.substr(outputs + kOutputs.size());
  if (is_among(known->second.outputs, output)) return {};
  return name + ": " + id + " does not declare it under `outputs`" +
         suggestion(output, known->second.outputs);
}

std::string ReferenceCheck::trouble_with_need(const std::string& id, const std::string& name) const {
  const std::string plain = without_target(id);
  if (!is_among(module_.needs, plain)) {
    // Another need may be this one, misspelt, which is told elsewhere.
    const auto is_unknown = [this](const Need& need) {
      return need.kind != NeedKind::optional && !scope_.modules.contains(need.on);
    };
    if (std::ranges::any_of(spec_.needs, is_unknown)) return {};
    return name + ": the module does not need '" + plain + "'" + suggestion(plain, module_.needs);
  }
  const auto known = scope_.modules.find(plain);
  if (plain == id || known == scope_.modules.end()) return {};
  const std::vector<std::string>& targets = known->second.targets;
  const std::string target = id.substr(plain.size() + 1, id.size() - plain.size() - 2);
  const bool is_strange = known->second.is_matrix && targets.empty();
  if (is_strange || is_among(targets, target)) return {};
  return name + ": '" + plain + "' has no target '" + target + "'" + suggestion(target, targets);
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
    for (const Reference& reference : references_in(text)) {
      if (reference.root == "env") cache.environment.push_back(reference.rest);
    }
  }
  for (const auto& condition : {module.run_if, module.skip_if}) {
    // Otherwise nobody would notice that it holds no longer.
    if (condition && !add_existence(cache, *condition, module, parameters)) {
      cache = {};
      return;
    }
  }
  cache.parts.insert(cache.parts.end(), parts.begin(), parts.end());
}

}  // namespace baton::pipeline
