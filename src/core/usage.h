// What each namespace holds, counted as it changes, so that a limit on it costs a submission nothing.
#pragma once

#include <string_view>

#include "core/state.h"

namespace baton::core {

// The namespace of a new queue, made if need be, with the queue counted in it.
Slot count_queue(State& state, std::string_view ns);
// Counts a queue out; a namespace without queues is forgotten.
void uncount_queue(State& state, Slot space);

// The task's lane and payload are set.
void count_task(State& state, const Task& task);
void uncount_task(State& state, const Task& task);

const Namespace& usage_of(const State& state, std::string_view ns);  // all zero if it holds nothing

}  // namespace baton::core
