#include "tests/sim/ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/event_codec.h"
#include "engine/snapshot.h"
#include "log/survey.h"
#include "tests/sim/violation.h"

namespace baton::sim {

void Ledger::add(const core::Event& event, const core::Stamp& stamp, std::uint64_t digest) {
  const std::size_t offset = bodies_.size();
  core::encode(event, bodies_);
  entries_.push_back({.stamp = stamp,
                      .type = static_cast<std::uint16_t>(core::type_of(event)),
                      .digest = digest,
                      .offset = offset,
                      .length = bodies_.size() - offset});
}

void Ledger::truncate(Lsn last) {
  if (last >= entries_.size()) return;
  bodies_.resize(entries_[last].offset);
  entries_.resize(last);
}

ByteView Ledger::body(Lsn lsn) const {
  const LedgerEntry& entry = entries_[lsn - 1];
  return ByteView(bodies_).subspan(entry.offset, entry.length);
}

core::Event Ledger::event(Lsn lsn) const {
  auto event = core::decode(entries_[lsn - 1].type, body(lsn));
  if (!event) throw Violation{"I3", fmt::format("entry {}: {}", lsn, event.error().message)};
  return std::move(*event);
}

void Ledger::compare_with_disk(log::Disk& disk) const {
  const auto names = disk.list("wal");
  Lsn first = 0;
  if (names) {
    for (const std::string& name : *names) {
      const auto found = log::segment_first_lsn(name);
      if (found && (first == 0 || *found < first)) first = *found;
    }
  }
  if (first == 0) return;
  const auto snapshots = engine::list_snapshots(disk);
  const Lsn from = first == 1 || !snapshots || snapshots->empty() ? 1 : snapshots->front() + 1;
  const log::Visitor visitor = [&](const log::Record& record) -> Status {
    const Lsn lsn = record.place.lsn;
    if (lsn > last()) throw Violation{"I3", fmt::format("record {} was never appended", lsn)};
    const LedgerEntry& entry = entries_[lsn - 1];
    if (record.type != entry.type || record.epoch != entry.stamp.epoch || record.time != entry.stamp.time ||
        !std::ranges::equal(record.body, body(lsn))) {
      throw Violation{"I3", fmt::format("record {} is not what was appended", lsn)};
    }
    return {};
  };
  (void)log::survey_log(disk, {.needed_from = from, .visitor = visitor});
}

core::State Ledger::replay() const {
  core::State state;
  for (Lsn lsn = 1; lsn <= last(); ++lsn) {
    core::apply(state, event(lsn), entries_[lsn - 1].stamp);
    if (state.digest != entries_[lsn - 1].digest) {
      throw Violation{"I5",
                      fmt::format("replayed from the first entry, the state differs after entry {}", lsn)};
    }
  }
  return state;
}

}  // namespace baton::sim
