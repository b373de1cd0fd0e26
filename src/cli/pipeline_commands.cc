#include "cli/pipeline_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/known_results.h"
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

int validate(const LookOptions& options) {
  const auto loaded = load(options.source);
  const auto graph = loaded ? graph_of(*loaded) : std::nullopt;
  if (!graph) return pipeline::kExitInvalid;
  // What no machine that is said to be there can do would wait for ever.
  int code = 0;
  for (const pipeline::GraphNode& node : graph->nodes()) {
    const auto& workers = loaded->file.workers;
    const bool is_covered = std::ranges::any_of(
        workers, [&](const auto& one) { return pipeline::covers(one, node.capabilities); });
    if (workers.empty() || is_covered) continue;
    fmt::print(stderr, "{}: {}: none of the workers has {}\n", node.spec->where, node.id,
               pipeline::joined(node.capabilities));
    code = pipeline::kExitInvalid;
  }
  if (code == 0)
    fmt::print("{}: {} makes sense: {}\n", options.source.path, loaded->file.definition.name,
               counted(graph->size(), "module"));
  return code;
}

// Modules in the order of their needs: those of one wave could run together.
int plan(const LookOptions& options) {
  const auto loaded = load(options.source);
  const auto graph = loaded ? graph_of(*loaded) : std::nullopt;
  if (!graph) return pipeline::kExitInvalid;
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
    table.row({std::to_string(wave[index] + 1), node.id, printable(pipeline::joined(needs)),
               pipeline::joined(node.capabilities), known != history.end() ? rough_text(known->second) : "",
               printable(about)});
  }
  table.print();
  return 0;
}

int draw(const LookOptions& options) {
  const auto loaded = load(options.source);
  const auto graph = loaded ? graph_of(*loaded) : std::nullopt;
  if (!graph) return pipeline::kExitInvalid;
  fmt::print("{}", options.format == "svg" ? pipeline::svg_of(*graph) : pipeline::dot_of(*graph));
  return 0;
}

bool is_changed(const pipeline::FileDefinition& then) {
  std::ifstream file(then.path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {}) != then.text;
}

int rerun(const RunCommandOptions& options, const PastOptions& past, bool only_failed) {
  const auto run = chosen_run(past);
  if (!run) return complain(run.error());
  const auto kept = pipeline::Records::kept(past.folder, *run);
  if (!kept) return complain(kept.error());
  const auto loaded = load(kept->file);
  const auto graph = loaded ? graph_of(*loaded) : std::nullopt;
  if (!graph) return pipeline::kExitInvalid;
  const auto restored = only_failed ? restorable(pipeline::Records::journal(past.folder, *run), *graph)
                                    : std::map<std::string, pipeline::Restored>();
  if (!options.json) {
    fmt::print("run {} again, {} of {} known from then\n", *run, restored.size(),
               counted(graph->size(), "module"));
    if (is_changed(kept->file))
      fmt::print("! {} has changed since, and this runs it as it was then; `baton run` runs it as it is\n",
                 kept->file.path);
  }
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
