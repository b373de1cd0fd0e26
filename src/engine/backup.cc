#include "engine/backup.h"

#include "engine/snapshot.h"
#include "engine/verify.h"
#include "log/backup.h"

namespace baton::engine {

Result<Copied> copy_directory(log::Disk& from, log::Disk& to) {
  auto source = verify(from, false);
  if (!source) return std::unexpected(source.error());
  if (source->finding != Finding::intact && source->finding != Finding::torn_tail) {
    return failure(Errc::corrupt, "the source is not fit to be copied: " + source->message);
  }
  auto copied_log = log::copy_log(from, to, source->log.last);
  if (!copied_log) return std::unexpected(copied_log.error());
  Copied copied{.segments = copied_log->segments, .bytes = copied_log->bytes, .last = copied_log->last};

  auto control = log::read_control(to);
  if (!control) return std::unexpected(control.error());
  auto snapshots = list_snapshots(from);
  if (!snapshots) return std::unexpected(snapshots.error());
  for (const core::Lsn lsn : *snapshots) {
    if (lsn > copied.last) continue;  // made while we were copying
    auto state = read_snapshot(from, (*control)->uuid, lsn);
    if (!state) return std::unexpected(state.error());
    if (auto written = write_snapshot(to, (*control)->uuid, *state); !written)
      return std::unexpected(written.error());
    ++copied.snapshots;
  }
  auto copy = verify(to, false);
  if (!copy) return std::unexpected(copy.error());
  if (copy->finding != Finding::intact)
    return failure(Errc::corrupt, "the copy is not intact: " + copy->message);
  return copied;
}

}  // namespace baton::engine
