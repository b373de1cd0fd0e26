// Every entry the coordinator ever recorded, as it was recorded, with the digest of the state after it. A
// crash may cut off its end, but never below what somebody was told.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "core/apply.h"
#include "core/event.h"
#include "core/state.h"
#include "log/disk.h"

namespace baton::sim {

using core::Lsn;

struct LedgerEntry {
  core::Stamp stamp;
  std::uint16_t type = 0;
  std::uint64_t digest = 0;  // of the state after it
  std::size_t offset = 0;    // of the body
  std::size_t length = 0;
};

class Ledger {
 public:
  void add(const core::Event& event, const core::Stamp& stamp, std::uint64_t digest);
  void truncate(Lsn last);

  Lsn last() const { return entries_.size(); }
  const LedgerEntry& operator[](Lsn lsn) const { return entries_[lsn - 1]; }
  ByteView body(Lsn lsn) const;
  core::Event event(Lsn lsn) const;  // borrows from the ledger
  std::uint64_t digest(Lsn lsn) const { return lsn == 0 ? 0 : entries_[lsn - 1].digest; }

  // I3, I1: every record on the disk is one that was appended, with the same bytes, time and epoch.
  void compare_with_disk(log::Disk& disk) const;
  // I5, I6: what the entries give when they are replayed from the first one.
  core::State replay() const;

 private:
  std::vector<LedgerEntry> entries_;  // by lsn - 1
  Bytes bodies_;
};

}  // namespace baton::sim
