#include "tests/sim/sim_disk.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/check.h"

namespace baton::sim {

using log::kBlockBytes;
using log::kSectorBytes;

namespace {

constexpr std::size_t kSectorsPerBlock = kBlockBytes / kSectorBytes;

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::unexpected<Error> missing(const std::string& path) {
  return failure(Errc::not_found, path + " does not exist");
}

}  // namespace

std::uint64_t SplitMix64::next() {
  std::uint64_t mixed = (state += 0x9e3779b97f4a7c15u);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

class SimFile final : public log::File {
 public:
  SimFile(SimDisk& disk, std::string path, SimDisk::InodeRef inode, bool uncached)
      : disk_(disk), path_(std::move(path)), inode_(std::move(inode)), uncached_(uncached) {}

  Status write(std::uint64_t offset, ByteView bytes) override {
    if (auto begun = disk_.begin_operation("write " + path_); !begun) return begun;
    disk_.write(*inode_, offset, bytes);
    return {};
  }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) override {
    if (disk_.unreadable_.contains(path_)) return failure(Errc::io_failed, "cannot read " + path_);
    return disk_.read(*inode_, uncached_, offset, into);
  }
  bool read_at_once(std::uint64_t offset, std::span<std::byte> into) override {
    return read(offset, into).value_or(0) == into.size();
  }
  Result<std::uint64_t> size() override { return inode_->size; }
  Status sync() override {
    if (auto begun = disk_.begin_operation("sync " + path_); !begun) return begun;
    return disk_.sync_inode(*inode_, 0, inode_->cache.size());
  }
  Status write_durably(std::uint64_t offset, ByteView bytes) override {
    if (auto written = write(offset, bytes); !written) return written;
    if (auto begun = disk_.begin_operation("sync " + path_); !begun) return begun;
    return disk_.sync_inode(*inode_, offset / kBlockBytes, (offset + bytes.size() - 1) / kBlockBytes + 1);
  }

 private:
  SimDisk& disk_;
  const std::string path_;
  const SimDisk::InodeRef inode_;
  const bool uncached_;
};

SimDisk::SimDisk() { names_on_medium_[""] = names_[""] = nullptr; }

SimDisk::SimDisk(const SimDisk& other)
    : names_(other.names_),
      names_on_medium_(other.names_on_medium_),
      changes_(other.changes_),
      operations_(other.operations_),
      syncs_(other.syncs_),
      rewritten_(other.rewritten_),
      power_off_after_(other.power_off_after_),
      failing_operation_(other.failing_operation_),
      failing_sync_(other.failing_sync_),
      sync_fault_(other.sync_fault_),
      lying_(other.lying_),
      capacity_(other.capacity_),
      takes_files_(other.takes_files_),
      unreadable_(other.unreadable_) {
  std::unordered_map<const Inode*, InodeRef> copies;
  const auto own = [&](InodeRef& inode) {
    if (!inode) return;
    InodeRef& copy = copies[inode.get()];
    if (!copy) copy = std::make_shared<Inode>(*inode);  // the blocks stay shared until written
    inode = copy;
  };
  for (auto& [name, inode] : names_) own(inode);
  for (auto& [name, inode] : names_on_medium_) own(inode);
  for (NameChange& change : changes_) own(change.inode);
}

Status SimDisk::begin_operation(const std::string& what) {
  if (before_operation) before_operation();
  if (power_off_after_ && operations_ >= *power_off_after_)
    return failure(Errc::io_failed, what + ": no power");
  ++operations_;
  if (failing_operation_ == operations_) return failure(Errc::io_failed, what + ": injected failure");
  return {};
}

void SimDisk::apply(const NameChange& change, Names& names) {
  if (const auto old = names.find(change.removed); !change.removed.empty() && old != names.end()) {
    if (old->second == change.inode) names.erase(old);
  }
  if (!change.added.empty()) names[change.added] = change.inode;
}

Status SimDisk::change_name(NameChange change) {
  apply(change, names_);
  changes_.push_back(std::move(change));
  return {};
}

Result<std::unique_ptr<log::File>> SimDisk::create(const std::string& path, std::uint64_t size) {
  if (auto begun = begin_operation("create " + path); !begun) return std::unexpected(begun.error());
  if (!names_.contains(directory_of(path))) return missing(directory_of(path));
  if (names_.contains(path)) return failure(Errc::io_failed, path + " exists");
  if (!takes_files_ || (capacity_ && used_bytes() + size > *capacity_))
    return failure(Errc::no_space, "the disk is full");
  auto inode = std::make_shared<Inode>();
  inode->size = size;
  const std::size_t blocks = (size + kBlockBytes - 1) / kBlockBytes;
  inode->cache.resize(blocks);
  inode->medium.resize(blocks);
  inode->dirty.resize(blocks);
  (void)change_name({.directory = directory_of(path), .added = path, .inode = inode});
  return std::make_unique<SimFile>(*this, path, inode, false);
}

Result<std::unique_ptr<log::File>> SimDisk::open(const std::string& path) {
  const auto found = names_.find(path);
  if (found == names_.end() || !found->second) return missing(path);
  return std::make_unique<SimFile>(*this, path, found->second, false);
}

Result<std::unique_ptr<log::File>> SimDisk::open_uncached(const std::string& path) {
  const auto found = names_.find(path);
  if (found == names_.end() || !found->second) return missing(path);
  return std::make_unique<SimFile>(*this, path, found->second, true);
}

Status SimDisk::rename(const std::string& from, const std::string& to) {
  if (auto begun = begin_operation("rename " + from); !begun) return begun;
  const auto found = names_.find(from);
  if (found == names_.end()) return missing(from);
  BATON_CHECK(directory_of(from) == directory_of(to));
  return change_name({.directory = directory_of(to), .removed = from, .added = to, .inode = found->second});
}

Status SimDisk::remove(const std::string& path) {
  if (!names_.contains(path)) return missing(path);  // changes nothing, so it is not counted
  if (auto begun = begin_operation("remove " + path); !begun) return begun;
  return change_name({.directory = directory_of(path), .removed = path, .inode = names_.at(path)});
}

Status SimDisk::make_directory(const std::string& path) {
  if (names_.contains(path)) return {};
  if (auto begun = begin_operation("make " + path); !begun) return begun;
  return change_name({.directory = directory_of(path), .added = path});
}

Status SimDisk::sync_directory(const std::string& path) {
  if (auto begun = begin_operation("sync directory " + path); !begun) return begun;
  if (!names_.contains(path)) return missing(path);
  ++syncs_;
  if (lying_) return {};
  if (failing_sync_ == syncs_) {
    if (sync_fault_ == SyncFault::lies) return {};
    return failure(Errc::io_failed, "cannot sync directory " + path);
  }
  std::erase_if(changes_, [&](const NameChange& change) {
    if (change.directory != path) return false;
    apply(change, names_on_medium_);
    return true;
  });
  return {};
}

Result<std::vector<std::string>> SimDisk::list(const std::string& path) {
  if (!names_.contains(path)) return missing(path);
  std::vector<std::string> names;
  for (const auto& [name, inode] : names_) {
    if (!name.empty() && directory_of(name) == path)
      names.push_back(name.substr(path.empty() ? 0 : path.size() + 1));
  }
  return names;
}

Result<std::uint64_t> SimDisk::free_bytes() {
  if (!capacity_) return std::uint64_t{1} << 50;
  const std::uint64_t used = used_bytes();
  return used < *capacity_ ? *capacity_ - used : 0;
}

std::uint64_t SimDisk::used_bytes() const {
  std::uint64_t used = 0;
  for (const auto& [name, inode] : names_) used += inode ? inode->size : 0;
  return used;
}

void SimDisk::write(Inode& inode, std::uint64_t offset, ByteView bytes) {
  if (offset + bytes.size() > inode.size) {
    inode.size = offset + bytes.size();
    const std::size_t blocks = (inode.size + kBlockBytes - 1) / kBlockBytes;
    inode.cache.resize(blocks);
    inode.medium.resize(blocks);
    inode.dirty.resize(blocks);
  }
  while (!bytes.empty()) {
    const std::size_t index = offset / kBlockBytes;
    const std::size_t skip = offset % kBlockBytes;
    const std::size_t length = std::min(bytes.size(), kBlockBytes - skip);
    const BlockRef& old = inode.cache[index];
    auto block = old ? std::make_shared<Block>(*old) : std::make_shared<Block>();
    std::memcpy(block->data() + skip, bytes.data(), length);
    inode.cache[index] = std::move(block);
    for (std::size_t sector = skip / kSectorBytes; sector * kSectorBytes < skip + length; ++sector) {
      const bool was_dirty = inode.dirty[index] >> sector & 1;
      const BlockRef& medium = inode.medium[index];
      if (!was_dirty && medium && !log::all_zero({medium->data() + sector * kSectorBytes, kSectorBytes})) {
        ++rewritten_;
      }
      inode.dirty[index] = static_cast<std::uint8_t>(inode.dirty[index] | 1u << sector);
    }
    offset += length;
    bytes = bytes.subspan(length);
  }
}

std::size_t SimDisk::read(const Inode& inode, bool uncached, std::uint64_t offset,
                          std::span<std::byte> into) const {
  if (offset >= inode.size) return 0;
  const std::size_t total = std::min<std::uint64_t>(into.size(), inode.size - offset);
  std::size_t done = 0;
  while (done < total) {
    const std::size_t index = (offset + done) / kBlockBytes;
    const std::size_t skip = (offset + done) % kBlockBytes;
    // A direct read first writes back what is dirty; clean sectors come from the medium.
    const bool whole = !uncached || inode.dirty[index] == 0;
    const std::size_t step = whole ? kBlockBytes : kSectorBytes;
    const std::size_t length = std::min(total - done, step - skip % step);
    const bool from_cache = !uncached || (inode.dirty[index] >> (skip / kSectorBytes) & 1);
    const BlockRef& block = from_cache ? inode.cache[index] : inode.medium[index];
    if (block) {
      std::memcpy(into.data() + done, block->data() + skip, length);
    } else {
      std::memset(into.data() + done, 0, length);
    }
    done += length;
  }
  return total;
}

Status SimDisk::sync_inode(Inode& inode, std::size_t first, std::size_t end) {
  ++syncs_;
  const bool failing = failing_sync_ == syncs_;
  if (lying_ || (failing && sync_fault_ == SyncFault::lies)) return {};
  if (failing) {
    if (sync_fault_ == SyncFault::drops_cache) inode.cache = inode.medium;
    std::ranges::fill(inode.dirty, std::uint8_t{0});
    return failure(Errc::io_failed, "cannot sync");
  }
  for (std::size_t index = first; index < end; ++index) {
    if (inode.dirty[index] == 0) continue;
    if (inode.dirty[index] == 0xff) {
      inode.medium[index] = inode.cache[index];
    } else {
      auto block =
          inode.medium[index] ? std::make_shared<Block>(*inode.medium[index]) : std::make_shared<Block>();
      for (std::size_t sector = 0; sector < kSectorsPerBlock; ++sector) {
        if (!(inode.dirty[index] >> sector & 1)) continue;
        std::memcpy(block->data() + sector * kSectorBytes, inode.cache[index]->data() + sector * kSectorBytes,
                    kSectorBytes);
      }
      inode.medium[index] = std::move(block);
    }
    inode.dirty[index] = 0;
  }
  inode.size_on_medium = inode.size;
  return {};
}

// Every inode once, in the order of the names: those on the medium first, then those still to be named.
std::vector<SimDisk::InodeRef> SimDisk::inodes() const {
  std::vector<InodeRef> all;
  const auto add = [&](const InodeRef& inode) {
    if (inode && std::ranges::find(all, inode) == all.end()) all.push_back(inode);
  };
  for (const auto& [name, inode] : names_on_medium_) add(inode);
  for (const NameChange& change : changes_) add(change.inode);
  return all;
}

std::size_t SimDisk::pending() const {
  std::size_t count = changes_.size();
  for (const InodeRef& inode : inodes()) {
    count += inode->size != inode->size_on_medium;
    for (const std::uint8_t dirty : inode->dirty)
      count += static_cast<std::size_t>(__builtin_popcount(dirty));
  }
  return count;
}

void SimDisk::crash(const std::function<bool()>& keep) {
  for (const InodeRef& inode : inodes()) {
    if (inode->size != inode->size_on_medium && keep()) inode->size_on_medium = inode->size;
    for (std::size_t index = 0; index < inode->dirty.size(); ++index) {
      if (inode->dirty[index] == 0) continue;
      auto block =
          inode->medium[index] ? std::make_shared<Block>(*inode->medium[index]) : std::make_shared<Block>();
      for (std::size_t sector = 0; sector < kSectorsPerBlock; ++sector) {
        if (!(inode->dirty[index] >> sector & 1) || !keep()) continue;
        std::memcpy(block->data() + sector * kSectorBytes,
                    inode->cache[index]->data() + sector * kSectorBytes, kSectorBytes);
      }
      inode->medium[index] = std::move(block);
      inode->dirty[index] = 0;
    }
    inode->size = inode->size_on_medium;
    const std::size_t blocks = (inode->size + kBlockBytes - 1) / kBlockBytes;
    inode->medium.resize(blocks);
    inode->dirty.resize(blocks);
    inode->cache = inode->medium;
  }
  for (const NameChange& change : changes_) {
    if (keep()) apply(change, names_on_medium_);
  }
  changes_.clear();
  // What lies in a directory that did not survive is gone with it.
  std::erase_if(names_on_medium_,
                [&](const auto& entry) { return !names_on_medium_.contains(directory_of(entry.first)); });
  names_ = names_on_medium_;
  power_off_after_.reset();
  failing_operation_.reset();
  failing_sync_.reset();
  lying_ = false;
}

void SimDisk::heal() {
  power_off_after_.reset();
  failing_operation_.reset();
  failing_sync_.reset();
  lying_ = false;
  capacity_.reset();
  takes_files_ = true;
  unreadable_.clear();
}

Bytes SimDisk::content(const std::string& path) const {
  const InodeRef& inode = names_.at(path);
  Bytes bytes(inode->size);
  read(*inode, false, 0, bytes);
  return bytes;
}

void SimDisk::set_content(const std::string& path, ByteView bytes) {
  auto inode = std::make_shared<Inode>();
  const std::uint64_t rewritten = rewritten_;
  write(*inode, 0, bytes);
  inode->medium = inode->cache;
  std::ranges::fill(inode->dirty, std::uint8_t{0});
  inode->size_on_medium = inode->size;
  rewritten_ = rewritten;
  names_[path] = names_on_medium_[path] = inode;
}

void SimDisk::flip_bit(const std::string& path, std::uint64_t offset, unsigned bit) {
  Inode& inode = *names_.at(path);
  for (std::vector<BlockRef>* side : {&inode.cache, &inode.medium}) {
    BlockRef& block = (*side)[offset / kBlockBytes];
    block = block ? std::make_shared<Block>(*block) : std::make_shared<Block>();
    (*block)[offset % kBlockBytes] ^= static_cast<std::byte>(1u << bit);
  }
}

}  // namespace baton::sim
