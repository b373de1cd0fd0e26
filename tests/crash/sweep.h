// Damages a small data directory in every way that fits into a loop. Opening it is refused, or the state is
// what it was, and every payload either has its bytes or is refused when it is read. A flipped bit that does
// no harm today, in a segment that is kept for other bytes, is found by verify.
#pragma once

#include <functional>
#include <string>

#include "tests/crash/small_directory.h"

namespace baton::crash {

struct Sweep {
  std::uint64_t cases = 0;
  std::uint64_t refused = 0;      // to open
  std::uint64_t unharmed = 0;     // opened; state and all bytes as before
  std::uint64_t found_later = 0;  // opened; a payload or result that was kept from before the snapshot is
                                  // refused when it is read, and verify finds it
  std::uint64_t dropped = 0;      // opened without the last batch, after a kill
  std::string violation;          // the first
  std::string summary() const;
};

class Sweeper {
 public:
  // `thin_out`: of the bits and lengths that are all alike, only every so many-th is tried.
  Sweeper(Ending ending, unsigned thin_out);

  Sweep flipped_bits();
  Sweep zeroed_sectors();
  Sweep cut_files();
  Sweep shuffled_files();  // removed, swapped, duplicated, replaced by an older copy

  const SmallDirectory& directory() const { return *directory_; }

 private:
  using Damage = std::function<void(sim::SimDisk&)>;
  enum class Finds { may, must };  // whether verify has to find damage that harms nothing
  void judge(const std::string& what, const Damage& damage, Finds verify = Finds::may);
  void violate(const std::string& what);
  bool is_dull(const Bytes& content, std::size_t offset) const;

  const Ending ending_;
  const unsigned thin_out_;
  std::unique_ptr<SmallDirectory> directory_;
  Sweep sweep_;
};

}  // namespace baton::crash
