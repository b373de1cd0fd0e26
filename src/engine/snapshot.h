// A snapshot is the state after some entry, in a file of its own, so that a restart does not have to replay
// the log from its beginning. It is a cache of a replay: its digest is in the log, and two are kept.
//
//   snap/<lsn, 16 hex digits>.snap   [ header, 64 ][ length, crc, piece ] … [ 0, crc ]
#pragma once

#include <functional>
#include <vector>

#include "core/state.h"
#include "log/disk.h"
#include "log/format.h"

namespace baton::engine {

// Asked before each piece: so many bytes were written, so many would follow. An error ends the writing, and
// nothing is left.
using MayGoOn = std::function<Status(std::uint64_t written, std::uint64_t next)>;

// Appears under its name only when all of it is on the medium. Gives the length of the file.
Result<std::uint64_t> write_snapshot(log::Disk& disk, const log::Uuid& uuid, const core::State& state,
                                     const MayGoOn& may_go_on = {});
// Length of a snapshot's file.
Result<std::uint64_t> snapshot_bytes(log::Disk& disk, core::Lsn lsn);
Result<core::State> read_snapshot(log::Disk& disk, const log::Uuid& uuid, core::Lsn lsn);
Result<std::vector<core::Lsn>> list_snapshots(log::Disk& disk);  // oldest first
Status remove_snapshot(log::Disk& disk, core::Lsn lsn);
std::string snapshot_path(core::Lsn lsn);

}  // namespace baton::engine
