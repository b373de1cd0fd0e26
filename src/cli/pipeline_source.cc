#include "cli/pipeline_source.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/command_line.h"

namespace baton::cli {
namespace {

void tell(const std::vector<pipeline::Problem>& problems) {
  for (const pipeline::Problem& problem : problems) fmt::print(stderr, "{}\n", pipeline::describe(problem));
}

}  // namespace

void add_source_options(Command& command, PipelineSource& source) {
  command.argument("file", source.path, "The pipeline: a YAML file")
      .repeated("--param NAME=VALUE", source.parameters, "A parameter of the pipeline; may be repeated")
      .repeated("--module ID", source.selection.modules,
                "Only this one, as test or test[linux], and what it needs; may be repeated")
      .repeated("--skip-module ID", source.selection.skip_modules, "Not this one; may be repeated")
      .repeated("--category NAME", source.selection.categories,
                "Only modules of this category and what they need")
      .repeated("--skip-category NAME", source.selection.skip_categories, "No modules of this category");
}

std::optional<LoadedPipeline> load(const pipeline::FileDefinition& definition) {
  auto file = pipeline::PipelineFile::parse(definition.text, definition.path, definition.parameters);
  if (!file) {
    tell(file.error());
    return std::nullopt;
  }
  return LoadedPipeline{definition, std::move(*file)};
}

std::optional<LoadedPipeline> load(const PipelineSource& source) {
  pipeline::FileDefinition definition{.path = source.path, .selection = source.selection};
  std::ifstream file(source.path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  std::error_code absent;
  if (std::filesystem::is_directory(source.path, absent)) {
    fmt::print(stderr, "baton: {} is a folder; the pipeline is a file, as {}/pipeline.yaml\n", source.path,
               source.path);
    return std::nullopt;
  }
  if (!file.is_open() || file.bad()) {
    fmt::print(stderr, "baton: {} cannot be read\n", source.path);
    return std::nullopt;
  }
  definition.text = text.str();
  for (const std::string& parameter : source.parameters) {
    const std::size_t equals = parameter.find('=');
    if (equals == std::string::npos) {
      fmt::print(stderr, "baton: --param takes NAME=VALUE, and '{}' has no =\n", parameter);
      return std::nullopt;
    }
    definition.parameters[parameter.substr(0, equals)] = parameter.substr(equals + 1);
  }
  return load(definition);
}

std::optional<pipeline::Graph> graph_of(const LoadedPipeline& loaded) {
  return graph_of(loaded, loaded.definition.selection);
}

std::optional<pipeline::Graph> graph_of(const LoadedPipeline& loaded, const pipeline::Selection& selection) {
  auto graph = pipeline::Graph::of(loaded.file.definition, selection);
  if (graph) return std::move(*graph);
  tell(graph.error());
  return std::nullopt;
}

pipeline::Secrets secrets_of(const pipeline::PipelineFile& file) {
  pipeline::Secrets secrets;
  for (const std::string& name : file.secrets) {
    if (const char* value = std::getenv(name.c_str())) secrets.add(name, value);
  }
  return secrets;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

}  // namespace baton::cli
