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
  std::string all;
  for (const std::string& one : choices) all += (all.empty() ? "" : ", ") + one;
  return "parameter '" + parameter.name + "' is one of " + all + ", and '" + *value + "' is not";
}

}  // namespace

bool read_parameters(YamlMap& top, Complaints& complaints, const std::map<std::string, std::string>& given,
                     PipelineFile& file) {
  const auto complain_of_given = [&](const std::string& name, std::string message) {
    complaints.all.push_back({{}, std::string(kGivenParameter) + name, std::move(message)});
  };
  std::vector<std::string> known;
  std::size_t heard = complaints.heard;
  const Yaml* node = top.map("params");
  if (complaints.heard != heard) return false;
  for (const auto& [name, about] : node != nullptr ? node->fields : std::vector<Yaml::Field>()) {
    heard = complaints.heard;
    FileParameter parameter = parameter_of(name, about, complaints);
    const auto said = given.find(parameter.name);
    const auto value = said != given.end() ? std::optional(said->second) : parameter.otherwise;
    auto trouble = trouble_with(parameter, value);
    if (trouble && said != given.end())
      complain_of_given(said->first, std::move(*trouble));
    else if (trouble && complaints.heard == heard)
      complaints.add(name.place, {}, std::move(*trouble));
    else if (!trouble)
      file.values[parameter.name] = *value;
    known.push_back(parameter.name);
    file.parameters.push_back(std::move(parameter));
  }
  for (const auto& [name, value] : given) {
    if (std::ranges::find(known, name) == known.end())
      complain_of_given(name, "there is no such parameter" + suggestion(name, known));
  }
  return true;
}

}  // namespace baton::pipeline
