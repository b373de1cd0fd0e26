#include "log/held_directory.h"

#include <fmt/format.h>

#include <utility>

#include "log/control.h"
#include "log/format.h"

namespace baton::log {
namespace {

constexpr int kTries = 100;
constexpr const char* kSegments = "wal";
constexpr const char* kSnapshots = "snap";

class HeldFile final : public File {
 public:
  explicit HeldFile(std::shared_ptr<File> file) : file_(std::move(file)) {}
  Status write(std::uint64_t offset, ByteView bytes) override { return file_->write(offset, bytes); }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) override {
    return file_->read(offset, into);
  }
  Result<std::uint64_t> size() override { return file_->size(); }
  Status sync() override { return file_->sync(); }

 private:
  const std::shared_ptr<File> file_;
};

// True if both say the same, be it what is in the file or what is wrong with it.
bool are_equal(const Result<std::optional<Control>>& one, const Result<std::optional<Control>>& other) {
  if (one.has_value() != other.has_value()) return false;
  return one ? *one == *other : one.error().code == other.error().code;
}

}  // namespace

Result<std::unique_ptr<HeldDirectory>> HeldDirectory::hold(const std::string& directory) {
  auto disk = PosixDisk::open_read_only(directory);
  if (!disk) return std::unexpected(disk.error());
  std::unique_ptr<HeldDirectory> held(new HeldDirectory(std::move(*disk)));
  for (int tries = 0; tries < kTries; ++tries) {
    auto whole = held->hold_all();
    if (!whole) return std::unexpected(whole.error());
    if (*whole) return held;
  }
  return failure(Errc::exhausted,
                 "the files of the directory change faster than they can be opened; try again");
}

// Segments go only after the older of the two snapshots before them has gone. So if no snapshot has gone when
// all segments are open, every segment behind the oldest snapshot is among them. A process that starts or
// stops replaces CONTROL before it writes anything else, or after it has written everything.
Result<bool> HeldDirectory::hold_all() {
  folders_.clear();
  files_.clear();
  const auto control = read_control(*disk_);
  for (const std::string folder : {kSnapshots, kSegments}) {
    auto names = names_in(folder);
    if (!names) return std::unexpected(names.error());
    folders_[folder] = *names;
    for (const std::string& name : names->value_or(Names())) {
      const bool counts = folder == kSegments ? segment_first_lsn(name).has_value() : name.ends_with(".snap");
      if (!counts) continue;
      auto held = hold_file(fmt::format("{}/{}", folder, name));
      if (!held || !*held) return held;
    }
  }
  auto held = hold_newest();
  if (held && *held) held = hold_file("CONTROL");
  if (!held) return held;
  if (!*held && (!control || *control)) return false;
  auto snapshots = names_in(kSnapshots);
  if (!snapshots) return std::unexpected(snapshots.error());
  auto process = disk_->used_by();
  if (!process) return std::unexpected(process.error());
  process_ = *process;
  return *snapshots == folders_[kSnapshots] && are_equal(control, read_control(*disk_));
}

Result<bool> HeldDirectory::hold_file(const std::string& path) {
  auto file = disk_->open(path);
  if (!file && file.error().code == Errc::not_found) return false;
  if (!file) return std::unexpected(file.error());
  files_[path] = std::move(*file);
  return true;
}

Result<bool> HeldDirectory::hold_newest() {
  newest_.clear();
  for (const auto& [path, file] : files_) {
    if (path.starts_with(kSegments)) newest_ = path;
  }
  if (newest_.empty()) return true;
  auto file = disk_->open_uncached(newest_);
  if (!file && file.error().code == Errc::not_found) return false;
  if (!file) return std::unexpected(file.error());
  newest_uncached_ = std::move(*file);
  return true;
}

Result<std::optional<HeldDirectory::Names>> HeldDirectory::names_in(const std::string& folder) {
  auto names = disk_->list(folder);
  if (!names && names.error().code == Errc::not_found) return std::optional<Names>();
  if (!names) return std::unexpected(names.error());
  std::erase_if(*names, [](const std::string& name) { return name.ends_with(".tmp"); });
  return std::move(*names);
}

Result<std::unique_ptr<File>> HeldDirectory::open(const std::string& path) {
  const auto held = files_.find(path);
  if (held == files_.end()) return failure(Errc::not_found, fmt::format("there is no {}", path));
  return std::make_unique<HeldFile>(held->second);
}

Result<std::unique_ptr<File>> HeldDirectory::open_uncached(const std::string& path) {
  if (path != newest_) return open(path);
  return std::make_unique<HeldFile>(newest_uncached_);
}

Result<std::vector<std::string>> HeldDirectory::list(const std::string& path) {
  const auto folder = folders_.find(path);
  if (folder == folders_.end() || !folder->second)
    return failure(Errc::not_found, fmt::format("there is no {}", path));
  return *folder->second;
}

Result<std::unique_ptr<File>> HeldDirectory::create(const std::string& path, std::uint64_t size) {
  return disk_->create(path, size);
}
Status HeldDirectory::rename(const std::string& from, const std::string& to) {
  return disk_->rename(from, to);
}
Status HeldDirectory::remove(const std::string& path) { return disk_->remove(path); }
Status HeldDirectory::make_directory(const std::string& path) { return disk_->make_directory(path); }
Status HeldDirectory::sync_directory(const std::string& path) { return disk_->sync_directory(path); }
Result<std::uint64_t> HeldDirectory::free_bytes() { return disk_->free_bytes(); }

}  // namespace baton::log
