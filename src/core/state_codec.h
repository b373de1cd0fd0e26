// The state as bytes, in pieces, for snapshots. Only facts are written; lists, timers and name tables are
// made anew when it is read, and the digest of what was read must be the one that was written.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "core/state.h"
#include "core/stream/streams_codec.h"

namespace baton::core {

class StateWriter {
 public:
  explicit StateWriter(const State& state) : state_(state) {}
  // Appends the next piece, of about a megabyte at most, to `out`. False when there is no more.
  bool next(Bytes& out);

 private:
  void head(ByteWriter& out);
  bool item(ByteWriter& out);  // the next one of what follows the head
  void task(ByteWriter& out, const Task& task);

  const State& state_;
  std::vector<Slot> paused_;                 // queues still to be written, last first
  std::vector<Slot> lanes_;                  // likewise
  std::vector<std::uint32_t> lane_numbers_;  // by slot
  std::uint32_t next_lane_ = 0;
  Lsn next_task_ = 0;
  bool head_written_ = false;
  streams::StreamsWriter streams_{state_.streams};
};

class StateReader {
 public:
  // Takes the pieces in order. What a damaged piece leaves behind must not be used.
  Status take(ByteView piece);
  Result<State> finish();

 private:
  void head(ByteReader& in);
  void item(ByteReader& in);
  void paused_queue(ByteReader& in);
  bool task(ByteReader& in);

  struct LaneName {
    std::string ns, queue, capabilities;
    std::uint8_t priority = 0;
  };

  State state_;
  std::vector<LaneName> lanes_;
  std::vector<Slot> shelved_;  // tasks that belong on a shelf
  Lsn newest_ = 0;
  std::uint64_t paused_expected_ = 0;
  std::uint64_t lanes_expected_ = 0;
  std::uint64_t tasks_expected_ = 0;
  std::uint64_t digest_expected_ = 0;
  bool head_read_ = false;
  streams::StreamsReader streams_{state_.streams, state_.digest};
};

}  // namespace baton::core
