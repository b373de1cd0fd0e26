#include "cli/pipeline_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/output.h"

namespace baton::cli {

void add_source_options(Command& command, PipelineSource& source) {
  command.argument("file", source.path, "The pipeline: a YAML file")
      .assignments("--param NAME=VALUE", source.parameters, "A parameter of the pipeline; may be repeated")
      .repeated("--module ID", source.selection.modules,
                "Only this one, as test or test[linux], and what it needs; may be repeated")
      .repeated("--skip-module ID", source.selection.skip_modules, "Not this one; may be repeated")
      .repeated("--category NAME", source.selection.categories,
                "Only modules of this category and what they need")
      .repeated("--skip-category NAME", source.selection.skip_categories, "No modules of this category");
}

int tell(const std::vector<pipeline::Problem>& problems, Format format) {
  std::string message;
  const auto is_given = [](const pipeline::Problem& problem) {
    return problem.where.starts_with(pipeline::kGivenParameter);
  };
  for (const pipeline::Problem& problem : problems) {
    const bool has_place = !problem.where.empty() && !is_given(problem);  // which says by itself where it is
    to_errors("{}{}\n", has_place ? "" : "baton: ", pipeline::describe(problem));
    message += (message.empty() ? "" : "\n") + pipeline::describe(problem);
  }
  if (std::ranges::all_of(problems, is_given)) return kExitUsage;
  tell_programs({Errc::invalid_request, message}, format);
  return pipeline::kExitInvalid;
}

std::expected<LoadedPipeline, int> load(const pipeline::FileDefinition& definition, Format format) {
  auto file =
      pipeline::PipelineFile::parse(definition.text, as_typed(definition.path), definition.parameters);
  if (!file) return std::unexpected(tell(file.error(), format));
  return LoadedPipeline{definition, std::move(*file)};
}

std::expected<LoadedPipeline, int> load(const PipelineSource& source, Format format) {
  const auto definition = definition_of(source, format);
  return definition ? load(*definition, format) : std::unexpected(definition.error());
}

std::expected<pipeline::FileDefinition, int> definition_of(const PipelineSource& source, Format format) {
  const auto unreadable = [&](Errc code, const std::string& message) {
    to_errors("baton: {}\n", message);
    tell_programs({code, message}, format);
    return std::unexpected(kExitNoInput);
  };
  std::ifstream file(source.path, std::ios::binary);
  const int error = errno;
  std::ostringstream text;
  text << file.rdbuf();
  std::error_code absent;
  if (std::filesystem::is_directory(source.path, absent))
    return unreadable(
        Errc::invalid_request,
        fmt::format("{} is a folder; the pipeline is a file, as {}/pipeline.yaml", source.path, source.path));
  if (!file.is_open() || file.bad())
    return unreadable(error == ENOENT ? Errc::not_found : Errc::io_failed,
                      fmt::format("{} cannot be read: {}", source.path, std::strerror(error)));
  // Whoever reads it later, and elsewhere, is in another folder.
  return pipeline::FileDefinition{.path = std::filesystem::absolute(source.path, absent).lexically_normal(),
                                  .text = text.str(),
                                  .parameters = source.parameters,
                                  .selection = source.selection};
}

std::expected<pipeline::FileDefinition, int> to_look_at(const PipelineSource& source) {
  auto definition = definition_of(source);
  if (!definition) return definition;
  const std::string path = as_typed(definition->path);
  const auto reading = pipeline::PipelineFile::read(definition->text, path, definition->parameters);
  for (const pipeline::FileParameter& one : reading.file.parameters) {
    if (one.otherwise || definition->parameters.contains(one.name)) continue;
    definition->parameters[one.name] = one.choices.empty() ? one.name : one.choices.front();
    to_errors("{}: to run it, parameter '{}' has to be given: --param {}=…\n", path, one.name, one.name);
  }
  return definition;
}

std::expected<pipeline::Graph, int> graph_of(const LoadedPipeline& loaded) {
  return graph_of(loaded, loaded.definition.selection);
}

// The file makes sense by itself, so it is the selection that does not.
std::expected<pipeline::Graph, int> graph_of(const LoadedPipeline& loaded,
                                             const pipeline::Selection& selection) {
  auto graph = pipeline::Graph::of(loaded.file.definition, selection);
  if (graph) return std::move(*graph);
  tell(graph.error());
  return std::unexpected(kExitUsage);
}

void tell_of_unset_variables(const pipeline::PipelineFile& file, const pipeline::Graph& graph) {
  const auto takes_part = [&](const std::string& module) {
    return std::ranges::any_of(graph.nodes(), [&](const pipeline::GraphNode& node) {
      return node.spec->id == module && !node.left_out;
    });
  };
  std::set<std::string> told;  // by place: what stands in the file once may be of many modules
  for (const pipeline::AskedVariable& one : file.variables) {
    if (std::getenv(one.name.c_str()) != nullptr || !takes_part(one.if_unset.module)) continue;
    if (told.insert(one.if_unset.where).second) to_errors("{}\n", pipeline::describe(one.if_unset));
  }
}

pipeline::Secrets secrets_of(const pipeline::PipelineFile& file) {
  pipeline::Secrets secrets;
  for (const std::string& name : file.secrets) {
    if (const char* value = std::getenv(name.c_str())) secrets.add(name, value);
  }
  return secrets;
}

std::string as_typed(const std::string& path) {
  std::error_code trouble;
  const std::string near = std::filesystem::proximate(path, trouble).string();
  return trouble || near.starts_with("..") ? path : near;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

}  // namespace baton::cli
