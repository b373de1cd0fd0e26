// `baton run`: runs a pipeline file, here or with workers elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/meeting_point.h"
#include "cli/pipeline_source.h"

namespace baton::cli {

struct RunCommandOptions {
  PipelineSource source;
  std::uint64_t jobs = 0;
  std::uint64_t workers = 0;  // to be started here
  MeetingPoint meeting;
  std::optional<std::string> run;
  std::vector<std::string> capabilities;
  std::uint64_t expect = 0;
  bool only_master = false;
  bool verbose = false;
  bool json = false;
  bool no_cache = false;
  std::string report;  // a file for a page about it
};

// `restored` are results of a run that is repeated.
int run_pipeline(const RunCommandOptions& options, const LoadedPipeline& loaded,
                 const std::map<std::string, pipeline::Restored>& restored = {});

class Command;
class CommandLine;
void add_how_to_run(Command& command, RunCommandOptions& options);
void add_run_command(CommandLine& line);

}  // namespace baton::cli
