// A disk that does everything a real one may do: lose, tear and reorder what was not synced, fail, lie,
// fill up, and be switched off.
//
//   write ----> cache ----sync----> medium        crash(): each pending sector and each pending name
//   (sectors are pending until sync)              survives or not, as the caller chooses; then cache = medium
//
// Deterministic: no clock and no dice of its own. A disk can be copied cheaply (blocks are shared until one
// side writes), so one run can be continued in many ways. Files opened on the original belong to it alone.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "log/disk.h"
#include "log/format.h"

namespace baton::sim {

// The caller's dice.
struct SplitMix64 {
  std::uint64_t state;
  std::uint64_t next();
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
};

enum class SyncFault {
  keeps_cache,  // reports an error; the new content stays in the cache, clean, and never reaches the medium
  drops_cache,  // reports an error; the cache goes back to the old content
  lies,         // reports success; nothing reached the medium yet
};

class SimDisk final : public log::Disk {
 public:
  SimDisk();
  SimDisk(const SimDisk& other);
  SimDisk& operator=(const SimDisk&) = delete;

  Result<std::unique_ptr<log::File>> create(const std::string& path, std::uint64_t size) override;
  Result<std::unique_ptr<log::File>> open(const std::string& path) override;
  Result<std::unique_ptr<log::File>> open_uncached(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status make_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<std::uint64_t> free_bytes() override;

  // Operations that change something are counted from 1. Faults name them by that number.
  std::uint64_t operations() const { return operations_; }
  std::uint64_t syncs() const { return syncs_; }
  std::function<void()> before_operation;  // not copied with the disk
  void power_off_after(std::uint64_t operation) { power_off_after_ = operation; }
  void fail_operation(std::uint64_t operation) { failing_operation_ = operation; }
  void fail_sync(std::uint64_t sync, SyncFault fault) { failing_sync_ = sync, sync_fault_ = fault; }
  void lie_about_syncs(bool lying) { lying_ = lying; }
  void set_capacity(std::uint64_t bytes) { capacity_ = bytes; }
  void take_no_more_files() { takes_files_ = false; }  // however many bytes are free
  void fail_reads_of(const std::string& path) { unreadable_.insert(path); }
  void heal_reads() { unreadable_.clear(); }
  // Every fault that was switched on is off again.
  void heal();

  // The power goes. `keep` is asked once for each pending change, in a fixed order. Clears the faults.
  void crash(const std::function<bool()>& keep);
  std::size_t pending() const;                                   // how often crash() would ask
  std::size_t pending_names() const { return changes_.size(); }  // it asks about these last
  std::uint64_t used_bytes() const;

  // For tests that damage or compare: what is on the medium and in the cache, changed at one blow.
  Bytes content(const std::string& path) const;
  void set_content(const std::string& path, ByteView bytes);
  void flip_bit(const std::string& path, std::uint64_t offset, unsigned bit);
  bool exists(const std::string& path) const { return names_.contains(path); }

  // Sectors with data on the medium that were written again. A log never does that.
  std::uint64_t rewritten_sectors() const { return rewritten_; }

 private:
  friend class SimFile;
  using Block = std::array<std::byte, log::kBlockBytes>;
  using BlockRef = std::shared_ptr<Block>;  // shared between copies of a disk; null is all zeros

  struct Inode {
    std::uint64_t size = 0;
    std::uint64_t size_on_medium = 0;
    std::vector<BlockRef> cache;
    std::vector<BlockRef> medium;
    std::vector<std::uint8_t> dirty;  // one bit per sector of the block
  };
  using InodeRef = std::shared_ptr<Inode>;        // shared between names and open files of one disk
  using Names = std::map<std::string, InodeRef>;  // a directory is a name without an inode

  struct NameChange {
    std::string directory;
    std::string removed;  // empty: nothing
    std::string added;
    InodeRef inode;
  };

  Status begin_operation(const std::string& what);
  Status change_name(NameChange change);
  static void apply(const NameChange& change, Names& names);
  Status sync_inode(Inode& inode, std::size_t first, std::size_t end);  // these blocks of it
  void write(Inode& inode, std::uint64_t offset, ByteView bytes);
  std::size_t read(const Inode& inode, bool uncached, std::uint64_t offset, std::span<std::byte> into) const;
  std::vector<InodeRef> inodes() const;

  Names names_;
  Names names_on_medium_;
  std::vector<NameChange> changes_;  // not yet on the medium, in order

  std::uint64_t operations_ = 0;
  std::uint64_t syncs_ = 0;
  std::uint64_t rewritten_ = 0;
  std::optional<std::uint64_t> power_off_after_;
  std::optional<std::uint64_t> failing_operation_;
  std::optional<std::uint64_t> failing_sync_;
  SyncFault sync_fault_ = SyncFault::keeps_cache;
  bool lying_ = false;
  std::optional<std::uint64_t> capacity_;
  bool takes_files_ = true;
  std::set<std::string> unreadable_;
};

}  // namespace baton::sim
