// The functions of the C library that libpower_shim.so stands in for. Whatever is not under its directory
// goes on to the real one.
#include "tests/crash/power_shim.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>

#include "tests/crash/power_disk.h"

namespace {

using baton::crash::InodeRef;
using baton::crash::PowerDisk;
using baton::crash::System;

PowerDisk* disk_for(const char* path, std::string& relative) {
  PowerDisk* disk = PowerDisk::get();
  return disk != nullptr && disk->holds(path, relative) ? disk : nullptr;
}

InodeRef file_behind(int descriptor) {
  PowerDisk* disk = PowerDisk::get();
  return disk == nullptr ? nullptr : disk->file(descriptor);
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int sync_file(int descriptor, const char* name) {
  if (const InodeRef file = file_behind(descriptor)) return PowerDisk::get()->sync(*file);
  std::string path;
  PowerDisk* disk = PowerDisk::get();
  if (disk != nullptr && disk->is_directory(descriptor, path)) return disk->sync_directory(path);
  return next<int(int)>(name)(descriptor);
}

// What opendir() gives for a directory of ours.
struct Listing {
  std::vector<std::string> names;
  std::size_t at = 0;
  dirent entry{};
};
std::mutex listings_mutex;
std::set<const void*> listings;

Listing* listing_behind(DIR* directory) {
  const std::lock_guard lock(listings_mutex);
  return listings.contains(directory) ? reinterpret_cast<Listing*>(directory) : nullptr;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  std::string relative;
  if (PowerDisk* disk = disk_for(path, relative)) return disk->open(relative, flags);
  return System::get().open(path, flags, mode);
}

int close(int descriptor) {
  if (PowerDisk* disk = PowerDisk::get()) disk->close(descriptor);
  return System::get().close(descriptor);
}

ssize_t pread(int descriptor, void* into, size_t count, off_t offset) {
  if (const InodeRef file = file_behind(descriptor))
    return PowerDisk::get()->read(*file, into, count, static_cast<std::size_t>(offset));
  return System::get().pread(descriptor, into, count, offset);
}

ssize_t pwrite(int descriptor, const void* from, size_t count, off_t offset) {
  if (const InodeRef file = file_behind(descriptor))
    return PowerDisk::get()->write(*file, from, count, static_cast<std::size_t>(offset));
  return System::get().pwrite(descriptor, from, count, offset);
}

// With RWF_DSYNC it is a write and a sync of just these bytes, either of which may fail.
ssize_t pwritev2(int descriptor, const iovec* from, int count, off_t offset, int flags) {
  const InodeRef file = file_behind(descriptor);
  if (!file)
    return next<ssize_t(int, const iovec*, int, off_t, int)>("pwritev2")(descriptor, from, count, offset,
                                                                         flags);
  if (count != 1) std::abort();  // nobody here needs more
  const ssize_t wrote =
      PowerDisk::get()->write(*file, from->iov_base, from->iov_len, static_cast<std::size_t>(offset));
  const auto begin = static_cast<std::size_t>(offset), end = begin + static_cast<std::size_t>(wrote);
  if (wrote > 0 && (flags & RWF_DSYNC) != 0 && PowerDisk::get()->sync(*file, begin, end) != 0) return -1;
  return wrote;
}

int fdatasync(int descriptor) { return sync_file(descriptor, "fdatasync"); }
int fsync(int descriptor) { return sync_file(descriptor, "fsync"); }

int ftruncate(int descriptor, off_t bytes) noexcept {
  if (const InodeRef file = file_behind(descriptor))
    return PowerDisk::get()->truncate(*file, static_cast<std::size_t>(bytes));
  return next<int(int, off_t)>("ftruncate")(descriptor, bytes);
}

int fstat(int descriptor, struct stat* status) noexcept {
  const InodeRef file = file_behind(descriptor);
  if (!file) return next<int(int, struct stat*)>("fstat")(descriptor, status);
  *status = {};
  status->st_mode = S_IFREG | 0600;
  status->st_size = static_cast<off_t>(file->cache.size());
  return 0;
}

int statvfs(const char* path, struct statvfs* status) noexcept {
  const int done = next<int(const char*, struct statvfs*)>("statvfs")(path, status);
  std::string relative;
  PowerDisk* disk = disk_for(path, relative);
  if (done != 0 || disk == nullptr || !disk->is_limited()) return done;
  status->f_frsize = 1;
  status->f_bavail = status->f_bfree = disk->free_bytes();
  return 0;
}

int rename(const char* from, const char* to) noexcept {
  std::string relative_from;
  std::string relative_to;
  PowerDisk* disk = disk_for(from, relative_from);
  if (disk != nullptr && disk->holds(to, relative_to)) return disk->rename(relative_from, relative_to);
  return System::get().rename(from, to);
}

int unlink(const char* path) noexcept {
  std::string relative;
  if (PowerDisk* disk = disk_for(path, relative)) return disk->unlink(relative);
  return System::get().unlink(path);
}

int mkdir(const char* path, mode_t mode) noexcept {
  std::string relative;
  if (PowerDisk* disk = disk_for(path, relative); disk != nullptr && !relative.empty())
    return disk->mkdir(relative);
  return System::get().mkdir(path, mode);
}

DIR* opendir(const char* path) {
  std::string relative;
  PowerDisk* disk = disk_for(path, relative);
  if (disk == nullptr) return System::get().opendir(path);
  auto listing = std::make_unique<Listing>();
  if (!disk->list(relative, listing->names)) return nullptr;
  const std::lock_guard lock(listings_mutex);
  listings.insert(listing.get());
  return reinterpret_cast<DIR*>(listing.release());
}

dirent* readdir(DIR* directory) {
  Listing* listing = listing_behind(directory);
  if (listing == nullptr) return System::get().readdir(directory);
  if (listing->at == listing->names.size()) return nullptr;
  const std::string& name = listing->names[listing->at++];
  std::memcpy(listing->entry.d_name, name.c_str(), name.size() + 1);
  return &listing->entry;
}

int closedir(DIR* directory) {
  Listing* listing = listing_behind(directory);
  if (listing == nullptr) return System::get().closedir(directory);
  const std::lock_guard lock(listings_mutex);
  listings.erase(directory);
  delete listing;
  return 0;
}

// The same under the names that a program built for large files uses.
int open64(const char* path, int flags, ...) __attribute__((alias("open")));
ssize_t pread64(int, void*, size_t, off_t) __attribute__((alias("pread")));
ssize_t pwrite64(int, const void*, size_t, off_t) __attribute__((alias("pwrite")));
ssize_t pwritev64v2(int, const iovec*, int, off_t, int) __attribute__((alias("pwritev2")));

}  // extern "C"
