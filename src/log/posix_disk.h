// The data directory on a real file system.
#pragma once

#include <optional>
#include <string>

#include "log/disk.h"

namespace baton::log {

class PosixDisk final : public Disk {
 public:
  // Creates the directory (mode 0700) if it is not there, and locks it for as long as the object lives:
  // Errc::locked if another process has it.
  static Result<std::unique_ptr<PosixDisk>> open_directory(const std::string& directory);
  // For tools: takes no lock, and everything that changes something is refused.
  static Result<std::unique_ptr<PosixDisk>> open_read_only(const std::string& directory);

  ~PosixDisk() override;
  PosixDisk(const PosixDisk&) = delete;
  PosixDisk& operator=(const PosixDisk&) = delete;

  Result<std::unique_ptr<File>> create(const std::string& path, std::uint64_t size) override;
  Result<std::unique_ptr<File>> open(const std::string& path) override;
  // O_DIRECT. Where the file system has none (tmpfs), the file is synced and the kernel is asked to drop its
  // cached pages before they are read; that is a request, not a promise.
  Result<std::unique_ptr<File>> open_uncached(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status make_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Result<std::uint64_t> free_bytes() override;

  // The number of the process that has the directory locked, as it wrote it down; nothing if none has.
  Result<std::optional<std::string>> used_by() const;
  const std::string& directory() const { return directory_; }

 private:
  PosixDisk(std::string directory, bool read_only)
      : directory_(std::move(directory)), read_only_(read_only) {}
  Status take_lock();
  Status refuse_change(const std::string& path) const;
  std::string full(const std::string& path) const;

  const std::string directory_;
  const bool read_only_;
  int lock_ = -1;
};

}  // namespace baton::log
