#include "checkpoint/local_storage.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/descriptor.h"
#include "base/files.h"
#include "base/random_name.h"
#include "base/system_error.h"
#include "checkpoint/local_file.h"

namespace baton::checkpoint {
namespace {

namespace fs = std::filesystem;

// With every directory on the way; each new name is durable before anything is put under it.
Status make_root(const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) return {};
  const std::string parent = parent_of(path);
  if (parent != path) {
    if (auto made = make_root(parent); !made) return made;
  }
  if (::mkdir(path.c_str(), 0777) != 0) {
    if (errno == EEXIST) return {};
    return std::unexpected(system_error(errno, "create", path));
  }
  return sync_directory(parent);
}

// A file without a name, to which one can write past the page cache.
Descriptor probe_file(const std::string& root) {
  Descriptor nameless(::open(root.c_str(), O_RDWR | O_TMPFILE | O_DIRECT | O_CLOEXEC, 0600));
  if (nameless.is_open()) return nameless;
  // Network file systems know only files with names.
  const std::string path = fmt::format("{}/.probe-{}.tmp", root, random_name());
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_DIRECT | O_CLOEXEC, 0600));
  if (file.is_open()) ::unlink(path.c_str());
  return file;
}

bool can_write(const std::string& root, IoEngine& engine) {
  const Descriptor file = probe_file(root);
  if (!file.is_open()) return false;
  const AlignedMemory block = allocate_aligned(kMemoryAlignment);
  std::memset(block.get(), 0, kMemoryAlignment);
  engine.submit({Transfer::Direction::write, file.number(), 0, block.get(), kMemoryAlignment, 0});
  return engine.wait().result == static_cast<std::int64_t>(kMemoryAlignment);
}

IoMode best_mode(const std::string& root) {
  if (const auto ring = ring_engine(); ring && can_write(root, *ring)) return IoMode::direct_ring;
  if (can_write(root, *thread_engine())) return IoMode::direct;
  return IoMode::buffered;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// The library's own listing ends the process where memory runs out.
Result<std::vector<std::string>> names_in(const std::string& directory) {
  const std::unique_ptr<DIR, CloseDirectory> opened(::opendir(directory.c_str()));
  if (!opened) return std::unexpected(system_error(errno, "list", directory));
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(opened.get());
    if (entry == nullptr && errno != 0) return std::unexpected(system_error(errno, "list", directory));
    if (entry == nullptr) return names;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

// With all that is in it; links are not followed.
Status remove_all(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR) return std::unexpected(system_error(errno, "remove", path));
  const auto names = names_in(path);
  if (!names) return names.error().code == Errc::not_found ? Status{} : std::unexpected(names.error());
  for (const std::string& name : *names) {
    if (auto removed = remove_all(path + "/" + name); !removed) return removed;
  }
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return {};
  return std::unexpected(system_error(errno, "remove", path));
}

// A name that is given to a file only if nobody has it. A file system without links may still be able to
// rename so.
int take_name(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return 0;
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK) return errno;
  return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
}

// Whole and durable, or not there.
Status write_aside(const std::string& path, ByteView bytes) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) return std::unexpected(system_error(errno, "create", path));
  if (write_all(file.number(), text_of(bytes)) && ::fsync(file.number()) == 0) return {};
  const int number = errno;
  ::unlink(path.c_str());
  return std::unexpected(system_error(number, "write", path));
}

// So that it stays the same place if the process goes elsewhere.
Result<std::string> absolute(const std::string& path) {
  if (path.empty() || path.starts_with('/')) return path;
  std::error_code trouble;
  const fs::path here = fs::current_path(trouble);
  if (trouble) return std::unexpected(system_error(trouble.value(), "open", path));
  return path == "." ? here.string() : (here / path).string();
}

// One for the process: a program may have any number of places open, and each would keep some.
std::shared_ptr<BlockMemory> shared_memory() {
  static const auto memory = std::make_shared<BlockMemory>();
  return memory;
}

Status check_directory(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::unexpected(system_error(errno, "open", path));
  if (!S_ISDIR(status.st_mode)) return std::unexpected(system_error(ENOTDIR, "open", path));
  return {};
}

}  // namespace

LocalStorage::LocalStorage(std::string root, IoMode mode)
    : root_(std::move(root)), mode_(mode), memory_(shared_memory()) {}

Result<std::unique_ptr<LocalStorage>> LocalStorage::open_directory(const std::string& root,
                                                                   std::optional<IoMode> mode) {
  const auto path = absolute(root);
  if (!path) return std::unexpected(path.error());
  if (auto made = make_root(*path); !made) return std::unexpected(made.error());
  if (auto fits = check_directory(*path); !fits) return std::unexpected(fits.error());
  return std::unique_ptr<LocalStorage>(new LocalStorage(*path, mode ? *mode : best_mode(*path)));
}

Result<std::unique_ptr<LocalStorage>> LocalStorage::open_existing(const std::string& root) {
  const auto path = absolute(root);
  if (!path) return std::unexpected(path.error());
  if (auto fits = check_directory(*path); !fits) return std::unexpected(fits.error());
  return std::unique_ptr<LocalStorage>(new LocalStorage(*path, best_mode(*path)));
}

// Also of directories that are there: whoever made them may have been killed before their names were durable.
Status LocalStorage::make_directories(const std::string& path) {
  if (path.size() <= root_.size()) return make_root(path);
  if (auto made = make_directories(parent_of(path)); !made) return made;
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST)
    return std::unexpected(system_error(errno, "create", path));
  return settle(path);
}

// A failure is final: the kernel may drop what it could not write and report the next sync as clean, so
// another try that succeeds proves nothing.
Status LocalStorage::settle(const std::string& name) {
  Status synced = sync_directory(parent_of(name));
  const std::lock_guard lock(mutex_);
  if (!synced && synced.error().code == Errc::io_failed) unsettled_.emplace(name, synced.error());
  if (const auto first = unsettled_.find(name); first != unsettled_.end())
    return std::unexpected(first->second);
  return synced;
}

template <class Put>
Status LocalStorage::put_into(const std::string& directory, const Put& put) {
  for (int tries = 100;; --tries) {
    Status done = make_directories(directory);
    if (done) done = put();
    if (done || done.error().code != Errc::not_found || tries == 0) return done;
  }
}

void LocalStorage::remove_empty(std::string directory) {
  while (directory.size() > root_.size() && ::rmdir(directory.c_str()) == 0) directory = parent_of(directory);
}

Result<std::unique_ptr<ShardWriter>> LocalStorage::create(const std::string& path, std::uint64_t bytes) {
  const std::string name = full(path);
  std::unique_ptr<ShardWriter> writer;
  const Status put = put_into(parent_of(name), [&]() -> Status {
    auto created = create_local_file(name, bytes, mode_, memory_);
    if (!created) return std::unexpected(created.error());
    writer = *std::move(created);
    return {};
  });
  if (!put) return std::unexpected(put.error());
  return writer;
}

Result<std::unique_ptr<ShardReader>> LocalStorage::open(const std::string& path) {
  return open_local_file(full(path), mode_, memory_);
}

Result<bool> LocalStorage::put_if_absent(const std::string& path, ByteView bytes) {
  const std::string name = full(path);
  const std::string aside = fmt::format("{}.{}.tmp", name, random_name());
  const Status written = put_into(parent_of(name), [&] { return write_aside(aside, bytes); });
  if (!written) return std::unexpected(written.error());
  const int taken = take_name(aside, name);
  ::unlink(aside.c_str());
  if (taken != 0 && taken != EEXIST) return std::unexpected(system_error(taken, "create", name));
  if (auto settled = settle(name); !settled) return std::unexpected(settled.error());
  if (taken == 0) return true;
  // Over a network the first try may have succeeded without our hearing of it.
  auto there = get(path);
  if (!there) return std::unexpected(there.error());
  return std::ranges::equal(*there, bytes);
}

Result<Bytes> LocalStorage::get(const std::string& path) {
  const std::string name = full(path);
  const Descriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return std::unexpected(system_error(errno, "open", name));
  Bytes all;
  for (;;) {
    std::byte piece[64 << 10];
    const ssize_t got = ::read(file.number(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(system_error(errno, "read", name));
    if (got == 0) return all;
    all.insert(all.end(), piece, piece + got);
  }
}

Result<std::vector<StorageEntry>> LocalStorage::list(const std::string& directory) {
  const auto names = names_in(full(directory));
  if (!names) return std::unexpected(names.error());
  std::vector<StorageEntry> entries;
  for (const std::string& name : *names) {
    const std::string path = full(directory) + "/" + name;
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) {
      if (errno == ENOENT) continue;  // somebody removed it while we looked
      return std::unexpected(system_error(errno, "look at", path));
    }
    const bool is_directory = S_ISDIR(status.st_mode);
    entries.push_back(
        {.name = name,
         .is_directory = is_directory,
         .bytes = is_directory ? 0 : static_cast<std::uint64_t>(status.st_size),
         .modified_ms = std::int64_t{status.st_mtim.tv_sec} * 1000 + status.st_mtim.tv_nsec / 1'000'000});
  }
  std::ranges::sort(entries);
  return entries;
}

Status LocalStorage::remove(const std::string& path) {
  const std::string name = full(path);
  if (::unlink(name.c_str()) != 0 && errno != ENOENT)
    return std::unexpected(system_error(errno, "remove", name));
  // Also if it was not there: whoever removed it may have been killed before that was durable.
  Status settled = settle(name);
  if (!settled && settled.error().code == Errc::not_found) return {};  // what it stood in is gone
  if (settled) remove_empty(parent_of(name));
  return settled;
}

Status LocalStorage::remove_directory(const std::string& path) {
  Status removed = remove_all(full(path));
  if (removed) remove_empty(parent_of(full(path)));
  return removed;
}

std::string LocalStorage::describe() const {
  return fmt::format("{} ({})", root_, checkpoint::describe(mode_));
}

}  // namespace baton::checkpoint
