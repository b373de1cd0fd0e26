// A snapshot is the state after some entry, in a file of its own, so that a restart does not have to replay
// the log from its beginning. It is a cache of a replay: its digest is in the log, and two are kept.
//
//   snap/<lsn, 16 hex digits>.snap   [ header, 64 ][ length, crc, piece ] … [ 0, crc ]
#pragma once

#include <vector>

#include "core/state.h"
#include "log/disk.h"
#include "log/format.h"

namespace baton::engine {

// Appears under its name only when all of it is on the medium.
Status write_snapshot(log::Disk& disk, const log::Uuid& uuid, const core::State& state);
Result<core::State> read_snapshot(log::Disk& disk, const log::Uuid& uuid, core::Lsn lsn);
Result<std::vector<core::Lsn>> list_snapshots(log::Disk& disk);  // oldest first
Status remove_snapshot(log::Disk& disk, core::Lsn lsn);
std::string snapshot_path(core::Lsn lsn);

}  // namespace baton::engine
