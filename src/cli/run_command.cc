#include "cli/run_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/known_results.h"
#include "cli/local_workers.h"
#include "cli/missing_secrets.h"
#include "cli/output.h"
#include "cli/run_view.h"
#include "cli/watchers.h"
#include "pipeline/cache.h"
#include "pipeline/execute.h"
#include "pipeline/folder_blobs.h"
#include "pipeline/html_report.h"
#include "pipeline/report_json.h"
#include "pipeline/run.h"
#include "pipeline/stop_on_signal.h"

namespace baton::cli {
namespace {

constexpr Duration kBlobsKept = days(7);    // in a folder that others use too, since they were last used
constexpr Duration kBlobsYoung = hours(1);  // somebody may be about to name them

constexpr char kAbout[] =
    "With --connect it is the master of a run that workers take part in: they meet at a baton server "
    "(HOST:PORT), in a\n"
    "folder that they share (dir:FOLDER) or at Redis (redis://HOST:PORT).\n\n"
    "Exit codes: 0 all went well, 1 a module failed, 2 the pipeline makes no sense or the run was refused, 3 "
    "cancelled,\n"
    "4 the coordinator was lost, 5 internal, 64 the command line makes no sense, 66 the file cannot be read, "
    "73 --report\n"
    "cannot be written, 77 not allowed, 130 ended by a second Ctrl-C.\n\n";

constexpr int kExitCannotCreate = 73;  // EX_CANTCREAT

void make_folder(const std::string& directory, const std::string& path) {
  pipeline::Records::make_home(directory);
  std::error_code trouble;  // whoever uses it says what is wrong
  std::filesystem::create_directories(path, trouble);
}

// A run that was refused has nothing to show but why.
int refused(const pipeline::RunReport& report, const RunCommandOptions& options) {
  Error error = *report.refusal;
  const bool is_forbidden = error.code == Errc::permission_denied;
  const bool is_server = !options.meeting.connection.addresses.empty() && options.meeting.is_server();
  if (is_forbidden && is_server)
    error.message +=
        " (--token-file FILE gives a token; a master needs the permissions submit, query and work)";
  const int code = complain(error, format_of(options.json));
  return is_forbidden ? code : pipeline::exit_code(report.outcome);
}

std::string cannot_write_report(const std::string& path) {
  return fmt::format("the report cannot be written to {}: {}", path, std::strerror(errno));
}

int refuse(int exit_code, Errc code, const std::string& message, const RunCommandOptions& options) {
  to_errors("baton: {}\n", message);
  tell_programs({code, message}, format_of(options.json));
  return exit_code;
}

// What makes no sense about how it is to be run. 0: nothing.
int check(const RunCommandOptions& options) {
  const auto makes_no_sense = [](const std::string& message) {
    to_errors("baton: {}\n", message);
    return kExitUsage;
  };
  if (const auto checked = check_part(options.meeting, options.capabilities); !checked)
    return makes_no_sense(checked.error().message);
  const bool is_at_redis = !options.meeting.connection.addresses.empty() && options.meeting.is_redis();
  if (is_at_redis && !options.run && options.workers == 0)
    return makes_no_sense("at Redis, workers have to be told the run: give it an id with --run");
  if (options.only_master && options.workers == 0 && options.meeting.connection.addresses.empty())
    return makes_no_sense(
        "with --only-master somebody else has to run the modules: say --workers N or --connect");
  if (!options.report.empty() && !std::ofstream(options.report, std::ios::app))
    return refuse(kExitCannotCreate, Errc::io_failed, cannot_write_report(options.report), options);
  return 0;
}

bool is_alone(const RunCommandOptions& options) {
  return options.meeting.connection.addresses.empty() && options.workers == 0;
}

pipeline::RunOptions run_options(const RunCommandOptions& options, const LoadedPipeline& loaded,
                                 const pipeline::Graph& graph) {
  pipeline::RunOptions run{.run = options.run.value_or(pipeline::make_run_id()),
                           .jobs = options.jobs,
                           .is_only_master = options.only_master};
  run.site.capabilities = options.capabilities;
  for (const std::string& name : pipeline::detected_capabilities()) run.site.capabilities.push_back(name);
  run.site.directory = folder_of(loaded.definition.path);
  run.site.parameters = loaded.file.values;
  run.site.secrets = secrets_of(loaded.file);
  run.history = pipeline::Records::history(run.site.directory, loaded.definition.path);
  run.ended_before = [directory = run.site.directory, id = run.run, &graph] {
    return ended_before(directory, id, graph);
  };
  run.definition = pipeline::to_json(pipeline::Codec<pipeline::FileDefinition>::encode(loaded.definition));
  run.lost_after = options.meeting.lease;
  run.workers_expected = options.expect > 0 ? options.expect : options.workers;
  return run;
}

// A coordinator may know the run from before, with results that are not among our records.
bool may_go_on_elsewhere(const MeetingPoint& meeting, const std::optional<std::string>& run) {
  if (meeting.connection.addresses.empty()) return false;
  constexpr std::string_view kFolder = "dir:";
  const std::string where = meeting.where();
  std::error_code absent;
  return where.starts_with(kFolder) ? std::filesystem::exists(where.substr(kFolder.size()), absent)
                                    : run.has_value();
}

// A module without its secret fails as one whose body throws.
bool may_fail_without_secret(const pipeline::GraphNode& node) {
  const pipeline::ModuleFailure failure{.kind = pipeline::FailureKind::exception};
  return pipeline::status_of_failure(node, failure) == pipeline::ModuleStatus::ignored_failure;
}

// Secrets that are missing here. With workers elsewhere that is told, for they may have them; it is no reason
// not to begin unless a module runs here for certain, cannot do without and may not fail.
std::vector<pipeline::Problem> check_secrets(const RunCommandOptions& options, const LoadedPipeline& loaded,
                                             const pipeline::Graph& graph, const pipeline::RunOptions& run) {
  const bool meets_elsewhere = !options.meeting.connection.addresses.empty();
  const std::vector<std::string> ours = pipeline::canonical(run.site.capabilities);
  const std::vector<bool> is_bound = bound_to_run(loaded.file, graph, [&](const pipeline::GraphNode& node) {
    return !is_alone(options) || pipeline::covers(ours, node.capabilities);
  });
  const auto known = run.ended_before();
  const bool may_go_on = may_go_on_elsewhere(options.meeting, options.run);
  const auto needs_it = [&](const pipeline::GraphNode& node) {
    const bool may_be_known = may_go_on || run.restored.contains(node.id) || known.contains(node.id) ||
                              (!options.no_cache && !node.spec->cache.empty());
    return is_bound[*graph.find(node.id)] && !may_be_known && !may_fail_without_secret(node) &&
           (!meets_elsewhere || node.spec->pinned);
  };
  auto missing = missing_secrets(loaded.file, graph, needs_it);
  if (missing.empty()) tell_of_missing_secrets(loaded.file, graph);
  return missing;
}

// What no run that is remembered names, nor the cache. One that goes on has some that it has named to nobody
// yet.
void forget_blobs(const pipeline::Cache& cache, const std::string& directory, const std::string& run) {
  auto named = cache.blobs_named();
  if (!named || pipeline::Records::others_go_on(directory, run)) return;  // rather keep too many
  named->merge(pipeline::Records::blobs_named(directory));
  cache.blobs.sweep(*named, kBlobsYoung);
}

bool write_page(const std::string& path, const pipeline::Graph& graph, const pipeline::RunReport& report,
                const std::string& directory) {
  const auto log = [&](const std::string& module) {
    return pipeline::Records::log(directory, report.run, module).value_or("");
  };
  std::ofstream page(path, std::ios::binary);
  page << pipeline::html_of(graph, report, log);
  return static_cast<bool>(page.flush());
}

// For whoever sees no run view, or has sent it into a file.
class StopNotice : public pipeline::RunObserver {
 public:
  void stopping(std::size_t modules) override { to_errors("baton: {}\n", stop_text(modules)); }
};

// Whoever decides about the run may be waiting for a coordinator that does not answer when it is to be
// stopped, and says nothing until that is given up. So this says it, on a thread of its own: the one that
// hears signals must not wait until standard error is read.
class HungStopNotice : public pipeline::RunObserver {
 public:
  HungStopNotice(const std::stop_token& stop, bool has_coordinator)
      : text_(has_coordinator
                  ? "stopping as soon as the coordinator, which does not answer, is told or given up"
                  : "stopping"),
        on_stop_(stop,
                 [this] {
                   const std::lock_guard lock(mutex_);
                   is_stopping_ = true;
                   changed_.notify_all();
                 }),
        thread_([this](const std::stop_token& over) { wait(over); }) {}

  void told_to_stop() override {
    const std::lock_guard lock(mutex_);
    is_told_ = true;
    changed_.notify_all();
  }

 private:
  void wait(const std::stop_token& over) {
    constexpr std::chrono::milliseconds kPatience(500);
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, over, [this] { return is_stopping_; })) return;
    if (changed_.wait_for(lock, over, kPatience, [this] { return is_told_; }) || over.stop_requested())
      return;
    lock.unlock();
    to_errors("baton: {}; Ctrl-C again ends it at once\n", text_);
  }

  const std::string text_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool is_stopping_ = false;
  bool is_told_ = false;
  const std::stop_callback<std::function<void()>> on_stop_;
  const std::jthread thread_;
};

// A run that is to be gone on with.
bool is_of_other_modules(const RunCommandOptions& options, const std::string& directory,
                         const pipeline::Graph& graph) {
  if (!options.run) return false;
  const auto kept = pipeline::Records::kept(directory, *options.run);
  return kept && kept->fingerprint != graph.fingerprint();
}

bool is_terminal() {
  const char* term = ::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && ::getenv("CI") == nullptr && term != nullptr &&
         std::string_view(term) != "dumb";
}

}  // namespace

int run_pipeline(const RunCommandOptions& options, const LoadedPipeline& loaded,
                 const std::map<std::string, pipeline::Restored>& restored) {
  const auto graph = graph_of(loaded);
  if (!graph) return graph.error();
  const std::string directory = folder_of(loaded.definition.path);
  if (const int wrong = check(options)) return wrong;
  if (is_of_other_modules(options, directory, *graph)) {
    (void)complain({Errc::conflict, "run '" + *options.run +
                                        "' was of other modules: leave --run out, or give it another name"},
                   format_of(options.json));
    return pipeline::exit_code(pipeline::RunOutcome::refused);
  }
  tell_of_unset_variables(loaded.file, *graph);
  pipeline::RunOptions run = run_options(options, loaded, *graph);
  RunView view({.on_terminal = is_terminal(),
                .verbose = options.verbose,
                .has_workers_here = options.workers > 0,
                .history = run.history});
  const pipeline::StopOnSignal stop([&] { view.say_last_words(); });
  run.restored = restored;
  run.stop = stop.token();
  if (const auto missing = check_secrets(options, loaded, *graph, run); !missing.empty())
    return tell(missing, format_of(options.json));

  MeetingPoint meeting = options.meeting;
  const bool meets_elsewhere = !meeting.connection.addresses.empty();
  pipeline::Records records(directory, loaded.definition, run.site.secrets, options.capabilities);
  if (!meets_elsewhere && !records.hold(run.run))
    return refuse(pipeline::kExitInvalid, Errc::locked,
                  fmt::format("run {} is under way in {}: give each run its own id", run.run, directory),
                  options);
  run.note_beginning = [&](const pipeline::ModuleReport& module) { return records.note_beginning(module); };
  const std::string own_blobs = pipeline::Records::blobs(directory);
  if (!meets_elsewhere && meeting.blobs.empty()) meeting.blobs = own_blobs;
  pipeline::FolderBlobs blobs(meeting.blobs);
  if (!meeting.blobs.empty()) run.site.blobs = &blobs;
  pipeline::Cache cache(pipeline::Records::cache(directory), own_blobs);
  if (!options.no_cache) run.cache = &cache;
  if (!meeting.blobs.empty() && meeting.blobs != own_blobs) blobs.sweep({}, kBlobsKept);
  if (!meets_elsewhere) {
    const std::string folder = pipeline::Records::meeting(directory, run.run);
    // The run is held and has ended, so nobody meets there any more: it is gone on with somewhere new. What
    // came of it is in its records, unless its master had lost the folder and so could not close it: then the
    // folder alone knows what became of what was handed out.
    if (std::error_code absent;
        pipeline::Records::report(directory, run.run) && std::filesystem::exists(folder + "/closed", absent))
      std::filesystem::remove_all(folder, absent);
    if (options.workers > 0) make_folder(directory, folder_of(folder));
    meeting.connection.addresses = {"dir:" + folder};
  }
  std::unique_ptr<pipeline::DistributedCoordinator> coordinator;
  if (meets_elsewhere || options.workers > 0) {
    auto made = meet(meeting, run.run);
    if (!made) return cannot_meet(made.error(), format_of(options.json));
    coordinator = std::move(*made);
    run.coordinator = coordinator.get();
  }

  LocalWorkers workers(options, meeting);
  Watchers watchers;
  watchers.add(records);
  if (!options.json) watchers.add(view);
  StopNotice notice;
  if (options.json || !is_terminal()) watchers.add(notice);
  HungStopNotice hung(run.stop, run.coordinator != nullptr);
  watchers.add(hung);
  watchers.add(workers);
  run.observer = &watchers;
  const pipeline::RunReport report = pipeline::run(*graph, std::move(run));
  if (report.refusal) return refused(report, options);
  forget_blobs(cache, directory, report.run);
  if (options.json) fmt::print("{}\n", records.json_of(report));
  if (!records.trouble().empty()) to_errors("baton: {}\n", records.trouble());
  const int code = pipeline::exit_code(report.outcome);
  if (options.report.empty() || write_page(options.report, *graph, report, directory)) return code;
  to_errors("baton: {}\n",
            cannot_write_report(options.report));  // standard output has the report for programs
  return std::max(code, kExitCannotCreate);
}

void add_how_to_run(Command& command, RunCommandOptions& options) {
  command
      .number("-j,--jobs N", options.jobs,
              "Modules at a time on one machine; 0: as many as it has processors", 0, 1024)
      .number("--workers N", options.workers, "Start so many worker processes here", 0, 64)
      .options("--cap NAME", options.capabilities, "What this machine can do, besides linux; may be repeated")
      .number("--expect N", options.expect,
              "So many workers will come and no more: what none of them can do fails at once")
      .duration("--lost-after TIME", options.meeting.lease, "A worker that is silent for so long is lost")
      .option(
          "--blobs FOLDER", options.meeting.blobs,
          "Shared by all machines, for artifacts and large results [the server's, or the shared folder's]")
      .flag("--only-master", options.only_master, "Run nothing here but what is pinned to the master")
      .option("--run ID", options.run, "What the run is called; the same again goes on with it", "a new one")
      .option("--report FILE", options.report, "Write a page about the run, as HTML")
      .flag("--no-cache", options.no_cache, "Run what is known from before too")
      .flag("-v,--verbose", options.verbose, "Show what modules say on a terminal too")
      .flag("--json", options.json, "Print the report, for programs, and nothing else");
  options.meeting.connection.addresses.clear();  // without an address it runs here alone
  add_connection_options(command, options.meeting.connection);
}

void add_run_command(CommandLine& line) {
  auto options = std::make_shared<RunCommandOptions>();
  Command run = line.command("run", "Runs a pipeline: modules of a YAML file, here or on many machines");
  add_source_options(run, options->source);
  add_how_to_run(run, *options);
  const std::string program = line.program();
  run.footer(kAbout + ("Examples:\n  " + program) + " run pipeline.yaml -j 8\n  " + program +
             " run pipeline.yaml --workers 3\n  " + program + " run pipeline.yaml --connect 10.0.0.5:7077")
      .run([options] {
        const auto loaded = load(options->source, format_of(options->json));
        return loaded ? run_pipeline(*options, *loaded) : loaded.error();
      });
}

}  // namespace baton::cli
