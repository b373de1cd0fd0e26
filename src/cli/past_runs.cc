#include "cli/past_runs.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <memory>

#include "cli/complaint.h"
#include "cli/output.h"
#include "cli/pipeline_source.h"
#include "cli/quantities.h"
#include "cli/table.h"
#include "pipeline/fleet.h"
#include "pipeline/schedule.h"
#include "pipeline/similar.h"

namespace baton::cli {
namespace {

using pipeline::JournalLine;
using pipeline::ModuleStatus;
using pipeline::NodeIndex;
using pipeline::PastRun;
using pipeline::Records;

std::string local_time(Instant at) {
  return fmt::format("{:%F %T}", fmt::localtime(static_cast<std::time_t>(at.ms / 1000)));
}

// A run as it was kept.
class Remembered {
 public:
  static Result<std::unique_ptr<Remembered>> of(const PastOptions& options) {
    const auto run = chosen_run(options);
    if (!run) return std::unexpected(run.error());
    const auto kept = Records::kept(options.folder, *run);
    if (!kept) return std::unexpected(kept.error());
    auto loaded = load(kept->file);
    if (!loaded) return failure(Errc::invalid_request, "the pipeline of run " + *run + " makes no sense now");
    auto past = Records::past(options.folder, *run);
    if (!past) return std::unexpected(past.error());
    return std::unique_ptr<Remembered>(new Remembered(options.folder, std::move(*past), std::move(*loaded)));
  }
  Remembered(const Remembered&) = delete;
  Remembered& operator=(const Remembered&) = delete;

  const JournalLine* line_of(const std::string& module) const {
    const auto found = std::ranges::find(journal, module, &JournalLine::module);
    return found == journal.end() ? nullptr : &*found;
  }
  // The modules that are meant: one, or all instances of a matrix. NOT_FOUND: there is none of that name.
  Result<std::vector<std::string>> meant_by(const std::string& name) const {
    std::vector<std::string> names, instances;
    for (const pipeline::GraphNode& node : all->nodes()) {
      if (node.id == name) return std::vector{name};
      if (node.spec->id == name) instances.push_back(node.id);
      names.push_back(node.id);
    }
    if (!instances.empty()) return instances;
    return failure(Errc::not_found,
                   name + " is no module of run " + past.run + pipeline::suggestion(name, names));
  }

  const std::string folder;
  const PastRun past;
  const LoadedPipeline loaded;
  const std::expected<pipeline::Graph, int> graph;  // as it was run
  const std::expected<pipeline::Graph, int> all;    // with what was left out
  const std::vector<JournalLine> journal;

 private:
  Remembered(std::string where, PastRun what, LoadedPipeline pipeline)
      : folder(std::move(where)),
        past(std::move(what)),
        loaded(std::move(pipeline)),
        graph(graph_of(loaded)),
        all(graph_of(loaded, {})),
        journal(Records::journal(folder, past.run)) {}
};

// "was skipped", for a module that is over.
std::string ending_of(const JournalLine& line) {
  const auto status = pipeline::status_of(line.status);
  return status ? std::string(pipeline::ending(*status)) : line.status;
}

// Those that a module needs and that are not over.
std::vector<std::string> open_needs(const pipeline::Graph& graph, const pipeline::Schedule& schedule,
                                    NodeIndex node) {
  std::vector<std::string> open;
  for (const pipeline::GraphNeed& need : graph[node].needs) {
    for (const NodeIndex other : need.on) {
      if (!pipeline::is_final(schedule.status(other))) open.push_back(graph[other].id);
    }
  }
  return open;
}

// Where a module stands in a run that is under way.
std::string standing(const Remembered& run, NodeIndex node) {
  const pipeline::Graph& graph = *run.graph;
  const std::string& module = graph[node].id;
  const auto under_way = Records::under_way(run.folder, run.past.run);
  if (const auto told = under_way.find(module); told != under_way.end()) {
    const JournalLine& line = told->second;
    return fmt::format("{} is {} in run {}{}{}", module, line.status, run.past.run,
                       line.worker.empty() ? "" : " on " + line.worker,
                       line.reason.empty() ? "" : ": " + line.reason);
  }
  // What is known of the others, as a schedule would have it.
  pipeline::Schedule schedule(graph, Records::history(run.folder, run.past.file));
  for (const JournalLine& line : run.journal) {
    const NodeIndex* ended = graph.find(line.module);
    const auto status = pipeline::status_of(line.status);
    if (ended != nullptr && status && !pipeline::is_final(schedule.status(*ended)))
      schedule.finish(*ended, *status);
  }
  if (schedule.status(node) != ModuleStatus::ready)
    return fmt::format("{} waits in run {} for {}", module, run.past.run,
                       pipeline::joined(open_needs(graph, schedule, node)));
  std::size_t before = 0;
  bool is_passed = false;
  while (const auto next = schedule.begin_next([](const pipeline::Lane&) { return true; })) {
    is_passed |= *next == node;
    if (!is_passed && !under_way.contains(graph[*next].id)) ++before;
  }
  return fmt::format("{} is ready in run {}, and waits for a free place: {} before it", module, run.past.run,
                     before == 0 ? "nothing is" : counted(before, "other") + (before == 1 ? " is" : " are"));
}

std::string why_not_ended(const Remembered& run, const std::string& module) {
  const NodeIndex* node = run.graph->find(module);
  if (node == nullptr) return fmt::format("{} was left out of run {}", module, run.past.run);
  if (run.past.state == PastRun::kRunning) return standing(run, *node);
  if (run.past.state != PastRun::kInterrupted)
    return fmt::format("{} did not run in run {}", module, run.past.run);
  const auto under_way = Records::under_way(run.folder, run.past.run);
  const auto told = under_way.find(module);
  const std::string where = told == under_way.end() ? "waiting" : told->second.status;
  return fmt::format("{} was {} when the master of run {} ended without a word; --run {} goes on with it",
                     module, where, run.past.run, run.past.run);
}

void say_why(const Remembered& run, const std::string& module) {
  const JournalLine* line = run.line_of(module);
  if (line == nullptr) return fmt::print("{}\n", why_not_ended(run, module));
  fmt::print("{} {} in run {}", line->module, ending_of(*line), run.past.run);
  if (!line->worker.empty()) fmt::print(" on {}", line->worker);
  if (line->took > Duration{}) fmt::print(" in {}", rough_text(line->took));
  if (line->tries.value_or(1) > 1) fmt::print(", {} tries", *line->tries);
  fmt::print("{}\n", line->reason.empty() ? "" : ": " + line->reason);
  if (line->attempt.value_or(1) > 1)
    fmt::print("  begun {} times: the workers that had it before were lost\n", *line->attempt);
  if (!line->cache.empty())
    fmt::print("  {}: {}\n", line->status == "cached" ? "not run again" : "not taken from an earlier run",
               line->cache);
  // What it needed, as far as that is the reason.
  const NodeIndex* node = run.graph->find(module);
  if (node == nullptr) return;
  for (const pipeline::GraphNeed& need : (*run.graph)[*node].needs) {
    for (const NodeIndex other : need.on) {
      if (const JournalLine* needed = run.line_of((*run.graph)[other].id))
        fmt::print("  it needs {}, which {}{}\n", needed->module, ending_of(*needed),
                   needed->reason.empty() ? "" : ": " + needed->reason);
    }
  }
}

std::string nothing_known(const PastOptions& options) {
  return "nothing is known of a run in " + options.folder + "/.baton; say where with --dir";
}

JsonObject json_of(const PastRun& run) {
  return JsonObject()
      .text("run", run.run)
      .text("file", run.file)
      .text("state", run.state)
      .text("reason", run.reason)
      .number("began_at_ms", static_cast<std::uint64_t>(run.began_at.ms))
      .number("took_ms", static_cast<std::uint64_t>(run.took.ms))
      .number("ended", run.ended)
      .number("failed", run.failed);
}

}  // namespace

Result<std::string> chosen_run(const PastOptions& options) {
  if (options.run) return *options.run;
  const auto runs = Records::runs(options.folder);
  if (runs.empty()) return failure(Errc::not_found, nothing_known(options));
  return runs.back();
}

int list_runs(const PastOptions& options) {
  Table table({{"run"},
               {"began"},
               {"state"},
               {"took", Align::right},
               {"ended", Align::right},
               {"failed", Align::right},
               {"file"}});
  const auto runs = Records::runs(options.folder);
  if (runs.empty()) to_errors("baton: {}\n", nothing_known(options));
  for (const std::string& id : runs) {
    const auto run = Records::past(options.folder, id);
    if (!run) continue;
    if (options.json) fmt::print("{}\n", json_of(*run).whole());
    table.row({run->run, local_time(run->began_at), run->state,
               run->took > Duration{} ? rough_text(run->took) : "", std::to_string(run->ended),
               std::to_string(run->failed), as_typed(run->file)});
  }
  if (!options.json && !runs.empty()) table.print();
  return 0;
}

int show_log(const PastOptions& options) {
  const auto run = Remembered::of(options);
  if (!run) return complain(run.error());
  const auto modules = (*run)->meant_by(options.module);
  if (!modules) return complain(modules.error());
  for (const std::string& module : *modules) {
    if (modules->size() > 1) fmt::print("== {}\n", module);
    if (const auto log = Records::log(options.folder, (*run)->past.run, module))
      fmt::print("{}", *log);
    else
      to_errors("baton: {} said nothing in run {}\n", module, (*run)->past.run);
  }
  return 0;
}

int explain(const PastOptions& options) {
  const auto run = Remembered::of(options);
  if (!run) return complain(run.error());
  const auto modules = (*run)->meant_by(options.module);
  if (!modules) return complain(modules.error());
  for (const std::string& module : *modules) say_why(**run, module);
  const PastRun& past = (*run)->past;
  if (past.state == "cancelled" && !past.reason.empty())
    fmt::print("  the run was cancelled: {}\n", past.reason);
  return 0;
}

}  // namespace baton::cli
