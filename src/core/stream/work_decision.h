// What a call of an instance comes to: all it says in one turn, that it leaves, that bytes of a message move.
// Pure, like all decisions.
#pragma once

#include <optional>

#include "core/decision.h"
#include "core/state.h"
#include "core/stream/presence.h"

namespace baton::core {

Decision decide(const State& state, const Presence& presence, const ProcessWork& request, const Moment& at);
Decision decide(const State& state, const LeaveWork& request, const Moment& at);
// Where the bytes belong to a message.
Decision decide_message_move(const State& state, const MoveBlob& request, const Moment& at);

// Other instances of the caller's service that have fallen silent, to be recorded before its call.
std::optional<InstancesEvicted> silent_before(const State& state, const Presence& presence,
                                              const ProcessWork& request, const Moment& at);
// Of any service; it goes with the last.
std::optional<InstancesEvicted> silent_since(const State& state, const Presence& presence, Instant before);
// Whatever an instance says, it is alive. To be told when the call has been decided, and recorded.
void note_life(const State& state, const ProcessWork& request, Instant now, Presence& presence);

}  // namespace baton::core
