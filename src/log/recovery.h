// Opens a log: reads what is there, hands every record to the caller, and gives a writer that goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "log/survey.h"
#include "log/writer.h"

namespace baton::log {

struct OpenOptions {
  Options log;
  Uuid uuid_if_new;                  // names the cluster if there is no log yet; the log rolls no dice
  std::uint32_t epoch_at_least = 1;  // the new epoch is larger than any in the log, and not below this
  Lsn needed_from = 1;               // the record after the snapshot; replay starts here
};

struct OpenedLog {
  std::unique_ptr<LogWriter> writer;
  bool created = false;            // there was no log
  bool was_clean = false;          // the last process closed it
  LogEnd end;                      // of what was read: last lsn, time and epoch
  std::optional<Problem> dropped;  // the torn tail that was moved to torn/, for the operator to know
};

// Errc::corrupt or unsupported_version where the log cannot be trusted; then nothing on disk was changed.
Result<OpenedLog> open_log(Disk& disk, const OpenOptions& options, const Visitor& visitor);

}  // namespace baton::log
