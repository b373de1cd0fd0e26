// A pipeline file as a command gets it, and what is said when it makes no sense.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <vector>

#include "cli/complaint.h"
#include "pipeline/pipeline_file.h"
#include "pipeline/records.h"

namespace baton::cli {

class Command;

struct PipelineSource {
  std::string path;
  std::map<std::string, std::string> parameters;
  pipeline::Selection selection;
};
void add_source_options(Command& command, PipelineSource& source);

struct LoadedPipeline {
  pipeline::FileDefinition definition;
  pipeline::PipelineFile file;
};

// If something is wrong, that is told on standard error, and with --json on standard output too, unless it is
// the command line; and there is what to exit with.
std::expected<pipeline::FileDefinition, int> definition_of(const PipelineSource& source,
                                                           Format format = Format::text);
std::expected<LoadedPipeline, int> load(const PipelineSource& source, Format format = Format::text);
std::expected<LoadedPipeline, int> load(const pipeline::FileDefinition& definition,
                                        Format format = Format::text);
// For whoever only looks at it: for a parameter that has to be given something stands in, and that is told.
std::expected<pipeline::FileDefinition, int> to_look_at(const PipelineSource& source);
// As far as it was chosen. A choice of what is not there makes no sense.
std::expected<pipeline::Graph, int> graph_of(const LoadedPipeline& loaded);
std::expected<pipeline::Graph, int> graph_of(const LoadedPipeline& loaded,
                                             const pipeline::Selection& selection);
// Says what is wrong with a pipeline; to programs, with a line of the message for each. Returns what to exit
// with.
int tell(const std::vector<pipeline::Problem>& problems, Format format = Format::text);

// Says which variables modules refer to that this machine does not have: a name that is misspelt looks so
// too.
void tell_of_unset_variables(const pipeline::PipelineFile& file, const pipeline::Graph& graph);

// The secrets a file names, as far as this machine has them in its environment.
pipeline::Secrets secrets_of(const pipeline::PipelineFile& file);
std::string folder_of(const std::string& path);  // in which a file lies
std::string as_typed(const std::string& path);   // from this folder, if it is below it

}  // namespace baton::cli
