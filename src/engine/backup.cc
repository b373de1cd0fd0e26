#include "engine/backup.h"

#include "engine/snapshot.h"
#include "engine/verify.h"
#include "log/backup.h"

namespace baton::engine {

namespace {

Result<Copied> copy_checked(log::Disk& from, log::Disk& to, core::Lsn last) {
  Copied copied;
  auto control = log::read_control(from);
  if (!control) return std::unexpected(control.error());
  auto snapshots = list_snapshots(from);
  if (!snapshots) return std::unexpected(snapshots.error());
  for (const core::Lsn lsn : *snapshots) {
    if (lsn > last) continue;  // made while we were looking
    auto state = read_snapshot(from, (*control)->uuid, lsn);
    if (!state) return std::unexpected(state.error());
    if (auto written = write_snapshot(to, (*control)->uuid, *state); !written)
      return std::unexpected(written.error());
    ++copied.snapshots;
  }
  auto log = log::copy_log(from, to, last);
  if (!log) return std::unexpected(log.error());
  copied.segments = log->segments;
  copied.bytes = log->bytes;
  copied.last = log->last;

  auto copy = verify(to, false);
  if (!copy) return std::unexpected(copy.error());
  if (copy->finding != Finding::intact)
    return failure(Errc::corrupt, "the copy is not intact: " + copy->message);
  return copied;
}

// A failed backup must not be taken for one. The error at hand says more than one about the removal.
void take_back(log::Disk& to) {
  (void)to.remove("CONTROL");
  (void)to.sync_directory("");
  (void)to.remove("CONTROL.tmp");
  for (const std::string folder : {"wal", "snap"}) {
    const auto names = to.list(folder);
    if (!names) continue;
    for (const std::string& name : *names) (void)to.remove(folder + "/" + name);
  }
}

}  // namespace

Status check_target(log::Disk& to) {
  const auto control = log::read_control(to);
  const auto segments = to.list("wal");
  const auto snapshots = to.list("snap");
  const bool bare =
      control && !*control && (!segments || segments->empty()) && (!snapshots || snapshots->empty());
  if (bare) return {};
  return failure(
      Errc::conflict,
      "there is a log already, or part of one; choose a directory that is empty or does not exist");
}

Result<Copied> copy_directory(log::Disk& from, log::Disk& to) {
  if (auto fit = check_target(to); !fit) return std::unexpected(fit.error());
  auto source = verify(from, false);
  if (!source) return std::unexpected(source.error());
  if (source->finding != Finding::intact && source->finding != Finding::torn_tail) {
    return failure(Errc::corrupt, "the source is not fit to be copied: " + source->message);
  }
  auto copied = copy_checked(from, to, source->log.last);
  if (!copied) take_back(to);
  return copied;
}

}  // namespace baton::engine
