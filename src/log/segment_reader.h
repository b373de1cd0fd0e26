// Reads the batches of one segment in order and stops at the first place where no whole batch stands.
//
// It does not say what that place means. Whether it is the end, a crash's torn tail or damage is for
// recovery, which knows what lies behind it and whether another segment pins the end.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "log/disk.h"
#include "log/format.h"

namespace baton::log {

using Visitor = std::function<Status(const Record&)>;

// A stretch of a file, read in large pieces because most batches are small.
class FileWindow {
 public:
  FileWindow(File& file, std::uint64_t file_bytes) : file_(file), file_bytes_(file_bytes) {}

  std::uint64_t file_bytes() const { return file_bytes_; }
  // Up to `length` bytes from `offset`, fewer at the end of the file; valid until the next call. The bytes
  // may be changed in place as long as they are put back.
  Result<std::span<std::byte>> at(std::uint64_t offset, std::uint64_t length);
  void forget() { bytes_.clear(); }  // what is at hand; the file may have changed

 private:
  File& file_;
  std::uint64_t file_bytes_;
  std::uint64_t start_ = 0;
  Bytes bytes_;
};

// How far a log has been read.
struct Position {
  Lsn last = 0;
  std::uint64_t end = 0;  // offset behind the last batch
  std::uint64_t chain = 0;
  Instant time;
};

class SegmentReader {
 public:
  // `time` is that of the last record before this segment.
  SegmentReader(FileWindow& window, const SegmentHeader& header, Instant time);

  // Takes the next batch, if a whole one stands at position().end, and moves behind it.
  Result<bool> next();
  // Hands out the records of the batch just taken, from lsn `from` on.
  Status visit(Lsn from, const Visitor& visitor);

  const Position& position() const { return position_; }
  const BatchHeader& batch() const { return batch_; }
  const std::string& complaint() const { return complaint_; }  // why next() took nothing

 private:
  bool refuse(std::string why);
  bool check_header(ByteView bytes);
  std::optional<Instant> check_records(ByteView batch);  // the time of the last one

  FileWindow& window_;
  const SegmentHeader header_;
  Position position_;
  BatchHeader batch_;
  std::uint64_t batch_offset_ = 0;
  std::string complaint_;
};

}  // namespace baton::log
