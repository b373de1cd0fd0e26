#include "cli/pipeline_worker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>

#include "base/pause.h"
#include "cli/command_line.h"
#include "cli/meeting_point.h"
#include "cli/output.h"
#include "cli/pipeline_source.h"
#include "cli/quantities.h"
#include "pipeline/folder_blobs.h"
#include "pipeline/pulse.h"
#include "pipeline/reservation.h"
#include "pipeline/run.h"
#include "pipeline/stop_on_signal.h"
#include "pipeline/wire_text.h"
#include "pipeline/worker.h"

namespace baton::cli {
namespace {

constexpr char kAbout[] =
    "Runs meet at a baton server (--connect HOST:PORT), in a shared folder (dir:FOLDER) or at Redis "
    "(redis://HOST:PORT).\n"
    "It takes part in those that meet at the same place, one after the other, until it is stopped; with "
    "--run or a\n"
    "folder, in that run alone. The pipeline comes from the master. Exit codes: 0 the run is over, 2 "
    "refused,\n"
    "3 stopped, 4 the coordinator or the master was lost, 64 the command line makes no sense, 69 nobody "
    "answers there,\n"
    "77 not allowed.\n\n";

constexpr Duration kLookAgain = milliseconds(500);  // for runs

struct PipelineWorkerOptions {
  MeetingPoint meeting;
  std::optional<std::string> run;
  std::vector<std::string> capabilities;
  std::uint64_t slots = 1;
  std::uint32_t index = 0;
  bool is_reserved = false;
  std::string directory;
  Duration master_lost_after = seconds(60);
  Duration wait = minutes(2);
  bool quiet = false;
};

std::string default_name() {
  char host[HOST_NAME_MAX + 1] = {};
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{}-{}", host, ::getpid());
}

class PipelineWorker {
 public:
  explicit PipelineWorker(PipelineWorkerOptions options) : options_(std::move(options)) {}

  int run(const std::stop_token& stop) {
    // It would take module after module, and fail them all.
    std::error_code absent;
    if (!options_.directory.empty() && !std::filesystem::is_directory(options_.directory, absent)) {
      to_errors("baton: --dir {}: there is no such folder\n", options_.directory);
      return kExitUsage;
    }
    const bool has_one = options_.run || options_.meeting.where().starts_with("dir:");
    if (has_one) return take_part(options_.run.value_or("run"), stop);
    if (!options_.meeting.is_server()) {
      to_errors("baton: say which run with --run\n");
      return kExitUsage;
    }
    const auto client = connect(options_.meeting.connection);
    if (!client) return cannot_begin(client.error());
    if (auto allowed = may_work(**client, stop); !allowed) return cannot_begin(allowed.error());
    say(fmt::format("waits for runs at {}", options_.meeting.connection.addresses.front()));
    std::set<std::string> done;
    for (bool was_there = true; !stop.stop_requested();) {
      const auto next = next_run(**client, done);
      if (!next && next.error().code == Errc::permission_denied) return complain(next.error());
      // It may be back in a moment, as after a restart; a worker waits for runs that are not there yet
      // anyway.
      if (!next && was_there) say(next.error().message + "; trying again");
      was_there = next.has_value();
      const int kLost = pipeline::exit_code(pipeline::WorkerEnd::coordination_lost);
      const int ended = next && !next->empty() ? take_part(*next, stop) : kLost;
      // One that was left because somebody was not heard of may go on.
      if (ended == kLost)
        pause(kLookAgain, stop);
      else
        done.insert(*next);
    }
    return pipeline::exit_code(pipeline::WorkerEnd::stopped);
  }

 private:
  void say(const std::string& text) const {
    if (!options_.quiet) to_errors("baton worker: {}\n", text);
  }

  static int cannot_begin(const Error& error) {
    return error.code == Errc::unavailable ? complain(error) : cannot_meet(error);
  }

  // Nobody is without a capability of his own in that queue, so nothing is taken.
  static Status may_work(client::Client& client, const std::stop_token& stop) {
    const auto none = client.lease(
        {.worker = default_name(), .queues = {"pipeline-runs"}, .ttl = seconds(1), .capabilities = {}}, stop);
    if (none || pipeline::is_transient(none.error().code) || stop.stop_requested()) return {};
    if (none.error().code != Errc::permission_denied) return std::unexpected(none.error());  // no coordinator
    return failure(none.error().code, none.error().message +
                                          " (--token-file FILE gives a token; a worker needs the permissions "
                                          "submit, query and work)");
  }

  // The oldest that has a master and that we have not been part of. One that no longer has is forgotten.
  static Result<std::string> next_run(client::Client& client, std::set<std::string>& done) {
    auto runs = client.tasks({.queue = "pipeline-runs", .state = "leased", .count = 1000});
    if (!runs) return std::unexpected(runs.error());
    std::erase_if(done, [&](const std::string& run) {
      return std::ranges::find(runs->tasks, run, &client::TaskView::key) == runs->tasks.end();
    });
    for (const client::TaskView& view : runs->tasks) {
      if (!done.contains(view.key)) return view.key;
    }
    return std::string();
  }

  // Where a run was named there is no other to wait for meanwhile.
  bool is_nobody_there(const Error& error) const { return error.code == Errc::unavailable && options_.run; }

  int take_part(const std::string& run, const std::stop_token& stop) {
    auto coordinator = meet(options_.meeting, run);
    if (!coordinator) {
      const int code = cannot_meet(coordinator.error());
      return is_nobody_there(coordinator.error()) ? kExitUnavailable : code;
    }
    const auto opening = wait_for_opening(**coordinator, stop);
    if (!opening && stop.stop_requested()) return pipeline::exit_code(pipeline::WorkerEnd::stopped);
    if (!opening) {
      const int code = complain(opening.error());
      if (opening.error().code == Errc::permission_denied || is_nobody_there(opening.error())) return code;
      const bool is_stranger = opening.error().code == Errc::unsupported_version;
      return pipeline::exit_code(is_stranger ? pipeline::WorkerEnd::refused
                                             : pipeline::WorkerEnd::coordination_lost);
    }
    const auto definition = pipeline::from_text<pipeline::FileDefinition>(opening->definition);
    if (!definition) {
      to_errors("baton: run {} is of a C++ program, and its workers have to be that program\n", run);
      return pipeline::kExitInvalid;
    }
    const auto loaded = load(*definition);
    const auto graph = loaded ? graph_of(*loaded) : std::unexpected(loaded.error());
    if (!graph) return pipeline::kExitInvalid;
    pipeline::WorkerOptions worker{.index = static_cast<std::int32_t>(options_.index),
                                   .slots = static_cast<std::uint32_t>(options_.slots),
                                   .is_reserved = options_.is_reserved};
    worker.site.name = default_name();
    worker.site.capabilities = options_.capabilities;
    for (const std::string& name : pipeline::detected_capabilities())
      worker.site.capabilities.push_back(name);
    worker.site.directory = options_.directory.empty() ? folder_of(definition->path) : options_.directory;
    worker.site.run = run;
    pipeline::FolderBlobs blobs(options_.meeting.blobs);
    if (!options_.meeting.blobs.empty()) worker.site.blobs = &blobs;
    worker.site.parameters = loaded->file.values;
    worker.site.secrets = secrets_of(loaded->file);
    if (!options_.quiet)
      worker.site.log = [](const pipeline::LogLine& line) {
        to_output("{}: {}\n", line.module, line.text);
        std::fflush(stdout);  // whoever follows a worker's log wants to see it now
      };
    worker.lease = options_.meeting.lease;
    worker.master_lost_after = options_.master_lost_after;
    worker.notice = [this](const std::string& text) { say(text); };
    const bool is_named = options_.run || options_.meeting.is_server();
    say(fmt::format("takes part in {} of {}", is_named ? "run " + run : "the run", opening->name));
    const pipeline::WorkerReport report = pipeline::run_worker(*graph, **coordinator, worker, stop);
    say(fmt::format("{} done; {}", counted(report.modules, "module"), report.reason));
    return pipeline::exit_code(report.end);
  }

  // The master may come later than its workers.
  Result<pipeline::RunOpening> wait_for_opening(pipeline::DistributedCoordinator& coordinator,
                                                const std::stop_token& stop) const {
    for (Duration waited;; waited = waited + milliseconds(100)) {
      auto opening = coordinator.run_opening(stop);
      if (opening || opening.error().code != Errc::not_found) return opening;
      const std::string awaited =
          options_.run ? "run " + *options_.run : "the run at " + options_.meeting.where();
      if (waited >= options_.wait)
        return failure(Errc::not_found,
                       fmt::format("{} did not begin within {}: start its master, or look at its id", awaited,
                                   time_text(options_.wait)));
      if (waited == Duration{}) say("waits for " + awaited);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (stop.stop_requested()) return failure(Errc::closed, "stopped before the run began");
    }
  }

  const PipelineWorkerOptions options_;
};

int run_pipeline_worker(PipelineWorkerOptions options) {
  take_what_was_handed_over(options.meeting);
  if (const auto checked = check_part(options.meeting, options.capabilities); !checked) {
    to_errors("baton: {}\n", checked.error().message);
    return kExitUsage;
  }
  if (const auto checked = pipeline::check_reserved(pipeline::canonical(options.capabilities));
      options.is_reserved && !checked) {
    to_errors("baton: {}\n", checked.error().message);
    return kExitUsage;
  }
  const pipeline::StopOnSignal stop;
  const bool is_quiet = options.quiet;
  const std::stop_callback on_stop(stop.token(), [is_quiet] {
    if (!is_quiet) to_errors("baton worker: stopping, with what it runs; Ctrl-C again ends it at once\n");
  });
  return PipelineWorker(std::move(options)).run(stop.token());
}

}  // namespace

void add_worker_command(CommandLine& line) {
  auto options = std::make_shared<PipelineWorkerOptions>();
  Command worker =
      line.command("worker", "Runs modules of pipelines for masters elsewhere; or looks at workers of tasks");
  worker
      .options("--cap NAME", options->capabilities,
               "What this machine can do, besides linux; may be repeated")
      .flag("--reserved", options->is_reserved, "Run only what names a capability that --cap gives it")
      .number("--slots N", options->slots, "Modules at a time", 1, 1024)
      .number("--index N", options->index, "Its number among the workers of a run; 0: the first that is free")
      .option("--run ID", options->run, "Only this run", "")
      .duration("--wait TIME", options->wait, "How long it waits for a run that has not begun")
      .option("--dir FOLDER", options->directory, "Where commands run [the folder of the pipeline's file]")
      .option(
          "--blobs FOLDER", options->meeting.blobs,
          "Shared by all machines, for artifacts and large results [the server's, or the shared folder's]")
      .duration("--lost-after TIME", options->meeting.lease,
                "It counts as lost when it is silent for so long, if the master has not said how long")
      .duration("--master-lost-after TIME", options->master_lost_after, "How long the master may be silent")
      .flag("--quiet", options->quiet, "Do not show what modules say");
  add_connection_options(worker, options->meeting.connection);
  worker
      .footer(kAbout + ("Example: " + line.program()) +
              " worker --connect 10.0.0.5:7077 --cap docker --slots 4")
      .run([options] { return run_pipeline_worker(*options); });
}

}  // namespace baton::cli
