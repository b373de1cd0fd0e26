// The segments on disk, and the way back to the bytes of a record that lies in one of them.
//
// Used from several threads: a flush adds, the housekeeper removes, readers fetch payloads.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "log/disk.h"
#include "log/log.h"

namespace baton::log {

inline constexpr std::size_t kOpenSegmentsMax = 16;

struct SegmentInfo {
  Lsn first = 0;
  Lsn last = 0;             // where older segments were removed behind it, at most this
  std::uint64_t bytes = 0;  // length of the file
  friend bool operator==(const SegmentInfo&, const SegmentInfo&) = default;
};

class Segments {
 public:
  Segments(Disk& disk, std::vector<SegmentInfo> found);

  std::vector<SegmentInfo> list() const;  // oldest first; the last one is being written
  void add(const SegmentInfo& segment);
  void extend_newest(Lsn last);
  // The newest segment stays: it says where the log ends. Nobody waits for the file to go, which may take
  // long.
  Status remove(Lsn first);

  // Reads `length` bytes at `offset` of the segment that holds `lsn`, all or nothing. The record has to be
  // durable. What was read is not checked: whoever asked knows a hash of it. Errc::not_found if the segment
  // was removed here, corrupt if it should be there and is not.
  Result<Bytes> read(Lsn lsn, std::uint64_t offset, std::size_t length);
  // Likewise, if it takes no waiting for anything: whoever reads a segment from its beginning to its end
  // finds most of it in memory.
  std::optional<Bytes> read_at_once(Lsn lsn, std::uint64_t offset, std::size_t length);

 private:
  struct OpenFile {
    std::shared_ptr<File> file;  // shared: a reader may hold it while it is dropped from the cache
    std::uint64_t last_used = 0;
  };
  Result<std::shared_ptr<File>> file_with(Lsn lsn);

  Disk& disk_;
  const std::vector<SegmentInfo> found_;  // when it began
  mutable std::mutex mutex_;
  std::map<Lsn, SegmentInfo> segments_;  // by first lsn
  std::map<Lsn, OpenFile> open_;
  std::uint64_t uses_ = 0;
};

}  // namespace baton::log
