#include "log/posix_disk.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>

#include "base/files.h"
#include "log/posix_file.h"

namespace baton::log {
namespace {

// Never written to, so it takes no memory. Aligned, as writing past the page cache asks for.
constexpr std::uint64_t kBlockBytes = 4096;
alignas(kBlockBytes) std::byte zeros[std::size_t{1} << 20];

Status write_zeros(int descriptor, const std::string& path, std::uint64_t offset, std::uint64_t end) {
  for (; offset < end; offset += sizeof zeros) {
    const std::uint64_t length = std::min<std::uint64_t>(sizeof zeros, end - offset);
    if (auto written = write_all(descriptor, path, offset, ByteView(zeros).first(length)); !written)
      return written;
  }
  return {};
}

// Real zeros instead of a promise of space: then writing into the file later changes no metadata, and
// cannot fail for want of space. They go past the page cache, where that is possible: copying them there
// costs as much as everything else the log does.
Status fill_with_zeros(int descriptor, int direct, const std::string& path, std::uint64_t size) {
  const std::uint64_t whole = direct < 0 ? 0 : size - size % kBlockBytes;
  if (auto written = write_zeros(direct, path, 0, whole); !written) return written;
  return write_zeros(descriptor, path, whole, size);
}

DIR* list_again(const std::string& path) {
  for (;;) {
    DIR* directory = ::opendir(path.c_str());
    if (directory != nullptr || errno != EINTR) return directory;
  }
}

// Whoever looks whether a directory is in use holds its lock for an instant, which must not keep a process
// from starting.
int lock_patiently(int descriptor) {
  constexpr int kTries = 25;
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 2'000'000};
  for (int tries = 1;; ++tries) {
    const int done = ::flock(descriptor, LOCK_EX | LOCK_NB);
    if (done == 0 || errno != EWOULDBLOCK || tries == kTries) return done;
    ::nanosleep(&kPause, nullptr);
    errno = EWOULDBLOCK;
  }
}

}  // namespace

Result<std::unique_ptr<PosixDisk>> PosixDisk::open_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) == 0) {
    if (auto synced = baton::sync_directory(parent_of(directory)); !synced)
      return std::unexpected(synced.error());
  } else if (errno != EEXIST) {
    return std::unexpected(system_error(errno, "create", directory));
  }
  std::unique_ptr<PosixDisk> disk(new PosixDisk(directory, false));
  if (auto locked = disk->take_lock(); !locked) return std::unexpected(locked.error());
  return disk;
}

Result<std::unique_ptr<PosixDisk>> PosixDisk::open_read_only(const std::string& directory) {
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0) return std::unexpected(system_error(errno, "open", directory));
  return std::unique_ptr<PosixDisk>(new PosixDisk(directory, true));
}

PosixDisk::~PosixDisk() {
  if (lock_ >= 0) ::close(lock_);
}

Status PosixDisk::take_lock() {
  const std::string path = full("LOCK");
  lock_ = open_again(path, O_RDWR | O_CREAT, 0600);
  if (lock_ < 0) return std::unexpected(system_error(errno, "open", path));
  if (lock_patiently(lock_) != 0) {
    if (errno != EWOULDBLOCK) return std::unexpected(system_error(errno, "lock", path));
    char pid[32] = {};
    const ssize_t got = ::pread(lock_, pid, sizeof pid - 1, 0);
    if (got > 0 && pid == std::to_string(::getpid())) {
      return failure(Errc::locked, fmt::format("{} is already open in this process", directory_));
    }
    return failure(Errc::locked, fmt::format("{} is in use by another process{}{}; stop it first", directory_,
                                             got > 0 ? ", probably " : "", got > 0 ? pid : ""));
  }
  const std::string pid = fmt::format("{}", ::getpid());
  if (::ftruncate(lock_, 0) != 0 || ::pwrite(lock_, pid.data(), pid.size(), 0) < 0) {
    return std::unexpected(system_error(errno, "write", path));
  }
  return {};
}

Result<std::optional<std::string>> PosixDisk::used_by() const {
  const std::string path = full("LOCK");
  const int descriptor = open_again(path, O_RDONLY, 0600);
  if (descriptor < 0 && errno == ENOENT) return std::optional<std::string>();
  if (descriptor < 0) return std::unexpected(system_error(errno, "open", path));
  std::optional<std::string> process;
  if (::flock(descriptor, LOCK_SH | LOCK_NB) != 0) {
    char pid[32] = {};
    process = ::pread(descriptor, pid, sizeof pid - 1, 0) > 0 ? pid : "unknown";
  }
  ::close(descriptor);
  return process;
}

std::string PosixDisk::full(const std::string& path) const {
  return path.empty() ? directory_ : directory_ + "/" + path;
}

Status PosixDisk::refuse_change(const std::string& path) const {
  if (!read_only_) return {};
  return failure(Errc::permission_denied,
                 fmt::format("{} is open for reading only, so {} stays", directory_, path));
}

Result<std::unique_ptr<File>> PosixDisk::create(const std::string& path, std::uint64_t size) {
  if (auto refused = refuse_change(path); !refused) return std::unexpected(refused.error());
  const std::string name = full(path);
  const int descriptor = open_again(name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (descriptor < 0) return std::unexpected(system_error(errno, "create", name));
  const int direct = size == 0 ? -1 : open_again(name, O_WRONLY | O_DIRECT, 0600);
  auto file = posix_file(descriptor, name, direct);
  if (auto filled = fill_with_zeros(descriptor, direct, name, size); !filled)
    return std::unexpected(filled.error());
  return file;
}

Result<std::unique_ptr<File>> PosixDisk::open(const std::string& path) {
  const std::string name = full(path);
  const int descriptor = open_again(name, read_only_ ? O_RDONLY : O_RDWR, 0600);
  if (descriptor < 0) return std::unexpected(system_error(errno, "open", name));
  return posix_file(descriptor, name);
}

Result<std::unique_ptr<File>> PosixDisk::open_uncached(const std::string& path) {
  const std::string name = full(path);
  const int direct = open_again(name, O_RDONLY | O_DIRECT, 0600);
  if (direct >= 0) return direct_file(direct, name);
  if (errno != EINVAL) return std::unexpected(system_error(errno, "open", name));

  const int descriptor = open_again(name, O_RDONLY, 0600);
  if (descriptor < 0) return std::unexpected(system_error(errno, "open", name));
  auto file = posix_file(descriptor, name);
  if (auto synced = file->sync(); !synced && !read_only_) return std::unexpected(synced.error());
  (void)::posix_fadvise(descriptor, 0, 0,
                        POSIX_FADV_DONTNEED);  // advice: there is nothing to do if it is refused
  return file;
}

Status PosixDisk::rename(const std::string& from, const std::string& to) {
  if (auto refused = refuse_change(from); !refused) return refused;
  if (::rename(full(from).c_str(), full(to).c_str()) != 0) {
    return std::unexpected(system_error(errno, "rename", full(from)));
  }
  return {};
}

Status PosixDisk::remove(const std::string& path) {
  if (auto refused = refuse_change(path); !refused) return refused;
  if (::unlink(full(path).c_str()) != 0) return std::unexpected(system_error(errno, "remove", full(path)));
  return {};
}

Status PosixDisk::make_directory(const std::string& path) {
  if (auto refused = refuse_change(path); !refused) return refused;
  if (::mkdir(full(path).c_str(), 0700) != 0 && errno != EEXIST) {
    return std::unexpected(system_error(errno, "create", full(path)));
  }
  return {};
}

Status PosixDisk::sync_directory(const std::string& path) {
  if (auto refused = refuse_change(path); !refused) return refused;
  return baton::sync_directory(full(path));
}

Result<std::vector<std::string>> PosixDisk::list(const std::string& path) {
  DIR* directory = list_again(full(path));
  if (!directory) return std::unexpected(system_error(errno, "list", full(path)));
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  const int number = errno;
  ::closedir(directory);
  if (number != 0) return std::unexpected(system_error(number, "list", full(path)));
  std::ranges::sort(names);
  return names;
}

Result<std::uint64_t> PosixDisk::free_bytes() {
  struct statvfs status{};
  if (::statvfs(directory_.c_str(), &status) != 0)
    return std::unexpected(system_error(errno, "look at", directory_));
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

}  // namespace baton::log
