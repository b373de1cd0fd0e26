// Where a server is put so that things can be done to it from below: its disk and its clock.
#pragma once

#include <memory>
#include <string>

#include "tests/chaos/clock_shim.h"
#include "tests/crash/child.h"
#include "tests/served.h"
#include "tests/temporary_directory.h"

namespace baton::chaos {

enum class Setting : std::uint8_t {
  plain,       // a kill is a kill
  power,       // a kill is a power cut
  clock,       // the wall clock jumps
  small_disk,  // the disk fills up
};
const char* name_of(Setting setting);

class Stage {
 public:
  Stage(Setting setting, std::uint64_t seed);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // False where this machine does not allow it: nobody but root may mount a disk.
  bool is_ready() const { return ready_; }
  Surroundings surroundings() const;
  std::string data() const { return place() + "/data"; }

  void move_clock(std::int64_t shift_ms) { clock_->shift_ms = shift_ms; }
  std::uint64_t clock_readings() const { return clock_->readings; }
  void fill_disk();
  void make_room();
  std::uint64_t cut_in_flush() const;  // power cuts that hit a flush, so far
  void power_was_cut();                // the next server begins to count from here

 private:
  std::string place() const { return directory_.path() + (setting_ == Setting::small_disk ? "/disk" : ""); }
  bool mount_disk();

  const Setting setting_;
  const TemporaryDirectory directory_;
  bool ready_ = true;
  std::unique_ptr<crash::Shim> shim_;
  ClockPage* clock_ = nullptr;
  std::uint64_t cut_in_flush_ = 0;
};

}  // namespace baton::chaos
