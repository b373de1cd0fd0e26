#include "engine/housekeeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/mutant.h"
#include "engine/admission.h"
#include "engine/recovery.h"
#include "engine/snapshot.h"
#include "log/replay.h"

namespace baton::engine {
namespace {

constexpr std::size_t kSnapshotsKept = 2;
constexpr core::Lsn kRecordsBetweenRests = 1024;

std::string owner_of(const core::MoveBlob& move) {
  if (!move.message) return "a blob of task " + core::to_text(move.task);
  return fmt::format("a blob of {} {}", move.message->is_letter ? "dead letter" : "message",
                     move.message->number);
}

}  // namespace

Housekeeper::Housekeeper(log::Disk& disk, log::Segments& segments, const log::Uuid& uuid,
                         core::Lsn last_snapshot, HousekeeperOptions options)
    : disk_(disk), segments_(segments), uuid_(uuid), last_snapshot_(last_snapshot), options_(options) {
  if (last_snapshot == 0) return;
  // An estimate of what is to come: without it a snapshot that grows too large is noticed a little later.
  newest_bytes_ = snapshot_bytes(disk_, last_snapshot).value_or(0);
  snapshot_to_come_ = newest_bytes_;
}

core::Lsn Housekeeper::newest_sealed() const {
  const auto segments = segments_.list();
  return segments.size() < 2 ? 0 : segments[segments.size() - 2].last;
}

std::uint64_t Housekeeper::sealed_since_snapshot() const {
  std::uint64_t sealed = 0;
  const auto segments = segments_.list();
  for (std::size_t i = 0; i + 1 < segments.size(); ++i) {
    if (segments[i].last > last_snapshot_) sealed += segments[i].bytes;
  }
  return sealed;
}

// A small one may come out of what is set aside: it is how room is made again.
Status Housekeeper::check_room(std::uint64_t needed, std::uint64_t in_all) const {
  const auto free = disk_.free_bytes();
  if (!free) return std::unexpected(free.error());
  const std::uint64_t segment = segments_.list().back().bytes;
  const bool is_small = in_all * 4 <= segment;
  const std::uint64_t set_aside = is_small ? segment : set_aside_for_completions(segment);
  if (*free >= needed + set_aside) return {};
  return failure(Errc::no_space,
                 fmt::format("it needs {} bytes or more besides {} that are set aside, and {} are free; free "
                             "some space on the disk of the data directory, for without snapshots the log "
                             "grows",
                             needed, set_aside, *free));
}

// While it is written, what is to come becomes less as what is free does.
Result<std::uint64_t> Housekeeper::write(const core::State& state, const std::function<Status()>& rest) {
  const std::uint64_t expected = snapshot_to_come_;
  std::uint64_t reached = 0;
  auto written = write_snapshot(disk_, uuid_, state, [&](std::uint64_t so_far, std::uint64_t next) {
    reached = so_far + next;
    snapshot_to_come_ = expected - std::min(expected, reached);
    if (auto rested = rest(); !rested) return rested;
    return check_room(
        next, reached);  // the state may have grown since the last one, or somebody else fills the disk
  });
  // After a failure it is known to be at least as large as it got.
  snapshot_to_come_ = written ? 0 : std::max(expected, reached);
  return written;
}

Result<SnapshotMade> Housekeeper::make_snapshot(const std::function<Status()>& rest) {
  const core::Lsn target = newest_sealed();
  if (target <= last_snapshot_) return SnapshotMade{};
  // Before the replay, which would be for nothing.
  if (auto room = check_room(snapshot_to_come_, snapshot_to_come_); !room)
    return std::unexpected(room.error());
  std::vector<PassedOver> unreadable;
  auto state = load_newest_snapshot(disk_, uuid_, unreadable);
  if (!state) return std::unexpected(state.error());
  const core::Lsn replay_to = mutant(Mutant::m18_snapshot_misses_the_last_record) ? target - 1 : target;
  const log::Visitor visitor = [&](const log::Record& record) -> Status {
    if (record.place.lsn % kRecordsBetweenRests == 0) {
      if (auto rested = rest(); !rested) return rested;
    }
    return apply_record(*state, record);
  };
  if (auto done = log::replay_sealed(disk_, segments_, state->last + 1, replay_to, visitor); !done) {
    return std::unexpected(done.error());
  }
  if (mutant(Mutant::m18_snapshot_misses_the_last_record)) state->last = target;
  if (state->last != target) return failure(Errc::corrupt, "the sealed segments end before their last entry");
  if (mutant(Mutant::m19_segment_removed_before_snapshot_is_durable)) {
    for (const auto& segment : segments_.list()) {
      if (segment.last <= target) (void)segments_.remove(segment.first);
    }
  }
  auto written = write(*state, rest);
  if (!written) return std::unexpected(written.error());
  newest_bytes_ = *written;
  last_snapshot_ = target;
  unreadable_.clear();
  for (const PassedOver& snapshot : unreadable) unreadable_.push_back(snapshot.lsn);
  find_living(*state);
  return SnapshotMade{target, state->digest};
}

void Housekeeper::find_living(const core::State& state) {
  living_.clear();
  for (const auto& segment : segments_.list()) {
    if (segment.last <= state.last) living_.emplace_back(segment, Living{});
  }
  for (core::Slot slot = state.ids.first_from(0); slot != 0;
       slot = state.ids.first_from(state.tasks[slot].lsn + 1)) {
    const core::Task& task = state.tasks[slot];
    note(task.payload,
         core::MoveBlob{.task = task.id(), .part = core::BlobPart::payload, .from = task.payload});
    for (core::Slot at = task.endings; at != 0; at = state.endings[at].next) {
      const core::Ending& ending = state.endings[at];
      note(ending.note,
           core::MoveBlob{
               .task = task.id(), .part = core::BlobPart::note, .lease = ending.lease, .from = ending.note});
    }
  }
  find_living(state.streams);
}

void Housekeeper::find_living(const core::streams::Streams& streams) {
  const auto note_both = [&](const core::streams::Message& message, std::uint64_t number, bool is_letter) {
    using core::MessagePart;
    for (const MessagePart part : {MessagePart::body, MessagePart::error}) {
      const core::BlobRef& blob = part == MessagePart::body ? message.body : message.error;
      note(blob, core::MoveBlob{.from = blob, .message = {{number, is_letter, part}}});
    }
  };
  for (core::Slot slot = streams.message_numbers.first_from(0); slot != 0;
       slot = streams.message_numbers.first_from(streams.messages[slot].number + 1)) {
    note_both(streams.messages[slot], streams.messages[slot].number, false);
  }
  // What is kept for people to look at stays where it is: it goes soon.
  for (core::Slot slot = streams.kept.by_age.head; slot != 0; slot = streams.kept.all[slot].next) {
    const core::streams::Message& message = streams.kept.all[slot].message;
    for (const core::BlobRef& blob : {message.body, message.error}) note(blob, std::nullopt);
  }
  for (const auto& [number, slot] : streams.dead_numbers)
    note_both(streams.dead.all[slot].message, number, true);
}

// Without a mover it is needed where it is.
void Housekeeper::note(const core::BlobRef& blob, std::optional<core::MoveBlob> mover) {
  if (blob.length == 0) return;
  const auto after =
      std::ranges::upper_bound(living_, blob.lsn, {}, [](const auto& it) { return it.first.first; });
  if (after == living_.begin()) return;
  auto& [segment, living] = *std::prev(after);
  if (blob.lsn > segment.last) return;
  // With the header and padding a copy would have, or a segment full of tiny payloads would look dead.
  living.bytes += log::stored_bytes(blob.length);
  if (living.bytes * 4 < segment.bytes) {
    if (mover) living.blobs.push_back(std::move(*mover));
  } else {
    living.blobs = {};  // the segment stays as it is, and a list of its blobs is of no use
  }
}

Status Housekeeper::remove_old_snapshots(std::vector<core::Lsn>& snapshots) {
  if (snapshots.size() <= kSnapshotsKept) return {};
  while (snapshots.size() > kSnapshotsKept) {
    if (auto removed = remove_snapshot(disk_, snapshots.front()); !removed) return removed;
    snapshots.erase(snapshots.begin());
  }
  // Before any segment goes: a power cut must not bring back a snapshot without the segments that follow it.
  return disk_.sync_directory("snap");
}

Result<core::Blob> Housekeeper::read(const core::BlobRef& blob) const {
  auto bytes = segments_.read(blob.lsn, blob.offset, blob.length);
  if (!bytes) return std::unexpected(bytes.error());
  core::Blob whole(std::move(*bytes));
  if (whole.hash() != blob.hash) return failure(Errc::corrupt, "it is damaged");
  return whole;
}

// A segment that has to stay, for whatever reason, keeps none of the others.
Result<CleanedUp> Housekeeper::clean_up() {
  auto snapshots = list_snapshots(disk_);
  if (!snapshots) return std::unexpected(snapshots.error());
  // One that cannot be read covers nothing, and must not push out one that can.
  for (const core::Lsn lsn : std::exchange(unreadable_, {})) {
    if (std::erase(*snapshots, lsn) == 0) continue;
    if (auto removed = remove_snapshot(disk_, lsn); !removed) return std::unexpected(removed.error());
  }
  const Status removed_old = remove_old_snapshots(*snapshots);
  // Only now is room for one more asked for: the new snapshot stands where the oldest one stood.
  snapshot_to_come_ = newest_bytes_;
  if (!removed_old) return std::unexpected(removed_old.error());
  CleanedUp cleaned;
  if (snapshots->size() < kSnapshotsKept) return cleaned;
  std::erase_if(living_, [&](const auto& one) { return one.first.last > snapshots->front(); });
  for (const auto& [segment, living] : living_) {
    if (living.bytes > 0) continue;
    if (auto removed = segments_.remove(segment.first); !removed) cleaned.removed = removed;
  }
  copy_forward(cleaned);
  return cleaned;
}

// A round begins where the one before had enough: there may be blobs that are refused where they would be
// copied to, in every round.
void Housekeeper::copy_forward(CleanedUp& cleaned) {
  const auto first_of = [](const auto& one) { return one.first.first; };
  std::ranges::rotate(living_, std::ranges::lower_bound(living_, std::exchange(copy_from_, 0), {}, first_of));
  core::Lsn begun_with = 0;
  std::uint64_t moved_bytes = 0;
  for (const auto& [segment, living] : living_) {
    if (living.bytes * 4 >= segment.bytes) continue;
    for (core::MoveBlob move : living.blobs) {
      if (moved_bytes >= options_.moved_bytes_max) {
        copy_from_ = segment.first == begun_with ? segment.first + 1 : segment.first;
        return;
      }
      auto blob = read(move.from);
      if (blob) {
        if (begun_with == 0) begun_with = segment.first;
        moved_bytes += move.from.length;
        move.blob = *std::move(blob);
        cleaned.moves.push_back(std::move(move));
      } else if (noted_.insert(move.from.lsn).second) {
        cleaned.notes.push_back(
            fmt::format("{} of the log stays, for {} in it cannot be copied: {}; run `baton log verify` and "
                        "restore from a backup",
                        log::segment_path(segment.first), owner_of(move), blob.error().message));
      }
    }
  }
}

}  // namespace baton::engine
