// What belongs to every turn of a coordinator besides the requests: time, what is due, room on the disk.
//
//   wait() ... begin() -> Engine::handle, handle, … -> flush, answers leave -> end()
//
// It knows no thread and waits for nothing, so production and the simulation take the same turns.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "engine/coordinator_time.h"
#include "engine/engine.h"
#include "engine/housekeeper.h"
#include "log/disk.h"
#include "log/format.h"

namespace baton::engine {

// All of it outlives the turns.
struct Surroundings {
  Engine& engine;
  log::Log& log;
  log::Disk& disk;
  CoordinatorTime& time;
  const Housekeeper& housekeeper;
  log::Options log_options;
  std::function<void(const std::string&)> on_note;  // what an operator should know
};

class Turns {
 public:
  explicit Turns(Surroundings around) : around_(std::move(around)) {}

  // For how long nothing has to be done, if nothing comes in and no flush ends.
  Duration wait();
  // `quiet`: that time went by, and nothing came.
  void begin(bool quiet);
  // Looks at the disk, now that everything decided is on its way there. True if a snapshot should be made.
  bool end();
  std::uint64_t disk_free_bytes() const { return disk_free_bytes_; }  // when the disk was last looked at
  std::uint64_t disk_set_aside_bytes() const { return disk_set_aside_bytes_; }  // of it, then

 private:
  void look_at_wall_clock();
  void tell_of_disk();
  bool presses_for_snapshot();

  Surroundings around_;
  Instant disk_checked_;               // not yet
  std::uint64_t disk_free_bytes_ = 0;  // then
  std::uint64_t disk_set_aside_bytes_ = 0;
  Admission disk_told_ = Admission::open;
  Instant disk_told_at_;
  std::uint64_t left_in_segment_ = 0;  // when the disk was last looked at
  std::uint64_t living_ = 0;           // tasks and messages at most, since a snapshot was last pressed for
  Instant pressed_at_;
  int segments_to_end_ = 0;  // before enough is behind snapshots
  bool presses_ = false;
  Instant wall_checked_;
  core::Lsn marked_ = 0;  // no client's entry has come since this one
};

}  // namespace baton::engine
