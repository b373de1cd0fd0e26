#include "engine/turns.h"

#include <algorithm>
#include <utility>

#include "engine/admission.h"

namespace baton::engine {
namespace {

constexpr Duration kDiskCheckEvery = seconds(1);
constexpr Duration kDiskToldEvery = minutes(1);
constexpr Duration kPressEvery = minutes(10);
constexpr Duration kMarkWhenIdleFor = milliseconds(50);
constexpr Duration kWallCheckEvery = hours(1);
constexpr Duration kWallDistance = seconds(5);

}  // namespace

Duration Turns::wait() {
  const bool marked = around_.engine.state().last == marked_;
  const Duration most = marked ? kDiskCheckEvery : kMarkWhenIdleFor;
  const auto due = around_.engine.next_due();
  return due ? std::clamp(*due - around_.time.now(), Duration{}, most) : most;
}

void Turns::begin(bool quiet) {
  Engine& engine = around_.engine;
  const Duration idle_for = around_.time.now() - engine.state().time;
  const bool is_idle = quiet && idle_for >= kMarkWhenIdleFor;  // it may be quiet for a moment under load too
  if (is_idle && engine.state().last != marked_ && engine.mark()) marked_ = engine.state().last;
  // Read after waiting, so that no request is judged by a time from before a pause.
  engine.begin_turn(around_.time.now());
}

// The disk is looked at every second, whenever a segment was begun, and in every turn while the next one
// cannot be made: what is let in between two looks has to fit into what is set aside.
bool Turns::end() {
  const Instant now = around_.engine.now();
  const bool due = now - disk_checked_ >= kDiskCheckEvery;
  const log::Headroom headroom = around_.log.headroom();
  const bool segment_begun =
      headroom.left_in_segment > std::exchange(left_in_segment_, headroom.left_in_segment);
  if (!due && !segment_begun && headroom.can_rotate) return false;
  const auto free = around_.disk.free_bytes();
  if (!free) return false;  // nothing is known, so nothing changes
  disk_free_bytes_ = *free;
  const DiskRoom room{.free_bytes = *free,
                      .segment_bytes = around_.log_options.segment_bytes,
                      .batch_bytes_max = log::batch_extent_max(around_.log_options),
                      .left_in_segment = headroom.left_in_segment,
                      .successor_ready = headroom.can_rotate,
                      .snapshot_every = around_.housekeeper.snapshot_every(),
                      .snapshot_to_come = around_.housekeeper.snapshot_to_come()};
  disk_set_aside_bytes_ = set_aside(room);
  around_.engine.admit(admission_for(room));
  tell_of_disk();
  if (!due) return false;
  disk_checked_ = now;
  look_at_wall_clock();
  if (!headroom.can_rotate) around_.log.prepare_rotation();
  const bool presses = presses_for_snapshot();
  return presses || around_.housekeeper.is_due();
}

// A segment whose last task is forgotten goes once two snapshots have that behind them. On a disk that is
// nearly full they do not wait for so much log, for it hardly grows while submissions are refused; and not
// for more than there is room for, however fast it grows by leases and completions.
bool Turns::presses_for_snapshot() {
  Engine& engine = around_.engine;
  const std::uint64_t living = engine.state().tasks.used() + engine.state().streams.messages.used();
  if (engine.admission() == Admission::open) {
    presses_ = false;
    living_ = living, pressed_at_ = engine.now();
    return false;
  }
  living_ = std::max(living_, living);
  const bool much_is_gone = living * 4 < living_ * 3;
  if (much_is_gone || engine.now() - pressed_at_ >= kPressEvery) {
    living_ = living, pressed_at_ = engine.now();
    presses_ = true;
    segments_to_end_ = 2;
  }
  const Housekeeper& housekeeper = around_.housekeeper;
  const std::uint64_t due_after =
      log_until_snapshot(housekeeper.snapshot_every(), around_.log_options.segment_bytes);
  if (housekeeper.sealed_since_snapshot() >= due_after) return true;
  if (!presses_) return false;
  if (housekeeper.has_news()) return true;
  presses_ = segments_to_end_ > 0;
  // Each takes the place of another one, until that is empty and goes.
  const bool has_room = disk_free_bytes_ >= 2 * around_.log_options.segment_bytes;
  if (presses_ && has_room && around_.log.end_segment() && engine.mark()) {
    marked_ = engine.state().last;
    --segments_to_end_;
  }
  return false;
}

// Once for each turn to the worse, and once when all is well again. A disk that wavers is not told of more
// than once a minute.
void Turns::tell_of_disk() {
  const Instant now = around_.engine.now();
  const Admission admission = around_.engine.admission();
  if (admission == disk_told_ || (admission < disk_told_ && now - disk_told_at_ < kDiskToldEvery)) return;
  disk_told_ = admission;
  disk_told_at_ = now;
  const std::string free = std::to_string(disk_free_bytes_) + " bytes are free";
  switch (admission) {
    case Admission::open: return around_.on_note("the disk has room again: " + free);
    case Admission::no_submissions:
      return around_.on_note(
          "the disk is nearly full: " + free +
          ", which are kept for completions and the next snapshot. Submissions are refused "
          "until there is more: free some space");
    case Admission::closed:
      return around_.on_note(
          "the disk is full: " + free +
          ". Everything that may need an entry is refused until there is more: free some space");
  }
}

// T does not follow a wall clock that was set; an operator should know, since the next start may.
void Turns::look_at_wall_clock() {
  const Instant now = around_.engine.now();
  if (now - wall_checked_ < kWallCheckEvery) return;
  const Duration ahead = around_.time.ahead_of_wall();
  if (ahead < kWallDistance && Duration{} - ahead < kWallDistance) return;
  wall_checked_ = now;
  around_.on_note(
      "coordinator time is " + std::to_string(ahead.ms) +
      " ms ahead of the wall clock, which was set; leases are not affected before the next start");
}

}  // namespace baton::engine
