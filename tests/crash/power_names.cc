// Names on the disk behind libpower_shim.so: they change at once for the process, and on the medium when
// the directory is synced.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "tests/crash/power_disk.h"

namespace baton::crash {
namespace {

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace

int PowerDisk::open(const std::string& path, int flags) {
  const std::lock_guard lock(mutex_);
  bool is_short = false;
  if (const int error = fails(Call::open, is_short)) return errno = error, -1;
  auto found = names_.find(path);
  const bool is_directory = path.empty() || (found != names_.end() && found->second->is_directory);
  if (!is_directory) {
    if (found == names_.end() && (flags & O_CREAT) == 0) return errno = ENOENT, -1;
    if (found != names_.end() && (flags & O_EXCL) != 0) return errno = EEXIST, -1;
    if ((flags & O_DIRECTORY) != 0) return errno = ENOTDIR, -1;
  }
  const int descriptor = System::get().open("/dev/null", O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return descriptor;
  if (is_directory) {
    open_directories_[descriptor] = path;
    return descriptor;
  }
  if (found == names_.end()) {
    change({.directory = parent_of(path), .removed = "", .added = path, .inode = std::make_shared<Inode>()});
    found = names_.find(path);
  }
  load(*found->second);
  open_[descriptor] = found->second;
  return descriptor;
}

bool PowerDisk::close(int descriptor) {
  const std::lock_guard lock(mutex_);
  return open_.erase(descriptor) + open_directories_.erase(descriptor) > 0;
}

InodeRef PowerDisk::file(int descriptor) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(descriptor);
  return found == open_.end() ? nullptr : found->second;
}

bool PowerDisk::is_directory(int descriptor, std::string& path) {
  const std::lock_guard lock(mutex_);
  const auto found = open_directories_.find(descriptor);
  if (found != open_directories_.end()) path = found->second;
  return found != open_directories_.end();
}

void PowerDisk::change(NameChange change) {
  if (!change.removed.empty()) names_.erase(change.removed);
  if (!change.added.empty()) names_[change.added] = change.inode;
  const std::string directory = change.directory;
  changes_.push_back(std::move(change));
  if (!chance()) return;
  ++page_->names_early;
  settle(directory, 1 + random() % changes_.size());
}

// Brings up to `count_max` pending changes of a directory to the medium, the oldest first.
void PowerDisk::settle(const std::string& directory, std::size_t count_max) {
  const auto parent = names_.find(directory);
  const bool reachable = directory.empty() || (parent != names_.end() && parent->second->on_medium);
  std::vector<std::string> made;
  for (auto it = changes_.begin(); it != changes_.end() && count_max > 0;) {
    if (it->directory != directory) {
      ++it;
      continue;
    }
    --count_max;
    if (!reachable) {
      it->synced = true;
      ++it;
      continue;
    }
    make_real(*it);
    if (it->inode && it->inode->is_directory) made.push_back(it->added);
    it = changes_.erase(it);
  }
  for (const std::string& inner : made) {
    const auto synced = [&](const NameChange& change) { return change.directory == inner && change.synced; };
    settle(inner, static_cast<std::size_t>(std::ranges::count_if(changes_, synced)));
  }
}

void PowerDisk::make_real(const NameChange& change) {
  const System& system = System::get();
  const std::string added = full(change.added);
  if (!change.added.empty() && change.inode->is_directory) {
    if (system.mkdir(added.c_str(), 0700) != 0) std::abort();
    change.inode->on_medium = true;
    return;
  }
  if (change.added.empty()) {
    system.unlink(full(change.removed).c_str());
    return;
  }
  if (!change.removed.empty()) {
    if (system.rename(full(change.removed).c_str(), added.c_str()) != 0) std::abort();
    return;
  }
  // Written aside first: a name never shows a file without what was synced into it.
  Inode& inode = *change.inode;
  const std::string aside = root_ + ".aside";
  system.unlink(aside.c_str());
  inode.descriptor = system.open(aside.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (inode.descriptor < 0) std::abort();
  const auto length = static_cast<ssize_t>(inode.medium.size());
  if (system.pwrite(inode.descriptor, inode.medium.data(), inode.medium.size(), 0) != length) std::abort();
  if (system.rename(aside.c_str(), added.c_str()) != 0) std::abort();
  inode.on_medium = true;
  inode.real = added;
  inode.medium = {};
}

int PowerDisk::sync_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  bool is_short = false;
  if (const int error = fails(Call::sync_directory, is_short)) return errno = error, -1;
  ++page_->syncs_begun;
  settle(path, changes_.size());
  ++page_->syncs_ended;
  return 0;
}

int PowerDisk::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  bool is_short = false;
  if (const int error = fails(Call::rename, is_short)) return errno = error, -1;
  const auto found = names_.find(from);
  if (found == names_.end()) return errno = ENOENT, -1;
  if (parent_of(from) != parent_of(to)) return errno = EXDEV, -1;  // nobody needs it
  const InodeRef inode = found->second;
  load(*inode);
  // Whoever was there is gone: what had not been read of it must not be looked for under this name.
  if (const auto old = names_.find(to); old != names_.end()) load(*old->second);
  change({.directory = parent_of(to), .removed = from, .added = to, .inode = inode});
  return 0;
}

int PowerDisk::unlink(const std::string& path) {
  const std::lock_guard lock(mutex_);
  bool is_short = false;
  if (const int error = fails(Call::unlink, is_short)) return errno = error, -1;
  const auto found = names_.find(path);
  if (found == names_.end()) return errno = ENOENT, -1;
  load(*found->second);
  change({.directory = parent_of(path), .removed = path, .added = "", .inode = nullptr});
  return 0;
}

int PowerDisk::mkdir(const std::string& path) {
  const std::lock_guard lock(mutex_);
  bool is_short = false;
  if (const int error = fails(Call::mkdir, is_short)) return errno = error, -1;
  if (names_.contains(path)) return errno = EEXIST, -1;
  auto inode = std::make_shared<Inode>();
  inode->is_directory = true;
  change({.directory = parent_of(path), .removed = "", .added = path, .inode = inode});
  return 0;
}

bool PowerDisk::list(const std::string& path, std::vector<std::string>& names) {
  const std::lock_guard lock(mutex_);
  bool is_short = false;
  if (const int error = fails(Call::open, is_short)) return errno = error, false;
  if (!path.empty() && !names_.contains(path)) return errno = ENOENT, false;
  for (const auto& [name, inode] : names_) {
    if (parent_of(name) == path) names.push_back(path.empty() ? name : name.substr(path.size() + 1));
  }
  return true;
}

}  // namespace baton::crash
