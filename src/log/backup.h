// Copies the bytes of a log, while it is being written, into another directory.
#pragma once

#include <cstdint>

#include "log/disk.h"
#include "log/log.h"

namespace baton::log {

struct CopiedLog {
  std::uint64_t segments = 0;
  std::uint64_t bytes = 0;
  Lsn last = 0;
};

// Copies every record up to `durable`, which has to be durable, and reads them critically on the way: a
// damaged log is Errc::corrupt and not copied. The copy is a log that was closed cleanly at `durable`.
// May run on another thread than the writer's, as long as no segment is removed meanwhile. `to` holds no
// log yet.
Result<CopiedLog> copy_log(Disk& from, Disk& to, Lsn durable);

}  // namespace baton::log
