// A pipeline file as a command gets it, and what is said when it makes no sense.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/pipeline_file.h"
#include "pipeline/records.h"

namespace baton::cli {

class Command;

struct PipelineSource {
  std::string path;
  std::vector<std::string> parameters;  // NAME=VALUE
  pipeline::Selection selection;
};
void add_source_options(Command& command, PipelineSource& source);

struct LoadedPipeline {
  pipeline::FileDefinition definition;
  pipeline::PipelineFile file;
};

// Nothing, if something is wrong with it: that was told on standard error.
std::optional<LoadedPipeline> load(const PipelineSource& source);
std::optional<LoadedPipeline> load(const pipeline::FileDefinition& definition);
std::optional<pipeline::Graph> graph_of(const LoadedPipeline& loaded);  // as far as it was chosen
std::optional<pipeline::Graph> graph_of(const LoadedPipeline& loaded, const pipeline::Selection& selection);

// The secrets a file names, as far as this machine has them in its environment.
pipeline::Secrets secrets_of(const pipeline::PipelineFile& file);
std::string folder_of(const std::string& path);  // in which a file lies

}  // namespace baton::cli
