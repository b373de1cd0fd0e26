#include "pipeline/file_artifacts.h"

#include <optional>
#include <string>

namespace baton::pipeline {

void read_artifacts(YamlMap& map, const Complaints& complaints, ModuleSpec& spec) {
  if (const Yaml* produces = map.map("produces")) {
    for (const auto& [name, paths] : produces->fields) {
      spec.produces.push_back({name.text, map.texts_of(paths, "produces")});
      const bool is_empty = paths.kind == Yaml::Kind::list && paths.items.empty();
      if (is_empty) map.complain(name, "artifact '" + name.text + "' has no path");
    }
  }
  if (const Yaml* consumes = map.map("consumes")) {
    for (const auto& [what, into] : consumes->fields) {
      const std::size_t slash = what.text.rfind('/');
      if (slash == std::string::npos) {
        map.complain(what, "consumes names MODULE/ARTIFACT, and '" + what.text + "' is not of that form");
        continue;
      }
      // Nothing said: where they were.
      const auto folder = into.kind == Yaml::Kind::null
                              ? std::nullopt
                              : map.text_of(into, "the folder for '" + what.text + "'");
      spec.consumes.push_back({.producer = what.text.substr(0, slash),
                               .name = what.text.substr(slash + 1),
                               .into = folder.value_or(""),
                               .where = complaints.where(what.place)});
    }
  }
}

void read_inputs(YamlMap& map, Complaints& complaints, ModuleSpec& spec) {
  const Yaml* inputs = map.take("inputs");
  if (inputs == nullptr) return;
  if (inputs->kind != Yaml::Kind::map) {
    spec.cache.files = map.texts_of(*inputs, "inputs");
    return;
  }
  YamlMap one(*inputs, complaints, spec.id);
  spec.cache.files = one.texts("files");
  spec.cache.environment = one.texts("env");
  spec.cache.parts = one.texts("key");
  one.finish();
}

}  // namespace baton::pipeline
