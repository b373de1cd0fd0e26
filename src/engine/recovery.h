// From what is on the disk to a state: the newest snapshot that verifies, then every entry behind it.
#pragma once

#include "core/state.h"
#include "log/recovery.h"

namespace baton::engine {

struct RecoverOptions {
  log::Options log;
  log::Uuid uuid_if_new;
  core::Epoch epoch_at_least = 1;
};

struct Recovered {
  core::State state;
  log::OpenedLog log;
  core::Lsn snapshot = 0;      // it started from, 0: from the beginning
  std::uint64_t replayed = 0;  // entries
  std::vector<std::string>
      notes;  // what an operator should know: a torn tail, a snapshot that was passed over
};

// Refuses, and changes nothing, where acknowledged entries are damaged or missing.
Result<Recovered> recover(log::Disk& disk, const RecoverOptions& options);

// For `epoch_at_least`: after a backup was restored, more than any the lost log gave out.
core::Epoch epoch_by_clock(Instant wall);

// Applies one record as it was read; corrupt if it contradicts the state.
Status apply_record(core::State& state, const log::Record& record);

struct PassedOver {
  core::Lsn lsn = 0;  // of a snapshot that does not verify
  std::string why;
};
// The newest snapshot that verifies; an empty state if there is none. Newer ones are told in `passed_over`.
Result<core::State> load_newest_snapshot(log::Disk& disk, const log::Uuid& uuid,
                                         std::vector<PassedOver>& passed_over);

}  // namespace baton::engine
