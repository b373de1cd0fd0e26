#include "engine/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/check.h"
#include "core/apply.h"
#include "core/event_codec.h"
#include "engine/snapshot.h"

namespace baton::engine {

Status apply_record(core::State& state, const log::Record& record) {
  auto event = core::decode(record.type, record.body);
  if (!event) {
    return failure(event.error().code, fmt::format("entry {}: {}", record.place.lsn, event.error().message));
  }
  try {
    const ThrowOnCheck rather_than_stop;
    core::apply(state, *event,
                {.lsn = record.place.lsn,
                 .epoch = record.epoch,
                 .time = record.time,
                 .body_end = record.place.offset + static_cast<std::uint32_t>(record.body.size())});
  } catch (const CheckFailure& wrong) {
    return failure(
        Errc::corrupt,
        fmt::format("entry {} ({}) contradicts the state before it: {} ({}:{}); restore from a backup",
                    record.place.lsn, core::name_of(core::type_of(*event)), wrong.condition, wrong.file,
                    wrong.line));
  }
  return {};
}

Result<core::State> load_newest_snapshot(log::Disk& disk, const log::Uuid& uuid,
                                         std::vector<PassedOver>& passed_over) {
  auto snapshots = list_snapshots(disk);
  if (!snapshots) return std::unexpected(snapshots.error());
  for (const core::Lsn lsn : *snapshots | std::views::reverse) {
    auto state = read_snapshot(disk, uuid, lsn);
    if (state) return state;
    if (state.error().code != Errc::corrupt) return state;
    passed_over.push_back({lsn, state.error().message});
  }
  return core::State{};
}

Result<Recovered> recover(log::Disk& disk, const RecoverOptions& options) {
  auto control = log::read_control(disk);
  if (!control) return std::unexpected(control.error());
  Recovered recovered;
  std::vector<PassedOver> passed_over;
  if (*control) {
    auto state = load_newest_snapshot(disk, (*control)->uuid, passed_over);
    if (!state) return std::unexpected(state.error());
    for (const PassedOver& snapshot : passed_over)
      recovered.notes.push_back(snapshot.why + "; this snapshot is passed over");
    recovered.state = std::move(*state);
    recovered.snapshot = recovered.state.last;
  }
  const log::Visitor visitor = [&](const log::Record& record) {
    ++recovered.replayed;
    return apply_record(recovered.state, record);
  };
  auto opened = log::open_log(disk,
                              {.log = options.log,
                               .uuid_if_new = options.uuid_if_new,
                               .epoch_at_least = std::max(options.epoch_at_least, recovered.state.epoch + 1),
                               .needed_from = recovered.snapshot + 1},
                              visitor);
  if (!opened) {
    // Without a snapshot the log has to begin with the first entry. Where it does not, that is what is wrong.
    if (recovered.snapshot != 0 || passed_over.empty()) return std::unexpected(opened.error());
    std::string all;
    for (const PassedOver& snapshot : passed_over) all += (all.empty() ? "" : ", ") + snapshot.why;
    return failure(opened.error().code,
                   fmt::format("no snapshot can be read ({}), and the log alone is not enough: {}", all,
                               opened.error().message));
  }
  if (opened->dropped) recovered.notes.push_back(opened->dropped->message);
  recovered.log = std::move(*opened);
  if (recovered.log.writer->last() != recovered.state.last) {
    return failure(Errc::corrupt,
                   fmt::format("the log ends at entry {} but the snapshot {} is newer; restore from a backup",
                               recovered.log.writer->last(), snapshot_path(recovered.snapshot)));
  }
  return recovered;
}

core::Epoch epoch_by_clock(Instant wall) {
  constexpr std::int64_t k2020 = 1'577'836'800;
  return static_cast<core::Epoch>(std::clamp<std::int64_t>(wall.ms / 1000 - k2020, 1, UINT32_MAX));
}

}  // namespace baton::engine
