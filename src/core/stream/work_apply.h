// Makes facts about streams true. Like all of apply: no clock, no policy, and it cannot refuse.
#pragma once

#include "core/apply.h"
#include "core/event.h"
#include "core/state.h"

namespace baton::core {

void fact(State& state, const WorkBatchApplied& event, const Stamp& at);
void fact(State& state, const InstancesEvicted& event, const Stamp& at);
void fact(State& state, const InstanceLeft& event, const Stamp& at);
void fact(State& state, const LettersReplayed& event, const Stamp& at);
void fact(State& state, const LettersPurged& event, const Stamp& at);
void fact(State& state, const StreamsForgotten& event, const Stamp& at);
void fact(State& state, const MessageBlobMoved& event, const Stamp& at);

}  // namespace baton::core
