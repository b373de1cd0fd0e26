#include "cli/pipeline_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command_line.h"
#include "cli/pipeline_source.h"
#include "cli/quantities.h"
#include "cli/run_command.h"
#include "cli/table.h"
#include "pipeline/drawing.h"
#include "pipeline/fleet.h"
#include "pipeline/schedule.h"

namespace baton::cli {
namespace {

struct LookOptions {
  PipelineSource source;
  std::string format = "dot";
};

struct PastOptions {
  std::string folder = ".";
  std::string module;
  std::optional<std::string> run;
  bool json = false;
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
  const pipeline::History history = pipeline::Records::history(folder_of(options.source.path));
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

// The run that is meant: the one that was named, or the last.
Result<std::string> chosen(const PastOptions& options) {
  if (options.run) return *options.run;
  const auto runs = pipeline::Records::runs(options.folder);
  if (runs.empty())
    return failure(Errc::not_found,
                   "nothing is known of a run in " + options.folder + "/.baton; say where with --dir");
  return runs.back();
}

int list(const PastOptions& options) {
  Table table({{"run"}, {"file"}, {"ended", Align::right}, {"failed", Align::right}});
  for (const std::string& run : pipeline::Records::runs(options.folder)) {
    const auto kept = pipeline::Records::kept(options.folder, run);
    const auto journal = pipeline::Records::journal(options.folder, run);
    const auto failed = std::ranges::count_if(journal, [](const pipeline::JournalLine& line) {
      return line.status == "failed" || line.status == "timed out";
    });
    table.row({run, kept ? kept->file.path : "?", std::to_string(journal.size()), std::to_string(failed)});
  }
  table.print();
  return 0;
}

int show_log(const PastOptions& options) {
  const auto run = chosen(options);
  if (!run) return complain(run.error());
  const auto log = pipeline::Records::log(options.folder, *run, options.module);
  if (!log) {
    fmt::print(stderr, "baton: {} said nothing in run {}, or ran on another machine\n", options.module, *run);
    return kExitRefused;
  }
  fmt::print("{}", *log);
  return 0;
}

// Where a module stands that is not over.
int why_not_ended(const PastOptions& options, const std::string& run,
                  const std::vector<pipeline::JournalLine>& journal) {
  const auto kept = pipeline::Records::kept(options.folder, run);
  const auto loaded = kept ? load(kept->file) : std::nullopt;
  const auto graph = loaded ? graph_of(*loaded) : std::nullopt;
  const pipeline::NodeIndex* node = graph ? graph->find(options.module) : nullptr;
  if (node == nullptr) {
    fmt::print("{} is no module of run {}\n", options.module, run);
    return kExitRefused;
  }
  const auto under_way = pipeline::Records::under_way(options.folder, run);
  if (const auto told = under_way.find(options.module); told != under_way.end()) {
    const pipeline::JournalLine& line = told->second;
    fmt::print("{} is {} in run {}{}{}\n", line.module, line.status, run,
               line.worker.empty() ? "" : " on " + line.worker,
               line.reason.empty() ? "" : ": " + line.reason);
    return 0;
  }
  // What is known of the others, as a schedule would have it.
  pipeline::Schedule schedule(*graph, pipeline::Records::history(options.folder));
  for (const pipeline::JournalLine& line : journal) {
    const pipeline::NodeIndex* ended = graph->find(line.module);
    const auto status = pipeline::status_of(line.status);
    if (ended != nullptr && status && !pipeline::is_final(schedule.status(*ended)))
      schedule.finish(*ended, *status);
  }
  if (schedule.status(*node) != pipeline::ModuleStatus::ready) {
    std::vector<std::string> open;
    for (const pipeline::GraphNeed& need : (*graph)[*node].needs) {
      for (const pipeline::NodeIndex other : need.on) {
        if (!pipeline::is_final(schedule.status(other))) open.push_back((*graph)[other].id);
      }
    }
    fmt::print("{} waits in run {} for {}\n", options.module, run, pipeline::joined(open));
    return 0;
  }
  std::size_t before = 0;
  bool is_passed = false;
  while (const auto next = schedule.begin_next([](const pipeline::Lane&) { return true; })) {
    is_passed |= *next == *node;
    if (!is_passed && !under_way.contains((*graph)[*next].id)) ++before;
  }
  fmt::print("{} is ready in run {}, and waits for a free place: {} before it\n", options.module, run,
             before == 0 ? "nothing is" : counted(before, "other") + (before == 1 ? " is" : " are"));
  return 0;
}

int why(const PastOptions& options) {
  const auto run = chosen(options);
  if (!run) return complain(run.error());
  const auto journal = pipeline::Records::journal(options.folder, *run);
  const auto line = std::ranges::find(journal, options.module, &pipeline::JournalLine::module);
  if (line == journal.end()) return why_not_ended(options, *run, journal);
  fmt::print("{} {} in run {}", line->module, line->status, *run);
  if (!line->worker.empty()) fmt::print(" on {}", line->worker);
  if (line->took > Duration{}) fmt::print(" in {}", rough_text(line->took));
  fmt::print("{}\n", line->reason.empty() ? "" : ": " + line->reason);
  if (!line->cache.empty())
    fmt::print("  {}: {}\n", line->status == "cached" ? "not run again" : "not taken from an earlier run",
               line->cache);
  // What it needed, as far as that is the reason.
  const auto kept = pipeline::Records::kept(options.folder, *run);
  const auto loaded = kept ? load(kept->file) : std::nullopt;
  const auto graph = loaded ? graph_of(*loaded) : std::nullopt;
  const pipeline::NodeIndex* node = graph ? graph->find(options.module) : nullptr;
  if (node == nullptr) return 0;
  for (const pipeline::GraphNeed& need : (*graph)[*node].needs) {
    for (const pipeline::NodeIndex other : need.on) {
      const auto needed = std::ranges::find(journal, (*graph)[other].id, &pipeline::JournalLine::module);
      if (needed == journal.end()) continue;
      fmt::print("  it needs {}, which {}{}\n", needed->module, needed->status,
                 needed->reason.empty() ? "" : ": " + needed->reason);
    }
  }
  return 0;
}

int rerun(RunCommandOptions options, const PastOptions& past, bool only_failed) {
  const auto run = chosen(past);
  if (!run) return complain(run.error());
  const auto kept = pipeline::Records::kept(past.folder, *run);
  if (!kept) return complain(kept.error());
  const auto loaded = load(kept->file);
  const auto graph = loaded ? graph_of(*loaded) : std::nullopt;
  if (!graph) return pipeline::kExitInvalid;
  const auto restored = only_failed ? restorable(pipeline::Records::journal(past.folder, *run))
                                    : std::map<std::string, pipeline::Restored>();
  fmt::print("run {} again, {} of {} known from then\n", *run, restored.size(),
             counted(graph->size(), "module"));
  options.run.reset();
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
    command.option("--dir FOLDER", options->folder, "Where the pipeline's file lies");
    if (of_module) command.option("--run ID", options->run, "Which run", "the last");
    command.footer("Example: " + program + " pipeline " + name + (of_module ? " test" : ""))
        .run([options, run] { return run(*options); });
  };
  past("list", "Lists the runs that are remembered", false, list);
  past("logs", "Prints what a module said", true, show_log);
  past("why", "Tells why a module ended as it did", true, why);

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
