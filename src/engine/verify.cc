#include "engine/verify.h"

#include <fmt/format.h>

#include <map>

#include "core/stream/streams.h"
#include "engine/recovery.h"
#include "engine/snapshot.h"
#include "log/segments.h"

namespace baton::engine {
namespace {

Finding finding_of(Errc code) {
  return code == Errc::unsupported_version ? Finding::unsupported_version : Finding::damaged;
}

bool is_about_content(Errc code) { return code == Errc::corrupt || code == Errc::unsupported_version; }

// The worst is reported, with the first message of its kind.
void note(VerifyReport& report, Finding finding, std::string message) {
  const bool worse = report.finding == Finding::intact || report.finding == Finding::torn_tail;
  if (finding == Finding::intact || !worse) return;
  report.finding = finding;
  report.message = std::move(message);
}

void check_blobs(VerifyReport& report, const core::State& state, log::Segments& segments) {
  const auto check = [&](const core::BlobRef& blob, const auto& whose) {
    if (blob.length == 0) return;
    ++report.blobs;
    report.blob_bytes += blob.length;
    const auto bytes = segments.read(blob.lsn, blob.offset, blob.length);
    if (bytes && content_hash(*bytes) == blob.hash) return;
    note(report, Finding::damaged,
         fmt::format(
             "the bytes of {} kept with entry {}, {} at offset {} of its segment, are {}; restore from "
             "a backup",
             whose(), blob.lsn, blob.length, blob.offset, bytes ? "damaged" : "missing"));
  };
  for (core::Slot slot = state.ids.first_from(0); slot != 0;
       slot = state.ids.first_from(state.tasks[slot].lsn + 1)) {
    const core::Task& task = state.tasks[slot];
    const auto whose = [&] { return "task " + core::to_text(task.id()); };
    check(task.payload, whose);
    for (core::Slot at = task.endings; at != 0; at = state.endings[at].next)
      check(state.endings[at].note, whose);
  }
  const auto check_message = [&](const core::streams::Message& message) {
    const auto whose = [&] { return "message " + stream::to_text(message.id.value); };
    check(message.body, whose);
    check(message.error, whose);
  };
  const core::streams::Streams& all = state.streams;
  for (core::Slot slot = all.message_numbers.first_from(0); slot != 0;
       slot = all.message_numbers.first_from(all.messages[slot].number + 1))
    check_message(all.messages[slot]);
  for (const auto* letters : {&all.dead, &all.kept}) {
    for (core::Slot slot = letters->by_age.head; slot != 0; slot = letters->all[slot].next)
      check_message(letters->all[slot].message);
  }
}

}  // namespace

Finding finding_of(log::ProblemKind kind) {
  switch (kind) {
    case log::ProblemKind::none: return Finding::intact;
    case log::ProblemKind::torn_tail: return Finding::torn_tail;
    case log::ProblemKind::corrupt: return Finding::damaged;
    case log::ProblemKind::missing_segment: return Finding::missing_segment;
    case log::ProblemKind::unsupported_version: return Finding::unsupported_version;
  }
  return Finding::damaged;
}

namespace {

// Replays the log over a state, and compares it with the snapshots on the way.
struct Replay {
  core::State state;
  std::optional<Error> contradiction;

  Result<log::Survey> run(log::Disk& disk, const std::map<core::Lsn, std::uint64_t>& digests) {
    const auto visitor = [&](const log::Record& record) -> Status {
      if (auto applied = apply_record(state, record); !applied) {
        contradiction = applied.error();
        return applied;
      }
      const auto recorded = digests.find(state.last);
      if (recorded == digests.end() || recorded->second == state.digest) return {};
      contradiction =
          Error{Errc::corrupt, fmt::format("{} is not what the entries up to it give; remove it only after "
                                           "a backup of the whole directory",
                                           snapshot_path(state.last))};
      return std::unexpected(*contradiction);
    };
    return log::survey_log(disk,
                           {.needed_from = state.last + 1, .older = log::Older::check, .visitor = visitor});
  }
};

struct SnapshotsRead {
  std::map<core::Lsn, std::uint64_t> digests;  // by lsn
  core::State oldest;
};

Result<SnapshotsRead> read_snapshots(log::Disk& disk, const log::Uuid& uuid, VerifyReport& report) {
  SnapshotsRead read;
  auto snapshots = list_snapshots(disk);
  if (!snapshots) return std::unexpected(snapshots.error());
  for (const core::Lsn lsn : *snapshots) {
    auto snapshot = read_snapshot(disk, uuid, lsn);
    if (!snapshot && !is_about_content(snapshot.error().code)) return std::unexpected(snapshot.error());
    if (!snapshot) {
      note(report, finding_of(snapshot.error().code), snapshot.error().message);
      continue;
    }
    ++report.snapshots;
    read.digests[lsn] = snapshot->digest;
    if (read.oldest.last == 0) read.oldest = std::move(*snapshot);
  }
  if (report.finding == Finding::damaged && report.snapshots > 0) {
    report.message +=
        ". A start uses the other snapshot, as far as the log is intact; start once so that a new one is "
        "made, and "
        "then make a backup";
  }
  return read;
}

}  // namespace

Result<VerifyReport> verify(log::Disk& disk, bool full) {
  VerifyReport report;
  auto control = log::read_control(disk);
  if (!control && !is_about_content(control.error().code)) return std::unexpected(control.error());
  if (!control) {
    note(report, finding_of(control.error().code), control.error().message);
    return report;
  }
  if (!*control && !log::has_segments(disk))
    return failure(Errc::not_found, "there is no baton log in this directory");

  SnapshotsRead snapshots;
  if (*control) {
    auto read = read_snapshots(disk, (*control)->uuid, report);
    if (!read) return std::unexpected(read.error());
    snapshots = std::move(*read);
  }
  Replay replay;
  if (!full) replay.state = std::move(snapshots.oldest);
  auto survey = replay.run(disk, snapshots.digests);
  const auto& problem = survey ? survey->report.problem : log::Problem{};
  if (full && problem.kind == log::ProblemKind::missing_segment && problem.last <= snapshots.oldest.last) {
    report.notes.push_back(fmt::format(
        "entries {} to {} were removed, for the snapshots cover them; a replay from the first entry is "
        "not possible any more, so it began with {}",
        problem.first, problem.last, snapshot_path(snapshots.oldest.last)));
    replay = {.state = std::move(snapshots.oldest)};
    survey = replay.run(disk, snapshots.digests);
  }
  if (replay.contradiction) {
    const bool unknown = replay.contradiction->code == Errc::unsupported_version;
    note(report, unknown ? Finding::unsupported_version : Finding::contradiction,
         replay.contradiction->message);
    return report;
  }
  if (!survey) return std::unexpected(survey.error());
  report.log = survey->report;
  note(report, finding_of(survey->report.problem.kind), survey->report.problem.message);
  report.tasks = replay.state.tasks.used();
  report.digest = replay.state.digest;
  log::Segments segments(disk, survey->segments);
  check_blobs(report, replay.state, segments);
  return report;
}

}  // namespace baton::engine
