#include "log/recovery.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace baton::log {
namespace {

// Bytes that are given up are kept aside: nobody was promised anything about them, but whoever
// investigates the crash may want them.
Status keep_torn_bytes(Disk& disk, const Survey& survey, std::uint32_t epoch) {
  const PreviousLink& tail = survey.end.tail;
  auto segment = disk.open(segment_path(tail.first));
  if (!segment) return std::unexpected(segment.error());
  Bytes bytes(survey.damage_end - tail.end);
  auto got = (*segment)->read(tail.end, bytes);
  if (!got) return std::unexpected(got.error());
  bytes.resize(*got);

  if (auto made = disk.make_directory("torn"); !made) return made;
  const std::string path = fmt::format("torn/{:016x}-{:x}.bin", tail.last + 1, epoch);
  if (auto removed = disk.remove(path); !removed && removed.error().code != Errc::not_found) return removed;
  auto file = disk.create(path, bytes.size());
  if (!file) return std::unexpected(file.error());
  Status done = (*file)->write(0, bytes);
  if (done) done = (*file)->sync();
  if (done) done = disk.sync_directory("torn");
  if (done) done = disk.sync_directory("");
  return done;
}

// A process that was killed leaves writes in the kernel's cache, which recovery would read and a later power
// cut would take away. So whatever is there is brought to the medium before anyone builds on it.
Status settle(Disk& disk) {
  auto names = disk.list("wal");
  if (!names && names.error().code == Errc::not_found) return {};
  if (!names) return std::unexpected(names.error());
  std::optional<Lsn> newest;
  for (const std::string& name : *names) newest = std::max(newest, segment_first_lsn(name));
  if (!newest) return {};
  auto file = disk.open(segment_path(*newest));
  if (!file) return std::unexpected(file.error());
  if (auto synced = (*file)->sync(); !synced) return synced;
  return disk.sync_directory("wal");
}

Status prepare_directories(Disk& disk) {
  if (auto made = disk.make_directory("wal"); !made) return made;
  if (auto removed = disk.remove(kSuccessorPath); !removed && removed.error().code != Errc::not_found)
    return removed;
  return disk.sync_directory("");
}

}  // namespace

Result<OpenedLog> open_log(Disk& disk, const OpenOptions& options, const Visitor& visitor) {
  if (!is_reasonable(options.log)) {
    return failure(Errc::invalid_request,
                   "the segment size has to be a multiple of 4096, at most 2 GiB, and has "
                   "to hold the largest batch");
  }
  if (auto settled = settle(disk); !settled) return std::unexpected(settled.error());
  auto survey = survey_log(disk, {.needed_from = options.needed_from, .visitor = visitor});
  if (!survey) return std::unexpected(survey.error());
  const Problem& problem = survey->report.problem;
  const bool torn = problem.kind == ProblemKind::torn_tail;
  if (problem.kind == ProblemKind::unsupported_version)
    return failure(Errc::unsupported_version, problem.message);
  if (problem.kind != ProblemKind::none && !torn) {
    return failure(Errc::corrupt, problem.message + " `baton log verify` shows how far the log can be read.");
  }

  OpenedLog opened;
  opened.created = !survey->control;
  opened.was_clean = survey->report.clean;
  opened.end = survey->end;
  const std::uint32_t epoch = std::max(survey->end.epoch + 1, options.epoch_at_least);
  const Uuid uuid = survey->control ? survey->control->uuid : options.uuid_if_new;

  if (auto done = prepare_directories(disk); !done) return std::unexpected(done.error());
  if (torn) {
    if (auto kept = keep_torn_bytes(disk, *survey, epoch); !kept) return std::unexpected(kept.error());
    opened.dropped = problem;
  }
  // Before the first record is written: from now on the log may end torn.
  const Control control{.uuid = uuid, .durable = survey->end.tail.last, .clean = false};
  if (auto done = replace_control(disk, control); !done) return std::unexpected(done.error());
  opened.writer =
      std::make_unique<LogWriter>(disk, options.log, uuid, survey->end, epoch, std::move(survey->segments));
  return opened;
}

}  // namespace baton::log
