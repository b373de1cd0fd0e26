// CONTROL: the one small file that says whose log this is and whether it was stopped cleanly.
//
// It is replaced whole (written aside, synced, renamed), at start and at a clean stop. So after a crash it
// lags behind the log, and `durable` is a lower bound: records up to it were acknowledged once.
#pragma once

#include <cstdint>
#include <optional>

#include "log/disk.h"
#include "log/format.h"

namespace baton::log {

struct Control {
  Uuid uuid;
  Lsn durable = 0;
  bool clean = false;  // the log ends exactly at `durable`, and not one bit of it may be missing
  friend bool operator==(const Control&, const Control&) = default;
};

Result<std::optional<Control>> read_control(Disk& disk);  // nothing if there is no such file
Status replace_control(Disk& disk, const Control& control);

}  // namespace baton::log
