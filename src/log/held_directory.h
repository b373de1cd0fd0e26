// The files of a data directory as they are at one moment, for reading, although a process may be using it.
//
// Every segment and snapshot is held open, so one that housekeeping removes meanwhile can be read to its end
// all the same, and none that comes later is seen. What still changes is the end of the newest segment.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "log/posix_disk.h"

namespace baton::log {

class HeldDirectory final : public Disk {
 public:
  static Result<std::unique_ptr<HeldDirectory>> hold(const std::string& directory);
  HeldDirectory(const HeldDirectory&) = delete;
  HeldDirectory& operator=(const HeldDirectory&) = delete;

  // Of the process that used the directory at that moment, as it wrote it down.
  const std::optional<std::string>& process() const { return process_; }
  bool in_use() const override { return process_.has_value(); }

  Result<std::unique_ptr<File>> open(const std::string& path) override;
  // Past the cache for the newest segment only; nobody asks it of another.
  Result<std::unique_ptr<File>> open_uncached(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;

  // Refused: it is for reading.
  Result<std::unique_ptr<File>> create(const std::string& path, std::uint64_t size) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status remove(const std::string& path) override;
  Status make_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<std::uint64_t> free_bytes() override;

 private:
  using Names = std::vector<std::string>;
  explicit HeldDirectory(std::unique_ptr<PosixDisk> disk) : disk_(std::move(disk)) {}
  // False if something was removed or replaced meanwhile.
  Result<bool> hold_all();
  Result<bool> hold_file(const std::string& path);
  Result<bool> hold_newest();
  Result<std::optional<Names>> names_in(const std::string& folder);

  std::unique_ptr<PosixDisk> disk_;
  std::optional<std::string> process_;
  std::map<std::string, std::optional<Names>> folders_;  // nothing: there is no such folder
  std::map<std::string, std::shared_ptr<File>> files_;   // shared with those who have it open
  std::string newest_;
  std::shared_ptr<File> newest_uncached_;
};

}  // namespace baton::log
