// Where each task stands: in its lane while waiting, behind the finished ones of its queue when final. The
// shelf follows from the task's facts, so a state loaded from a snapshot is shelved by the same function.
#pragma once

#include <string_view>

#include "core/state.h"

namespace baton::core {

// `now` is the time of the entry being applied: a task eligible only later goes to the lane's timer.
void shelve(State& state, Slot task, Instant now);
void unshelve(State& state, Slot task);

// The task of this lane that is to be granted next, or 0.
Slot next_in(const State& state, const Lane& lane, Instant now);
// Whether `a` is to be granted before `b`, both of the same priority.
bool is_earlier(const Task& a, const Task& b);

// The lane a task belongs to, made if need be, with the task counted in it.
Slot join_lane(State& state, std::string_view ns, std::string_view queue, std::string_view capabilities,
               std::uint8_t priority);
// Counts a task out; a lane and a queue that hold nothing any more are forgotten.
void leave_lane(State& state, Slot lane);

Slot make_queue(State& state, std::string_view ns, std::string_view name);
void forget_if_empty(State& state, Slot queue);

}  // namespace baton::core
