// Lays records out in batches and segments and brings them to the disk. Knows no thread and no clock.
//
//   append … append   begin_flush          perform              finish
//   [ filling ] ---------------> [ Flush ] -------> on the disk -------> durable()
//
// A batch's place in the log is fixed when its first record is appended. perform() touches nothing that
// append() and begin_flush() touch, so it may run on another thread while the next batch fills.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "log/control.h"
#include "log/disk.h"
#include "log/format.h"
#include "log/segments.h"
#include "log/successor.h"

namespace baton::log {

// Where a log ends, as recovery found it.
struct LogEnd {
  PreviousLink tail;         // all zero: the log is empty
  std::uint64_t number = 0;  // of the last segment
  Instant time;
  std::uint32_t epoch = 0;
};

// A sealed batch on its way to the disk.
struct Flush {
  Bytes bytes;  // room for the header, then the records
  BatchHeader header;
  Lsn last = 0;
  std::uint64_t offset = 0;
  bool opens_segment = false;
};

class LogWriter {
 public:
  // Starts a new segment with `epoch` at the first flush; the tail that recovery read is never written again.
  LogWriter(Disk& disk, const Options& options, const Uuid& uuid, const LogEnd& end, std::uint32_t epoch,
            std::vector<SegmentInfo> segments);
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  bool has_room() const;
  Place append(std::uint16_t type, Instant time, ByteView body);
  // What the segment being written can still take; 0 before the first one.
  std::uint64_t left_in_segment() const { return options_.segment_bytes - next_offset_; }
  bool is_near_end() const {
    const std::uint64_t left = left_in_segment();
    return left > 0 && left < end_margin(options_.segment_bytes, batch_extent_max(options_));
  }
  // The next batch begins a segment. False while one is on its way, or the file for it is not there.
  bool end_segment();
  Lsn last() const { return last_; }
  Lsn durable() const { return durable_; }
  std::uint32_t epoch() const { return epoch_; }
  const Uuid& uuid() const { return uuid_; }
  std::size_t record_bytes_max() const { return log::record_bytes_max(options_); }

  // The filling batch, unless it is empty or a flush is in flight. A flush whose perform() failed stays in
  // flight for ever: its outcome is unknown, so nothing may follow it.
  std::optional<Flush> begin_flush();
  Status perform(Flush& flush);
  void finish(Flush flush);

  Segments& segments() { return segments_; }
  Successor& successor() { return successor_; }
  Disk& disk() { return disk_; }

  // Records in CONTROL that the log ends here. Everything appended has to be durable.
  Status close();

 private:
  void open_batch(Instant time);
  Status start_segment(const Flush& flush);
  Status write_durably(std::uint64_t offset, ByteView bytes);

  Disk& disk_;
  const Options options_;
  const Uuid uuid_;
  const std::uint32_t epoch_;
  Segments segments_;
  Successor successor_;

  // The appending side.
  Flush filling_;
  Bytes spare_;  // the buffer of the batch before last, used again
  Lsn last_ = 0;
  Lsn durable_ = 0;
  Instant last_time_;
  std::uint64_t next_offset_ = 0;
  bool in_flight_ = false;
  bool ends_segment_ = false;

  // The disk side, touched only by perform().
  std::unique_ptr<File> file_;
  PreviousLink tail_;
  std::uint64_t number_ = 0;
};

}  // namespace baton::log
