#include "cli/log_commands.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/output.h"
#include "cli/quantities.h"
#include "core/event_codec.h"
#include "engine/backup.h"
#include "engine/describe.h"
#include "engine/snapshot.h"
#include "engine/verify.h"
#include "log/control.h"
#include "log/held_directory.h"
#include "log/posix_disk.h"
#include "log/survey.h"

namespace baton::cli {
namespace {

constexpr int kExitUnreadable = 74;  // EX_IOERR

int complain(const LogOptions& options, const Error& error, int exit_code = kExitUnreadable) {
  if (options.json) {
    fmt::print("{}\n", json_of(error).whole());
  }
  // An error of the system names its file already.
  const bool named = error.message.find(options.directory) != std::string::npos;
  to_errors("baton: {}{}{}: {}\n", named ? "" : options.directory, named ? "" : ": ", word(error.code),
            error.message);
  return exit_code;
}

std::string_view name_of(engine::Finding finding) {
  switch (finding) {
    case engine::Finding::intact: return "intact";
    case engine::Finding::torn_tail: return "torn_tail";
    case engine::Finding::damaged: return "damaged";
    case engine::Finding::contradiction: return "contradiction";
    case engine::Finding::missing_segment: return "missing_segment";
    case engine::Finding::unsupported_version: return "unsupported_version";
  }
  return "unknown";
}

int exit_code_for(const Error& error) {
  if (error.code == Errc::corrupt) return static_cast<int>(engine::Finding::damaged);
  if (error.code == Errc::unsupported_version) return static_cast<int>(engine::Finding::unsupported_version);
  return kExitUnreadable;
}

// For reading, and only if there is a log in it.
Result<std::unique_ptr<log::HeldDirectory>> open_log_directory(const LogOptions& options) {
  auto disk = log::HeldDirectory::hold(options.directory);
  if (!disk) return disk;
  auto control = log::read_control(**disk);
  if (!control) return std::unexpected(control.error());
  if (!*control && !log::has_segments(**disk))
    return failure(Errc::not_found, "there is no baton log in this directory");
  return disk;
}

std::string how_it_ends(const log::HeldDirectory& disk, const log::LogReport& log) {
  if (disk.process()) return "in use by process " + *disk.process();
  return log.clean ? "closed cleanly" : "not closed cleanly";
}

// Which entries were removed because snapshots cover them: those before the first that is there, and between.
std::string removed_from(const log::LogReport& log) {
  if (log.ranges.empty()) return {};
  std::string text;
  if (log.first > 1) text = fmt::format("entries before {}", log.first);
  for (std::size_t index = 1; index < log.ranges.size(); ++index) {
    text += fmt::format("{} {} to {}", text.empty() ? "entries" : " and", log.ranges[index - 1].last + 1,
                        log.ranges[index].first - 1);
  }
  return text.empty() ? text : text + " were removed; snapshots cover them";
}

// For those who look at the entries, beside the output.
void tell_what_was_removed(const LogOptions& options, const log::LogReport& log) {
  const std::string removed = removed_from(log);
  if (log.problem.kind == log::ProblemKind::none && !removed.empty())
    to_errors("baton: {}: {}\n", options.directory, removed);
}

void print_verified(const engine::VerifyReport& report, const std::string& ending) {
  const log::LogReport& log = report.log;
  const bool whole =
      report.finding == engine::Finding::intact || report.finding == engine::Finding::torn_tail;
  for (const std::string& note : report.notes) fmt::print("{}\n", note);
  if (!whole) {
    fmt::print("readable: {}, in {} batches and {}, {}; {}\n", log::to_text(log.ranges), log.batches,
               counted(log.segments, "segment"), ending, counted(report.snapshots, "snapshot"));
    return;
  }
  fmt::print("entries {} ({} in all) in {} batches and {}, {}; {}\n", log::to_text(log.ranges), log.records,
             log.batches, counted(log.segments, "segment"), ending, counted(report.snapshots, "snapshot"));
  if (const std::string removed = removed_from(log); !removed.empty()) fmt::print("{}\n", removed);
  fmt::print("{} tasks, {} payloads and results of {} bytes, digest {:016x}\n", report.tasks, report.blobs,
             report.blob_bytes, report.digest);
}

// What is wrong with a log that was read as far as it goes.
int exit_code_for(const LogOptions& options, const log::Problem& problem) {
  if (problem.kind != log::ProblemKind::none) {
    to_errors("baton: {}: {}\n", options.directory, problem.message);
  }
  return static_cast<int>(engine::finding_of(problem.kind));
}

}  // namespace

int log_verify(const LogOptions& options) {
  auto disk = log::HeldDirectory::hold(options.directory);
  if (!disk) return complain(options, disk.error());
  const auto report = engine::verify(**disk, options.full);
  if (!report) return complain(options, report.error());
  const log::LogReport& log = report->log;
  if (options.json) {
    fmt::print(
        R"({{"finding":"{}","message":{},"segments":{},"batches":{},"records":{},"first_lsn":{},"last_lsn":{},)"
        R"("clean":{},"in_use":{},"snapshots":{},"tasks":{},"blobs":{},"blob_bytes":{},"digest":"{:016x}"}})"
        "\n",
        name_of(report->finding), engine::json_string(report->message), log.segments, log.batches,
        log.records, log.first, log.last, log.clean, log.in_use, report->snapshots, report->tasks,
        report->blobs, report->blob_bytes, report->digest);
  } else {
    fmt::print("{}: {}\n", options.directory, name_of(report->finding));
    if (!report->message.empty()) fmt::print("{}\n", report->message);
    print_verified(*report, how_it_ends(**disk, log));
  }
  return static_cast<int>(report->finding);
}

int log_dump(const LogOptions& options) {
  auto disk = open_log_directory(options);
  if (!disk) return complain(options, disk.error(), exit_code_for(disk.error()));
  auto snapshots = engine::list_snapshots(**disk);
  if (!snapshots) return complain(options, snapshots.error());
  engine::Epochs epochs;
  const auto print = [&](const log::Record& record) -> Status {
    const core::Stamp stamp{.lsn = record.place.lsn, .epoch = record.epoch, .time = record.time};
    epochs.saw(stamp);
    if (record.place.lsn < options.from || (options.to != 0 && record.place.lsn > options.to)) return {};
    auto event = core::decode(record.type, record.body);
    if (!event) return std::unexpected(event.error());
    fmt::print("{}\n", options.json ? engine::describe_json(*event, stamp, epochs)
                                    : engine::describe(*event, stamp, epochs));
    return {};
  };
  const core::Lsn needed_from = snapshots->empty() ? 1 : snapshots->front() + 1;
  auto survey =
      log::survey_log(**disk, {.needed_from = needed_from, .older = log::Older::visit, .visitor = print});
  if (!survey) return complain(options, survey.error(), exit_code_for(survey.error()));
  tell_what_was_removed(options, survey->report);
  return exit_code_for(options, survey->report.problem);
}

int log_stat(const LogOptions& options) {
  auto disk = open_log_directory(options);
  if (!disk) return complain(options, disk.error(), exit_code_for(disk.error()));
  auto snapshots = engine::list_snapshots(**disk);
  if (!snapshots) return complain(options, snapshots.error());
  std::map<std::uint16_t, std::pair<std::uint64_t, std::uint64_t>> types;  // count and bytes by type
  const auto count = [&](const log::Record& record) -> Status {
    if (auto event = core::decode(record.type, record.body); !event) return std::unexpected(event.error());
    auto& [records, bytes] = types[record.type];
    ++records;
    bytes += record.body.size();
    return {};
  };
  const core::Lsn needed_from = snapshots->empty() ? 1 : snapshots->front() + 1;
  auto survey =
      log::survey_log(**disk, {.needed_from = needed_from, .older = log::Older::visit, .visitor = count});
  if (!survey) return complain(options, survey.error(), exit_code_for(survey.error()));
  tell_what_was_removed(options, survey->report);
  std::uint64_t file_bytes = 0;
  for (const auto& segment : survey->segments) file_bytes += segment.bytes;
  if (options.json) {
    fmt::print(
        R"({{"segments":{},"bytes":{},"snapshots":{},"first_lsn":{},"last_lsn":{},"epoch":{},"types":{{)",
        survey->segments.size(), file_bytes, snapshots->size(), survey->report.first, survey->report.last,
        survey->report.last_epoch);
    const char* comma = "";
    for (const auto& [type, sum] : types) {
      fmt::print(R"({}"{}":{{"records":{},"bytes":{}}})", std::exchange(comma, ","),
                 core::name_of(static_cast<core::EventType>(type)), sum.first, sum.second);
    }
    fmt::print("}}}}\n");
    return exit_code_for(options, survey->report.problem);
  }
  fmt::print("{}, {} bytes in all, {}, entries {} ({} in all, epoch {:x})\n",
             counted(survey->segments.size(), "segment"), file_bytes, counted(snapshots->size(), "snapshot"),
             log::to_text(survey->report.ranges), survey->report.records, survey->report.last_epoch);
  fmt::print("{:<16} {:>12} {:>14}\n", "entry", "count", "bytes");
  for (const auto& [type, sum] : types) {
    fmt::print("{:<16} {:>12} {:>14}\n", core::name_of(static_cast<core::EventType>(type)), sum.first,
               sum.second);
  }
  return exit_code_for(options, survey->report.problem);
}

namespace {

int copy(const LogOptions& options, std::string_view what) {
  auto from = open_log_directory(options);
  if (!from) return complain(options, from.error(), exit_code_for(from.error()));
  LogOptions target = options;
  target.directory = options.target;
  std::error_code unknown;  // which the copy tells
  // To be taken away if the copy fails.
  const bool is_ours = !std::filesystem::exists(options.target, unknown) && !unknown;
  auto to = log::PosixDisk::open_directory(options.target);
  if (!to) return complain(target, to.error());
  if (auto fit = engine::check_target(**to); !fit) return complain(target, fit.error());
  const auto copied = engine::copy_directory(**from, **to);
  if (!copied) {
    to->reset();
    std::error_code ignored;  // the error at hand says more
    if (is_ours) std::filesystem::remove_all(options.target, ignored);
    return complain(options, copied.error(), exit_code_for(copied.error()));
  }
  if (options.json) {
    fmt::print(R"({{"segments":{},"snapshots":{},"bytes":{},"last_lsn":{}}})"
               "\n",
               copied->segments, copied->snapshots, copied->bytes, copied->last);
  } else {
    fmt::print("{} to {}: {} and {}, up to entry {}; the copy was verified\n", what, options.target,
               counted(copied->segments, "segment"), counted(copied->snapshots, "snapshot"), copied->last);
  }
  return 0;
}

}  // namespace

int log_backup(const LogOptions& options) { return copy(options, "backed up"); }
int log_restore(const LogOptions& options) { return copy(options, "restored"); }

void add_log_commands(CommandLine& line) {
  line.group("log", "Looks at, checks, and copies a data directory");
  // The closure that runs the command shares the options with the parser that fills them.
  const auto add = [&](const std::string& name, const char* description, int (*run)(const LogOptions&),
                       const char* directory = "Data directory") {
    auto options = std::make_shared<LogOptions>();
    Command command = line.command("log " + name, description);
    command.argument("directory", options->directory, directory);
    command.flag("--json", options->json, "Output for programs");
    command.run([options, run] { return run(*options); });
    return std::pair(command, options);
  };
  const std::string program = line.program();

  auto [verify, verified] = add("verify", "Checks every byte and replays every entry", log_verify);
  verify.flag("--full", verified->full,
              "Replay from the very first entry, if it is still there, not from the oldest snapshot");
  verify.footer(
      "Exit codes: 0 intact, 1 a torn tail that a start would drop, 2 damaged, 3 entries contradict\n"
      "each other, 4 a segment is missing, 5 written by a newer version, 64 a wrong command line,\n"
      "74 the directory cannot be read. The other log commands use the same.\n\n"
      "Example: " +
      program + " log verify data");

  auto [dump, dumped] = add("dump", "Prints the entries", log_dump);
  dump.number("--from LSN", dumped->from, "First entry to print");
  dump.number("--to LSN", dumped->to, "Last entry to print, 0 for all");
  dump.footer("Example: " + program + " log dump data --from 100 --to 120");

  auto [stat, surveyed] = add("stat", "Sizes and counts", log_stat);
  stat.footer("Example: " + program + " log stat data");

  auto [backup, backed_up] =
      add("backup", "Copies a directory, which may be in use, to a new one", log_backup);
  backup.argument("target", backed_up->target, "Where to; made if need be, holds no log yet");
  backup.footer("Example: " + program + " log backup data data-backup");

  auto [restore, restored] =
      add("restore", "Makes a data directory from a backup, after checking it", log_restore, "The backup");
  restore.argument("target", restored->target, "Where to; made if need be, holds no log yet");
  restore.footer("Example: " + program + " log restore data-backup data-new");
}

}  // namespace baton::cli
