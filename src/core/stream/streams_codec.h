// Streams in a snapshot: behind the tasks, and not at all where there never was a stream. First how many
// there are of each kind of fact, then the facts, kind by kind. Where one refers to another, it is by its
// place among those of its kind, counted from 1.
#pragma once

#include <array>
#include <cstddef>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "core/stream/keeper.h"
#include "core/stream/streams.h"

namespace baton::core::streams {

// In the order in which they are written.
enum class FactKind : std::uint8_t {
  service,
  instance,
  stream,
  message,
  history,
  dead,
  kept,
  seen,
  tombstone,
  event,
  checkpoint,
  receptor
};
inline constexpr std::size_t kFactKinds = 12;

class StreamsWriter {
 public:
  explicit StreamsWriter(const Streams& all) : all_(all) {}
  bool next(ByteWriter& out);  // one fact; false when there is no more

 private:
  void plan();
  void head(ByteWriter& out) const;
  void write(ByteWriter& out, FactKind kind, Slot slot);
  std::uint32_t place(FactKind kind, Slot slot) const;

  const Streams& all_;
  bool planned_ = false;
  std::array<std::vector<Slot>, kFactKinds> facts_;
  std::array<std::unordered_map<Slot, std::uint32_t>, kFactKinds> places_;
  std::unordered_map<Slot, std::uint32_t> space_places_;  // of any service there
  std::size_t kind_ = 0;
  std::size_t next_ = 0;
};

class StreamsReader {
 public:
  StreamsReader(Streams& all, std::uint64_t& digest) : all_(all), digest_(digest), keeper_(all, digest) {}
  void item(ByteReader& in);  // fails it where the fact makes no sense
  bool finish();              // false: something is missing

 private:
  void head(ByteReader& in);
  void read(ByteReader& in, FactKind kind);
  void put(ByteReader& in, FactKind kind);
  void take(Instance fact);
  void take(Stream fact);
  void take(Message fact);
  void take(Letter fact, bool is_dead);
  Slot slot_at(FactKind kind, std::uint32_t place) const;

  Streams& all_;
  std::uint64_t& digest_;
  Keeper keeper_;
  bool head_read_ = false;
  std::array<std::uint64_t, kFactKinds> expected_{};
  std::array<std::vector<Slot>, kFactKinds> slots_;
  std::size_t kind_ = 0;
  std::uint64_t read_ = 0;  // of this kind
};

}  // namespace baton::core::streams
