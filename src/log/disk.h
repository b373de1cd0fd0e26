// The disk as baton uses it: one data directory, a handful of operations, each of which may fail.
//
// Production runs on PosixDisk; the simulation and the crash tests run the same log code on a disk
// that loses, tears and reorders whatever was not synced. Paths are relative to the data directory.
// A file that is not there is Errc::not_found; a handle keeps working when its file is renamed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace baton::log {

class File {
 public:
  virtual ~File() = default;
  // Writes all of `bytes` at `offset`, or fails. Nothing is durable before sync().
  virtual Status write(std::uint64_t offset, ByteView bytes) = 0;
  // Reads up to `into.size()` bytes; fewer only at the end of the file.
  virtual Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) = 0;
  // Fills all of `into` if that takes no waiting for the medium; false: it would, or nobody can tell.
  virtual bool read_at_once(std::uint64_t, std::span<std::byte>) { return false; }
  virtual Result<std::uint64_t> size() = 0;
  // Data and size reach the medium. After a failure the content is unknown and must not be used.
  virtual Status sync() = 0;
  // Both for these bytes alone; what was written before is not synced with them.
  virtual Status write_durably(std::uint64_t offset, ByteView bytes) {
    if (auto written = write(offset, bytes); !written) return written;
    return sync();
  }
};

class Disk {
 public:
  virtual ~Disk() = default;

  // A new file of `size` zero bytes; fails if the name is taken. The name is durable only after
  // sync_directory().
  virtual Result<std::unique_ptr<File>> create(const std::string& path, std::uint64_t size) = 0;
  virtual Result<std::unique_ptr<File>> open(const std::string& path) = 0;
  // For recovery: reads what is on the medium, not what the page cache believes. After a failed sync the
  // cache may hold pages that never reached the disk.
  virtual Result<std::unique_ptr<File>> open_uncached(const std::string& path) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& path) = 0;
  virtual Status make_directory(const std::string& path) = 0;  // fine if it is there
  virtual Status sync_directory(const std::string& path) = 0;  // "" is the data directory itself
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;  // names, sorted
  virtual Result<std::uint64_t> free_bytes() = 0;
  // True if somebody else may be writing to it while we read.
  virtual bool in_use() const { return false; }
};

}  // namespace baton::log
