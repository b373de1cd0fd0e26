#include "tests/crash/power_disk.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace baton::crash {
namespace {

constexpr std::size_t kSector = 512;

std::uint64_t number_in(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

template <class Function>
void find(Function*& into, const char* name) {
  into = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

const System& System::get() {
  static const System system = [] {
    System found{};
    find(found.open, "open");
    find(found.close, "close");
    find(found.pread, "pread");
    find(found.pwrite, "pwrite");
    find(found.rename, "rename");
    find(found.unlink, "unlink");
    find(found.mkdir, "mkdir");
    find(found.opendir, "opendir");
    find(found.readdir, "readdir");
    find(found.closedir, "closedir");
    return found;
  }();
  return system;
}

PowerDisk* PowerDisk::get() {
  static PowerDisk* const disk = std::getenv(kShimDirectory) == nullptr ? nullptr : new PowerDisk;
  return disk;
}

PowerDisk::PowerDisk()
    : root_(std::getenv(kShimDirectory)),
      seed_(number_in(kShimSeed)),
      early_percent_(number_in(kShimEarly)),
      sync_us_(number_in(kShimSyncUs)) {
  if (const char* path = std::getenv(kShimPage)) {
    const int descriptor = System::get().open(path, O_RDWR | O_CLOEXEC);
    void* page = ::mmap(nullptr, sizeof(ShimPage), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (descriptor < 0 || page == MAP_FAILED) std::abort();
    page_ = static_cast<ShimPage*>(page);
    System::get().close(descriptor);
  }
  if (const char* text = std::getenv(kShimFail)) {
    char kind[32] = {}, error[16] = {}, often[8] = {};
    unsigned long long number = 0;
    if (std::sscanf(text, "%31[^:]:%llu:%15[^:]:%7s", kind, &number, error, often) != 4) std::abort();
    const std::string_view name = error;
    const auto* found = std::ranges::find(kCallNames, std::string_view(kind));
    if (found == std::end(kCallNames)) std::abort();
    fault_ = {.call = static_cast<Call>(found - kCallNames),
              .number = number,
              .error = name == "EIO"      ? EIO
                       : name == "ENOSPC" ? ENOSPC
                       : name == "EINTR"  ? EINTR
                                          : 0,
              .for_ever = std::string_view(often) == "ever"};
  }
}

bool PowerDisk::holds(const char* path, std::string& relative) const {
  const std::size_t length = root_.size();
  if (std::strncmp(path, root_.c_str(), length) != 0) return false;
  if (path[length] != '/' && path[length] != 0) return false;
  relative = path[length] == 0 ? "" : path + length + 1;
  return relative != "LOCK";  // the lock is the living process's, not the disk's
}

// Reads what an earlier process left. Called with the mutex held, by whatever needs names.
void PowerDisk::scan(const std::string& directory) {
  DIR* listing = System::get().opendir(full(directory).c_str());
  if (listing == nullptr) return;
  while (const dirent* entry = System::get().readdir(listing)) {
    const std::string name = entry->d_name;
    if (name == "." || name == ".." || (directory.empty() && name == "LOCK")) continue;
    const std::string path = directory.empty() ? name : directory + "/" + name;
    auto inode = std::make_shared<Inode>();
    inode->is_directory = entry->d_type == DT_DIR;
    inode->on_medium = true;
    inode->real = full(path);
    names_[path] = inode;
    if (inode->is_directory) scan(path);
  }
  System::get().closedir(listing);
}

void PowerDisk::load(Inode& inode) {
  if (!inode.on_medium || inode.descriptor >= 0 || inode.is_directory) return;
  inode.descriptor = System::get().open(inode.real.c_str(), O_RDWR | O_CLOEXEC);
  if (inode.descriptor < 0) std::abort();
  const off_t size = ::lseek(inode.descriptor, 0, SEEK_END);
  inode.cache.resize(static_cast<std::size_t>(size));
  if (System::get().pread(inode.descriptor, inode.cache.data(), inode.cache.size(), 0) != size) std::abort();
}

int PowerDisk::fails(Call call, bool& is_short) {
  if (!scanned_) {
    scanned_ = true;
    scan("");
  }
  const std::uint64_t number = ++page_->calls[static_cast<std::size_t>(call)];
  is_short = false;
  if (fault_.number == 0 || fault_.call != call || number < fault_.number) return 0;
  if (number > fault_.number && !fault_.for_ever) return 0;
  ++page_->faults;
  is_short = fault_.error == 0;
  return fault_.error;
}

std::uint64_t PowerDisk::random() {
  std::uint64_t z = seed_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

bool PowerDisk::chance() { return early_percent_ != 0 && random() % 100 < early_percent_; }

std::uint64_t PowerDisk::used_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [path, inode] : names_) {
    struct stat status{};
    const bool unread = inode->on_medium && inode->descriptor < 0 && !inode->is_directory;
    sum += unread && ::stat(inode->real.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size)
                                                               : inode->cache.size();
  }
  return sum;
}

std::uint64_t PowerDisk::free_bytes() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t used = used_bytes();
  const std::uint64_t capacity = page_->capacity_bytes;
  return capacity > used ? capacity - used : 0;
}

// One sector reaches the medium, whole.
void PowerDisk::put_sector(Inode& inode, std::size_t sector, const char* bytes, std::size_t length) {
  if (inode.descriptor >= 0) {
    if (System::get().pwrite(inode.descriptor, bytes, length, static_cast<off_t>(sector * kSector)) !=
        static_cast<ssize_t>(length)) {
      std::abort();
    }
    return;
  }
  inode.medium.resize(std::max(inode.medium.size(), sector * kSector + length));
  std::memcpy(inode.medium.data() + sector * kSector, bytes, length);
}

void PowerDisk::flush_early(Inode& inode) {
  if (!chance()) return;
  for (auto it = inode.dirty.begin(); it != inode.dirty.end();) {
    const std::size_t begin = *it * kSector;
    if (begin >= inode.cache.size() || random() % 2 == 0) {
      ++it;
      continue;
    }
    put_sector(inode, *it, inode.cache.data() + begin, std::min(kSector, inode.cache.size() - begin));
    ++page_->sectors_early;
    it = inode.dirty.erase(it);
  }
}

ssize_t PowerDisk::read(Inode& inode, void* into, std::size_t count, std::size_t offset) {
  const std::lock_guard lock(mutex_);
  bool is_short = false;
  if (const int error = fails(Call::read, is_short)) return errno = error, -1;
  if (offset >= inode.cache.size()) return 0;
  count = std::min(count, inode.cache.size() - offset);
  if (is_short) count = (count + 1) / 2;
  std::memcpy(into, inode.cache.data() + offset, count);
  return static_cast<ssize_t>(count);
}

ssize_t PowerDisk::write(Inode& inode, const void* from, std::size_t count, std::size_t offset) {
  const std::lock_guard lock(mutex_);
  bool is_short = false;
  if (const int error = fails(Call::write, is_short)) return errno = error, -1;
  if (is_short) count = (count + 1) / 2;
  if (const std::uint64_t capacity = page_->capacity_bytes; capacity != 0 && count != 0) {
    const std::uint64_t used = used_bytes();
    const std::uint64_t room = inode.cache.size() + (capacity > used ? capacity - used : 0);
    if (offset >= room) return errno = ENOSPC, -1;
    count = std::min<std::size_t>(count, room - offset);
  }
  if (count == 0) return 0;
  inode.cache.resize(std::max(inode.cache.size(), offset + count));
  std::memcpy(inode.cache.data() + offset, from, count);
  for (std::size_t sector = offset / kSector; sector <= (offset + count - 1) / kSector; ++sector) {
    inode.dirty.insert(sector);
  }
  flush_early(inode);
  return static_cast<ssize_t>(count);
}

int PowerDisk::truncate(Inode& inode, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  inode.cache.resize(bytes);
  if (bytes > 0) inode.dirty.insert((bytes - 1) / kSector);
  return 0;
}

// The sectors go one by one in a random order, so that a kill in between tears the write.
int PowerDisk::sync(Inode& inode, std::size_t begin, std::size_t end) {
  struct Sector {
    std::size_t number;
    std::vector<char> bytes;
  };
  std::vector<Sector> sectors;
  {
    const std::lock_guard lock(mutex_);
    bool is_short = false;
    const int error = fails(Call::sync, is_short);
    const auto first = inode.dirty.lower_bound(begin / kSector);
    const auto last = inode.dirty.upper_bound((end - 1) / kSector);
    if (error == EIO) inode.dirty.erase(first, last);  // the kernel calls the pages clean, and they are lost
    if (error != 0) return errno = error, -1;
    ++page_->syncs_begun;
    for (auto number = first; number != last; ++number) {
      const std::size_t from = *number * kSector;
      if (from >= inode.cache.size()) continue;
      const std::size_t to = std::min(from + kSector, inode.cache.size());
      sectors.push_back({*number, {inode.cache.data() + from, inode.cache.data() + to}});
    }
    inode.dirty.erase(first, last);
    for (std::size_t left = sectors.size(); left > 1; --left) {
      std::swap(sectors[left - 1], sectors[random() % left]);
    }
    if (inode.descriptor < 0) {
      for (const Sector& sector : sectors)
        put_sector(inode, sector.number, sector.bytes.data(), sector.bytes.size());
      sectors.clear();
    }
  }
  const std::size_t half = sectors.size() / 2;
  for (std::size_t index = 0; index < sectors.size(); ++index) {
    if (index == half && sync_us_ != 0) ::usleep(static_cast<useconds_t>(sync_us_));
    put_sector(inode, sectors[index].number, sectors[index].bytes.data(), sectors[index].bytes.size());
  }
  ++page_->syncs_ended;
  return 0;
}

}  // namespace baton::crash
