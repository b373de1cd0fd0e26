// Checks a data directory as a whole: every byte, every entry against the state before it, every snapshot
// against the replay, every payload against its hash. Changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "log/survey.h"

namespace baton::engine {

// In the order of the exit codes of `baton log verify`.
enum class Finding : std::uint8_t {
  intact = 0,
  torn_tail = 1,  // of a batch nobody was told about; a start drops it
  damaged = 2,
  contradiction = 3,  // entries that cannot follow each other, or a digest that does not match
  missing_segment = 4,
  unsupported_version = 5,
};

Finding finding_of(log::ProblemKind kind);

struct VerifyReport {
  Finding finding = Finding::intact;
  std::string message;             // what is wrong and what to do
  std::vector<std::string> notes;  // what is not wrong but good to know
  log::LogReport log;
  std::uint64_t snapshots = 0;
  std::uint64_t tasks = 0;
  std::uint64_t blobs = 0;
  std::uint64_t blob_bytes = 0;
  std::uint64_t digest = 0;
};

// Entries are replayed from the oldest snapshot on; with `full` from the first one, unless entries were
// removed that a snapshot covers. Errc::not_found if there is no log. Else it fails only where the disk does.
Result<VerifyReport> verify(log::Disk& disk, bool full);

}  // namespace baton::engine
