// What operators ask about streams. Everything here only looks, and no further than its limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/state.h"
#include "core/stream/presence.h"
#include "stream/work_batch.h"

namespace baton::core {

inline constexpr std::size_t kListStreamsMax = 1000;                   // rows of one answer
inline constexpr std::size_t kStreamsExaminedMax = 100'000;            // streams looked at for it
inline constexpr std::size_t kLettersBytesMax = std::size_t{8} << 20;  // of one page, but at least one letter

// Who looks, and when: an instance that was not heard of for longer than `stale` counts as gone.
struct StreamLook {
  std::string ns;
  Instant now;
  Duration stale = stream::kStale;
  std::size_t count_max = 100;
  std::uint64_t from = 0;  // cursor
};
template <class View>
struct StreamPage {
  std::vector<View> rows;
  std::uint64_t next = 0;  // where to go on, 0 at the end
};
// The first of all that there are.
template <class View>
struct StreamRows {
  std::vector<View> rows;
  bool is_complete = true;  // false: there was more to look at than is looked at, perhaps of other namespaces
};

// A lane of a service.
struct LaneView {
  std::string service;
  stream::Lane lane = stream::Lane::outbox;
  std::uint64_t waiting = 0;  // messages that nobody holds
  std::uint64_t held = 0;
  std::uint64_t dead = 0;
  std::uint64_t streams = 0;  // that have messages
  std::uint64_t held_streams = 0;
  std::uint64_t parked_streams = 0;
  std::optional<Duration> oldest_claimable;  // none: nothing can be claimed
};
LaneView lane_view(const streams::Service& service, stream::Lane lane, Instant now);
StreamPage<LaneView> lanes(const State& state, const StreamLook& look);  // by service

struct InstanceView {
  std::string service;
  stream::InstanceId id;
  std::optional<std::int32_t> rank;  // among the active ones of its service that ask for work
  std::string host;
  std::int32_t process = 0;
  Duration silent;
  bool is_stale = false;
  std::uint64_t held_streams = 0;
  std::uint64_t held_messages = 0;
};
StreamPage<InstanceView> instances(const State& state, const Presence& presence, const StreamLook& look);

// A stream whose messages have been there for long, and what is the matter with it.
struct StreamView {
  std::string service;
  stream::Lane lane = stream::Lane::outbox;
  stream::StreamId id;
  std::int32_t partition = 0;
  std::uint32_t messages = 0;
  Duration waits;  // its first message
  std::string state;
};
StreamRows<StreamView> lag(const State& state, const StreamLook& look);

struct PartitionView {
  std::string service;
  stream::Lane lane = stream::Lane::outbox;
  std::int32_t partition = 0;
  std::uint64_t streams = 0;
  std::uint64_t messages = 0;
  std::optional<Duration> oldest_claimable;
  std::optional<stream::InstanceId> offered_to;  // none: nobody is at work
};
// Those with the most messages, of as many streams as are looked at.
StreamRows<PartitionView> partitions(const State& state, const Presence& presence, const StreamLook& look);
// The active instance that streams of a partition are offered to first.
std::optional<stream::InstanceId> owner_of(const State& state, const Presence& presence,
                                           const StreamLook& look, Slot service, std::int32_t partition);

struct LetterView {
  std::uint64_t number = 0;
  std::string service;
  stream::Lane lane = stream::Lane::outbox;
  streams::Message message;
  std::optional<stream::StreamId> stream;
  std::int32_t partition = -1;
  bool parks = false;
  Duration dead_for;
  stream::InstanceId by;
};
// A page of those named that are there, whose cursor is a place among the names; or of all.
StreamPage<LetterView> letters(const State& state, const StreamLook& look,
                               const std::vector<std::uint64_t>& named);

// How many there are of what, in all namespaces.
struct StreamTally {
  std::uint64_t services = 0;
  std::uint64_t instances = 0;
  std::uint64_t streams = 0;  // that have messages
  std::uint64_t waiting = 0;
  std::uint64_t held = 0;
  std::uint64_t dead = 0;
};
StreamTally stream_tally(const State& state);

}  // namespace baton::core
