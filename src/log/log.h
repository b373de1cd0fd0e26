// The log as the engine sees it: records go in, and later they are durable, in order.
//
//   append, append, …            filling batch            one flush in flight
//   --------------------> [ records … ] --start_flush--> [ write, sync ] ------> durable()
//
// Records gathered while a flush is in flight leave together in the next one. Any error of a flush is
// final: the outcome is unknown, so nobody may be told anything, and the process has to end.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"

namespace baton::log {

using Lsn = std::uint64_t;  // position of a record in history: 1, 2, 3, …

inline constexpr std::size_t kRecordBytesMax = std::size_t{4} << 20;  // body of one record
inline constexpr std::size_t kBatchRecordsMax = 4096;

// Where a record lies: its lsn names the segment, `offset` is where its body starts in that segment.
struct Place {
  Lsn lsn = 0;
  std::uint32_t offset = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

// One record as read back. `body` is borrowed for the duration of the call that hands it out.
struct Record {
  Place place;
  std::uint32_t epoch = 0;
  std::uint16_t type = 0;
  Instant time;
  ByteView body;
};

// How far a log in segments can go on without a new one.
struct Headroom {
  std::uint64_t left_in_segment = UINT64_MAX;
  bool can_rotate = true;  // false once making the next segment has failed: refuse what can be refused
};

class Log {
 public:
  virtual ~Log() = default;

  // False while the filling batch is at its limit; a flush has to start first.
  virtual bool has_room() const = 0;
  // Adds a record to the filling batch. Requires has_room() and a time not before the last one.
  virtual Place append(std::uint16_t type, Instant time, ByteView body) = 0;
  // Starts to make everything appended durable, once the flush in flight has ended. What is appended
  // afterwards waits for the next start: flushes are as large as whoever starts them likes.
  virtual void start_flush() = 0;

  virtual Lsn last() const = 0;     // of the newest record appended
  virtual Lsn durable() const = 0;  // every record up to here survives a power cut
  // The first error, if a flush has failed. From then on durable() stands still.
  virtual Status failure() const = 0;

  virtual Headroom headroom() const { return {}; }
  // Tries again to make the next segment; there may be space by now.
  virtual void prepare_rotation() {}
  // What is appended next begins a segment, and all before it can go into a snapshot. False: not now.
  virtual bool end_segment() { return false; }
};

}  // namespace baton::log
