// What follows from a report, a renewal or a new message for the stream it belongs to. Deciding and applying
// share it: the one on a draft, the other on what is.
#pragma once

#include <algorithm>

#include "core/limits.h"
#include "core/stream/streams.h"

namespace baton::core::streams {

constexpr std::int32_t done_bit(stream::Lane lane) {
  return static_cast<std::int32_t>(lane == stream::Lane::outbox ? stream::MessageStatus::published
                                                                : stream::MessageStatus::event_stored);
}

inline constexpr auto kFailed = static_cast<std::int32_t>(stream::MessageStatus::failed);

constexpr Duration retry_delay(const StreamRules& rules, std::uint32_t failures) {
  const std::int64_t units = failures > 3 ? 10 : std::min<std::int64_t>(std::int64_t{1} << failures, 10);
  return {rules.retry_unit.ms * units};
}

inline void make_ready(Stream& of, Instant at, Lsn lsn) {
  if (of.ready_at == at) return;
  of.ready_at = at;
  of.ready_since = lsn;
}

// One of the messages that were handed out is reported on; the last such report gives the stream back.
inline void take_report(Stream& of, bool removed, bool parks, Instant now) {
  --of.outstanding;
  of.pending -= removed ? 1 : 0;
  of.parking += parks ? 1 : 0;
  of.idle_since = now;
  if (of.outstanding > 0) return;
  of.owner = 0;
  of.lease_until = {};
}

// Its first message was lost too often; whoever had the stream has it no more.
inline void lose(Stream& of, bool parks) {
  --of.pending;
  of.parking += parks ? 1 : 0;
  of.owner = 0;
  of.outstanding = 0;
  of.lease_until = {};
}

inline void take_message(Stream& of, Instant now, Lsn lsn) {
  if (of.pending == 0 && of.owner == 0 && of.parking == 0) make_ready(of, now, lsn);
  ++of.pending;
  ++of.next_seq;
}

}  // namespace baton::core::streams
