// Keeps recovery short and the disk small: makes snapshots, removes what nobody needs any more.
//
// A snapshot is an independent replay of sealed segments, so it never holds up the loop, and its digest
// checks the loop's. A segment goes only when two snapshots cover it and nothing live points into it; one
// that is nearly dead has its last living blobs copied to the head of the log first.
//
// Thread: runs on one thread at a time, beside the loop; what is const may be asked by any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/request.h"
#include "core/state.h"
#include "log/disk.h"
#include "log/format.h"
#include "log/segments.h"

namespace baton::engine {

struct HousekeeperOptions {
  std::uint64_t snapshot_every_bytes = std::uint64_t{256} << 20;  // of sealed log since the last one
  std::uint64_t moved_bytes_max = std::uint64_t{64} << 20;        // copied forward after one snapshot
};

struct SnapshotMade {
  core::Lsn lsn = 0;
  std::uint64_t digest = 0;
};

struct CleanedUp {
  std::vector<core::MoveBlob> moves;  // to be asked of the engine: blobs that keep nearly dead segments alive
  std::vector<std::string> notes;     // about segments that have to stay
  Status removed;                     // what was to be; the others are, if one cannot be
};

class Housekeeper {
 public:
  Housekeeper(log::Disk& disk, log::Segments& segments, const log::Uuid& uuid, core::Lsn last_snapshot,
              HousekeeperOptions options);

  // Whether enough log has been sealed since the last snapshot.
  bool is_due() const { return sealed_since_snapshot() >= options_.snapshot_every_bytes; }
  std::uint64_t sealed_since_snapshot() const;
  // Whether any has.
  bool has_news() const { return newest_sealed() > last_snapshot_; }
  std::uint64_t snapshot_every() const { return options_.snapshot_every_bytes; }
  // Whether the disk has room for the next one, as far as the last one tells.
  bool has_room() const { return check_room(snapshot_to_come_, snapshot_to_come_).has_value(); }
  // Bytes that the next snapshot will need on the disk, as far as the last one tells.
  std::uint64_t snapshot_to_come() const { return snapshot_to_come_; }
  // Whether the log grows faster than snapshots are made.
  bool is_behind() const { return sealed_since_snapshot() >= 3 * options_.snapshot_every_bytes; }
  // Replays to the end of the newest sealed segment and writes the state there. Nothing to do: lsn 0.
  // Errc::no_space rather than to use what is set aside for completions, unless it is small. `rest` is called
  // now and then.
  Result<SnapshotMade> make_snapshot(const std::function<Status()>& rest = [] { return Status{}; });
  // To be called once the snapshot's SnapshotTaken is durable.
  Result<CleanedUp> clean_up();

 private:
  struct Living {  // what a segment holds that is still needed
    std::uint64_t bytes = 0;
    std::vector<core::MoveBlob> blobs;  // without their bytes
  };
  core::Lsn newest_sealed() const;
  Status check_room(std::uint64_t needed, std::uint64_t in_all) const;
  Result<std::uint64_t> write(const core::State& state, const std::function<Status()>& rest);
  Status remove_old_snapshots(std::vector<core::Lsn>& snapshots);
  void find_living(const core::State& state);
  void find_living(const core::streams::Streams& streams);
  void note(const core::BlobRef& blob, std::optional<core::MoveBlob> mover);
  void copy_forward(CleanedUp& cleaned);
  Result<core::Blob> read(const core::BlobRef& blob) const;

  log::Disk& disk_;
  log::Segments& segments_;
  const log::Uuid uuid_;
  std::atomic<core::Lsn> last_snapshot_;
  const HousekeeperOptions options_;
  std::uint64_t newest_bytes_ = 0;  // length of the newest snapshot's file
  std::atomic<std::uint64_t> snapshot_to_come_ = 0;
  std::vector<std::pair<log::SegmentInfo, Living>> living_;  // as of the last snapshot made
  std::vector<core::Lsn> unreadable_;                        // snapshots, when that one was made
  std::set<core::Lsn> noted_;                                // blobs that could not be read
  core::Lsn copy_from_ = 0;                                  // from the segment on that begins there
};

}  // namespace baton::engine
