#include "cli/pipeline_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/known_results.h"
#include "cli/missing_secrets.h"
#include "cli/past_runs.h"
#include "cli/pipeline_source.h"
#include "cli/quantities.h"
#include "cli/run_command.h"
#include "cli/table.h"
#include "pipeline/drawing.h"
#include "pipeline/fleet.h"

namespace baton::cli {
namespace {

struct LookOptions {
  PipelineSource source;
  std::string format = "dot";
};

// What no machine that is said to be there can do would wait for ever.
std::vector<pipeline::Problem> beyond_all_workers(const pipeline::PipelineFile& file) {
  std::vector<pipeline::Problem> all;
  const auto check = [&](const pipeline::ModuleSpec& spec, const std::string& id,
                         std::vector<std::string> needed) {
    needed = pipeline::canonical(std::move(needed));
    const bool is_covered = file.workers.empty() || std::ranges::any_of(file.workers, [&](const auto& one) {
                              return pipeline::covers(one, needed);
                            });
    if (!is_covered) all.push_back({id, spec.where, "none of the workers has " + pipeline::joined(needed)});
  };
  for (const pipeline::ModuleSpec& spec : file.definition.modules) {
    if (spec.pinned) continue;  // to the master
    if (!spec.is_matrix()) check(spec, spec.id, spec.capabilities);
    for (const pipeline::Target& target : spec.targets) {
      std::vector<std::string> needed = spec.capabilities;
      needed.insert(needed.end(), target.capabilities.begin(), target.capabilities.end());
      check(spec, spec.id + "[" + target.name + "]", std::move(needed));
    }
  }
  return all;
}

std::expected<LoadedPipeline, int> load_to_look(const PipelineSource& source) {
  const auto definition = to_look_at(source);
  return definition ? load(*definition) : std::unexpected(definition.error());
}

int validate(const LookOptions& options) {
  auto definition = to_look_at(options.source);
  if (!definition) return definition.error();
  pipeline::PipelineReading reading =
      pipeline::PipelineFile::read(definition->text, as_typed(definition->path), definition->parameters);
  std::vector<pipeline::Problem> problems = std::move(reading.problems);
  std::vector<pipeline::Problem> uncovered = beyond_all_workers(reading.file);
  const LoadedPipeline loaded{std::move(*definition), std::move(reading.file)};
  std::size_t modules = 0;
  if (problems.empty()) {
    const auto graph = graph_of(loaded);
    if (!graph) return graph.error();
    modules = graph->size();
    tell_of_unset_variables(loaded.file, *graph);
    tell_of_missing_secrets(loaded.file, *graph);
    std::erase_if(uncovered, [&](const pipeline::Problem& one) {
      const pipeline::NodeIndex* node = graph->find(one.module);
      return node == nullptr || (*graph)[*node].left_out;
    });
  }
  problems.insert(problems.end(), uncovered.begin(), uncovered.end());
  pipeline::sort_by_place(problems);
  if (!problems.empty()) return tell(problems);
  fmt::print("{}: {} makes sense: {}\n", options.source.path, loaded.file.definition.name,
             counted(modules, "module"));
  return 0;
}

// Modules in the order of their needs: those of one wave could run together.
int plan(const LookOptions& options) {
  const auto loaded = load_to_look(options.source);
  if (!loaded) return loaded.error();
  const auto graph = graph_of(*loaded);
  if (!graph) return graph.error();
  const pipeline::History history =
      pipeline::Records::history(folder_of(options.source.path), options.source.path);
  std::vector<std::size_t> wave(graph->size());
  for (const pipeline::NodeIndex node : graph->in_order()) {
    for (const pipeline::NodeIndex other : (*graph)[node].dependants)
      wave[other] = std::max(wave[other], wave[node] + 1);
  }
  Table table(
      {{"wave", Align::right}, {"module"}, {"needs"}, {"capabilities"}, {"took", Align::right}, {"about"}});
  std::vector<pipeline::NodeIndex> order = graph->in_order();
  std::ranges::stable_sort(order, {}, [&](pipeline::NodeIndex node) { return wave[node]; });
  for (const pipeline::NodeIndex index : order) {
    const pipeline::GraphNode& node = (*graph)[index];
    std::vector<std::string> needs;
    for (const pipeline::GraphNeed& need : node.needs) {
      for (const pipeline::NodeIndex other : need.on) needs.push_back((*graph)[other].id);
    }
    const auto known = history.find(node.id);
    std::string about = node.spec->description;
    if (node.left_out)
      about = "left out";
    else if (node.spec->pinned)
      about = "on the master" + (about.empty() ? "" : "; " + about);
    table.row({std::to_string(wave[index] + 1), node.id, cell(pipeline::joined(needs)),
               pipeline::joined(node.capabilities), known != history.end() ? rough_text(known->second) : "",
               cell(about)});
  }
  table.print();
  return 0;
}

int draw(const LookOptions& options) {
  const auto loaded = load_to_look(options.source);
  if (!loaded) return loaded.error();
  const auto graph = graph_of(*loaded);
  if (!graph) return graph.error();
  fmt::print("{}", options.format == "svg" ? pipeline::svg_of(*graph) : pipeline::dot_of(*graph));
  return 0;
}

bool is_changed(const pipeline::FileDefinition& then) {
  std::ifstream file(then.path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {}) != then.text;
}

int rerun(RunCommandOptions options, const PastOptions& past, bool only_failed) {
  const Format format = format_of(options.json);
  const auto run = chosen_run(past);
  if (!run) return complain(run.error(), format);
  const auto kept = pipeline::Records::kept(past.folder, *run);
  if (!kept) return complain(kept.error(), format);
  const auto loaded = load(kept->file, format);
  if (!loaded) return loaded.error();
  const auto graph = graph_of(*loaded);
  if (!graph) return graph.error();
  const auto restored = only_failed ? restorable(pipeline::Records::journal(past.folder, *run), *graph)
                                    : std::map<std::string, pipeline::Restored>();
  if (!options.json) {
    fmt::print("run {} again, {} of {} known from then\n", *run, restored.size(),
               counted(graph->size(), "module"));
    if (is_changed(kept->file))
      fmt::print("! {} has changed since, and this runs it as it was then; `baton run` runs it as it is\n",
                 as_typed(kept->file.path));
  }
  if (options.capabilities.empty() && kept->capabilities) options.capabilities = *kept->capabilities;
  return run_pipeline(options, *loaded, restored);
}

}  // namespace

void add_pipeline_commands(CommandLine& line) {
  line.group("pipeline", "Looks at pipeline files, and at runs that were");
  const std::string program = line.program();
  const auto look = [&](const std::string& name, const char* about, int (*run)(const LookOptions&)) {
    auto options = std::make_shared<LookOptions>();
    Command command = line.command("pipeline " + name, about);
    add_source_options(command, options->source);
    if (name == "graph")
      command.choice("--format FORMAT", options->format, {"dot", "svg"}, "How it is drawn");
    command.footer("Example: " + program + " pipeline " + name + " pipeline.yaml").run([options, run] {
      return run(*options);
    });
  };
  look("validate", "Tells everything that is wrong with a file", validate);
  look("plan", "Tells what would run, in which order", plan);
  look("graph", "Draws modules and their needs", draw);

  const auto past = [&](const std::string& name, const char* about, bool of_module,
                        int (*run)(const PastOptions&)) {
    auto options = std::make_shared<PastOptions>();
    Command command = line.command("pipeline " + name, about);
    if (of_module) command.argument("module", options->module, "Its id, as test or test[linux]");
    if (!of_module) command.flag("--json", options->json, "One line of JSON for each");
    command.option("--dir FOLDER", options->folder, "Where the pipeline's file lies");
    if (of_module) command.option("--run ID", options->run, "Which run", "the last");
    command.footer("Example: " + program + " pipeline " + name + (of_module ? " test" : ""))
        .run([options, run] { return run(*options); });
  };
  past("list", "Lists the runs that are remembered", false, list_runs);
  past("logs", "Prints what a module said", true, show_log);
  past("why", "Tells why a module ended as it did, or what it waits for", true, explain);

  auto options = std::make_shared<RunCommandOptions>();
  auto which = std::make_shared<PastOptions>();
  auto only_failed = std::make_shared<bool>(false);
  Command again = line.command("pipeline rerun", "Runs a remembered run again");
  again
      .flag("--failed", *only_failed,
            "Only what has not succeeded; the results of the rest are taken from then")
      .option("--of RUN", which->run, "Which run", "the last")
      .option("--dir FOLDER", which->folder, "Where the pipeline's file lies");
  add_how_to_run(again, *options);
  again.footer("Example: " + program + " pipeline rerun --failed").run([options, which, only_failed] {
    return rerun(*options, *which, *only_failed);
  });
}

}  // namespace baton::cli
