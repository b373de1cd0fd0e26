// Decides what happens to tasks: submission, cancellation, repetition, pausing of queues, forgetting.
// Pure: reads the state, changes nothing.
#pragma once

#include <optional>

#include "core/decision.h"
#include "core/request.h"
#include "core/state.h"

namespace baton::core {

Decision decide(const State& state, const SubmitTask& request, const Moment& at);
Decision decide(const State& state, const CancelTask& request, const Moment& at);
Decision decide(const State& state, const RequeueTask& request, const Moment& at);
Decision decide(const State& state, const PauseQueue& request, const Moment& at);
Decision decide(const State& state, const ResumeQueue& request, const Moment& at);
Decision decide(const State& state, const PurgeQueue& request, const Moment& at);
Decision decide(const State& state, const MoveBlob& request, const Moment& at);

// The next finished tasks of this queue whose retention is over, if there are any.
std::optional<TasksPurged> overdue_for_purge(const State& state, Slot queue, const Moment& at);

}  // namespace baton::core
