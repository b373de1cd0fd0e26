// Makes one recorded fact true. Runs the same on a fresh decision and on replay; reads no clock, evaluates no
// policy, cannot refuse. What decide() promised is checked, for a log that breaks it must not be served.
#pragma once

#include "core/event.h"
#include "core/state.h"

namespace baton::core {

// What the log knows about the entry that carries the event.
struct Stamp {
  Lsn lsn = 0;
  Epoch epoch = 0;
  Instant time;
  std::uint32_t body_end = 0;  // where the record's body ends, in the terms of BlobRef::offset
};

void apply(State& state, const Event& event, const Stamp& stamp);

}  // namespace baton::core
