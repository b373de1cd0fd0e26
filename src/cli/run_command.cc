#include "cli/run_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/quantities.h"
#include "cli/run_view.h"
#include "pipeline/cache.h"
#include "pipeline/folder_blobs.h"
#include "pipeline/html_report.h"
#include "pipeline/report_json.h"
#include "pipeline/run.h"
#include "pipeline/stop_on_signal.h"
#include "process/child_process.h"

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
    "4 the coordinator was lost, 64 the command line makes no sense, 73 --report cannot be written, 77 not "
    "allowed.\n\n";

constexpr int kExitCannotCreate = 73;  // EX_CANTCREAT

// Several that watch the same run.
class Watchers : public pipeline::RunObserver {
 public:
  void add(pipeline::RunObserver& one) { all_.push_back(&one); }
  void began(const pipeline::Graph& graph, const std::string& run) override {
    for (auto* one : all_) one->began(graph, run);
  }
  void changed(const pipeline::ModuleReport& report, const std::shared_ptr<const void>& value) override {
    for (auto* one : all_) one->changed(report, value);
  }
  void said(const pipeline::LogLine& line) override {
    for (auto* one : all_) one->said(line);
  }
  void progressed(pipeline::NodeIndex node, double part) override {
    for (auto* one : all_) one->progressed(node, part);
  }
  void noticed(const std::string& text) override {
    for (auto* one : all_) one->noticed(text);
  }
  void time_passed() override {
    for (auto* one : all_) one->time_passed();
  }
  bool wants_time() const override {
    return std::ranges::any_of(all_, [](const auto* one) { return one->wants_time(); });
  }
  void ended(const pipeline::RunReport& report) override {
    for (auto* one : all_) one->ended(report);
  }

 private:
  std::vector<pipeline::RunObserver*> all_;
};

// How we reach the coordinator is how our workers do.
void add_options(std::vector<std::string>& words, const Connection& connection) {
  words.insert(words.end(), {"--namespace", connection.ns, "--timeout", time_text(connection.timeout)});
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  for (std::size_t other = 1; other < connection.addresses.size(); ++other)
    add("--connect", connection.addresses[other]);
  add("--user", connection.user);
  add("--token-file", connection.token_file);
  if (connection.tls) words.emplace_back("--tls");
  add("--tls-ca", connection.tls_files.ca);
  add("--tls-certificate", connection.tls_files.certificate);
  add("--tls-key", connection.tls_files.key);
}

void make_folder(const std::string& path) {
  std::error_code trouble;  // whoever uses it says what is wrong
  std::filesystem::create_directories(path, trouble);
}

// Worker processes on this machine. They end with the run, or when this goes.
class LocalWorkers {
 public:
  LocalWorkers(const RunCommandOptions& options, const MeetingPoint& meeting, const std::string& run) {
    for (std::uint64_t i = 0; i < options.workers; ++i) {
      std::vector<std::string> words = {"/proc/self/exe",
                                        "worker",
                                        "--quiet",
                                        "--connect",
                                        meeting.where(),
                                        "--run",
                                        run,
                                        "--slots",
                                        std::to_string(std::max<std::uint64_t>(1, options.jobs)),
                                        "--lost-after",
                                        time_text(meeting.lease)};
      add_options(words, meeting.connection);
      if (!meeting.blobs.empty()) words.insert(words.end(), {"--blobs", meeting.blobs});
      for (const std::string& capability : options.capabilities)
        words.insert(words.end(), {"--cap", capability});
      threads_.emplace_back([words = std::move(words)](const std::stop_token& stop) {
        process::ChildCommand command{.words = words, .grace = seconds(15)};
        command.said = [](process::Output, std::string_view text) {
          (void)!::write(STDERR_FILENO, text.data(), text.size());
        };
        auto ended = process::run_child(command, std::span(&stop, 1));
        if (!ended) fmt::print(stderr, "baton: a worker could not be started: {}\n", ended.error().message);
      });
    }
  }

 private:
  std::vector<std::jthread> threads_;
};

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

int cannot_write_report(const std::string& path) {
  fmt::print(stderr, "baton: the report cannot be written to {}: {}\n", path, std::strerror(errno));
  return kExitCannotCreate;
}

// What makes no sense about how it is to be run. 0: nothing.
int check(const RunCommandOptions& options, const std::string& folder) {
  const bool is_at_redis =
      !options.meeting.connection.addresses.empty() && options.meeting.where().starts_with("redis://");
  if (is_at_redis && !options.run && options.workers == 0) {
    fmt::print(stderr, "baton: at Redis, workers have to be told the run: give it an id with --run\n");
    return kExitUsage;
  }
  if (options.run && options.meeting.connection.addresses.empty()) {
    const auto past = pipeline::Records::past(folder, *options.run);
    if (past && past->state == pipeline::PastRun::kRunning) {
      fmt::print(stderr, "baton: run {} is under way in {}: give each run its own id\n", *options.run,
                 folder);
      return pipeline::kExitInvalid;
    }
  }
  if (!options.report.empty() && !std::ofstream(options.report, std::ios::app))
    return cannot_write_report(options.report);
  return 0;
}

bool is_terminal() {
  const char* term = ::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && ::getenv("CI") == nullptr && term != nullptr &&
         std::string_view(term) != "dumb";
}

}  // namespace

std::map<std::string, pipeline::Restored> restorable(const std::vector<pipeline::JournalLine>& journal) {
  std::map<std::string, pipeline::Restored> all;
  for (const pipeline::JournalLine& line : journal) {
    const bool has_result =
        line.status == "succeeded" || line.status == "cached" || line.status == "restored";
    if (has_result && (line.blob || !line.value.empty()))
      all[line.module] = {.value = {line.value, line.blob}, .artifacts = line.artifacts};
  }
  return all;
}

int run_pipeline(const RunCommandOptions& options, const LoadedPipeline& loaded,
                 const std::map<std::string, pipeline::Restored>& restored) {
  const auto graph = graph_of(loaded);
  if (!graph) return pipeline::kExitInvalid;
  if (const int wrong = check(options, folder_of(loaded.definition.path))) return wrong;
  const pipeline::StopOnSignal stop;
  pipeline::RunOptions run{.run = options.run.value_or(pipeline::make_run_id()),
                           .jobs = options.jobs,
                           .is_only_master = options.only_master};
  run.site.capabilities = options.capabilities;
  for (const std::string& name : pipeline::detected_capabilities()) run.site.capabilities.push_back(name);
  run.site.directory = folder_of(loaded.definition.path);
  run.site.parameters = loaded.file.values;
  run.site.secrets = secrets_of(loaded.file);
  run.stop = stop.token();
  run.history = pipeline::Records::history(run.site.directory);
  run.restored = restored;
  // The same run again, after its master was killed: what is known of it is not done again.
  if (const auto kept = pipeline::Records::kept(run.site.directory, run.run);
      kept && kept->fingerprint == graph->fingerprint()) {
    for (auto& [module, result] : restorable(pipeline::Records::journal(run.site.directory, run.run)))
      run.restored.emplace(module, std::move(result));
  }
  run.definition = pipeline::to_json(pipeline::Codec<pipeline::FileDefinition>::encode(loaded.definition));
  run.lost_after = options.meeting.lease;
  run.workers_expected = options.expect > 0 ? options.expect : options.workers;

  pipeline::Records records(run.site.directory, loaded.definition);
  RunView view({.on_terminal = is_terminal(), .verbose = options.verbose, .history = run.history});
  Watchers watchers;
  watchers.add(records);
  if (!options.json) watchers.add(view);
  run.observer = &watchers;

  MeetingPoint meeting = options.meeting;
  const bool meets_elsewhere = !meeting.connection.addresses.empty();
  const std::string own_blobs = pipeline::Records::blobs(run.site.directory);
  if (!meets_elsewhere && meeting.blobs.empty()) meeting.blobs = own_blobs;
  pipeline::FolderBlobs blobs(meeting.blobs);
  if (!meeting.blobs.empty()) run.site.blobs = &blobs;
  pipeline::Cache cache(pipeline::Records::cache(run.site.directory), own_blobs);
  if (!options.no_cache) run.cache = &cache;
  if (!meeting.blobs.empty() && meeting.blobs != own_blobs) blobs.sweep({}, kBlobsKept);
  if (!meets_elsewhere) {
    const std::string folder = pipeline::Records::meeting(run.site.directory, run.run);
    if (options.workers > 0) make_folder(folder_of(folder));
    meeting.connection.addresses = {"dir:" + folder};
  }
  std::unique_ptr<pipeline::DistributedCoordinator> coordinator;
  std::optional<LocalWorkers> workers;
  if (meets_elsewhere || options.workers > 0) {
    auto made = meet(meeting, run.run);
    if (!made) return cannot_meet(made.error());
    coordinator = std::move(*made);
    run.coordinator = coordinator.get();
    if (options.workers > 0) workers.emplace(options, meeting, run.run);
  }
  const pipeline::RunReport report = pipeline::run(*graph, std::move(run));
  workers.reset();
  if (report.refusal) return refused(report, options);
  std::set<std::string> named = pipeline::Records::blobs_named(folder_of(loaded.definition.path));
  named.merge(cache.blobs_named());
  cache.blobs.sweep(named, kBlobsYoung);
  if (options.json) fmt::print("{}\n", pipeline::to_json(report, records.values()));
  if (!records.trouble().empty()) fmt::print(stderr, "baton: {}\n", records.trouble());
  const int code = pipeline::exit_code(report.outcome);
  if (!options.report.empty()) {
    const auto log = [&](const std::string& module) {
      return pipeline::Records::log(folder_of(loaded.definition.path), report.run, module).value_or("");
    };
    std::ofstream page(options.report, std::ios::binary);
    page << pipeline::html_of(*graph, report, log);
    if (!page.flush()) return std::max(code, cannot_write_report(options.report));
  }
  return code;
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
        const auto loaded = load(options->source);
        return loaded ? run_pipeline(*options, *loaded) : pipeline::kExitInvalid;
      });
}

}  // namespace baton::cli
