#include "pipeline/file_parameters.h"

#include <algorithm>
#include <optional>

#include "pipeline/similar.h"

namespace baton::pipeline {
namespace {

FileParameter parameter_of(const Yaml& name, const Yaml& value, Complaints& complaints) {
  FileParameter parameter{.name = name.text};
  if (value.kind == Yaml::Kind::scalar) {
    parameter.otherwise = value.text;
    return parameter;
  }
  YamlMap about(value, complaints);
  parameter.otherwise = about.text("default");
  parameter.choices = about.texts("choices");
  parameter.help = about.text("help").value_or("");
  const bool is_required = about.boolean("required").value_or(!parameter.otherwise);
  about.finish();
  if (!is_required && !parameter.otherwise) parameter.otherwise = "";
  return parameter;
}

// What is wrong with the value, if something is.
std::optional<std::string> trouble_with(const FileParameter& parameter,
                                        const std::optional<std::string>& value) {
  if (!value) return "parameter '" + parameter.name + "' has to be given: --param " + parameter.name + "=…";
  const auto& choices = parameter.choices;
  if (choices.empty() || std::ranges::find(choices, *value) != choices.end()) return std::nullopt;
  return "parameter '" + parameter.name + "' cannot be '" + *value + "'" + suggestion(*value, choices);
}

}  // namespace

void read_parameters(YamlMap& top, const Yaml& root, Complaints& complaints,
                     const std::map<std::string, std::string>& given, PipelineFile& file) {
  std::vector<std::string> known;
  if (const Yaml* node = top.map("params")) {
    for (const auto& [name, about] : node->fields) {
      FileParameter parameter = parameter_of(name, about, complaints);
      const auto said = given.find(parameter.name);
      const auto value = said != given.end() ? std::optional(said->second) : parameter.otherwise;
      if (auto trouble = trouble_with(parameter, value))
        complaints.add(name.place, {}, std::move(*trouble));
      else
        file.values[parameter.name] = *value;
      known.push_back(parameter.name);
      file.parameters.push_back(std::move(parameter));
    }
  }
  for (const auto& [name, value] : given) {
    if (std::ranges::find(known, name) == known.end())
      top.complain(root, "there is no parameter '" + name + "'" + suggestion(name, known));
  }
}

}  // namespace baton::pipeline
