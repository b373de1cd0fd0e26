// Decides who holds a task and for how long, and what a worker's word is worth. Pure decision logic: a lease
// exists only once its LeaseGranted is in the log.
//
// A lease is held while it is the task's current one and now < expiry. What a worker says under a lease that
// ended is answered from what is remembered:
//
//   the worker ended it itself, says the same again   -> the first answer again, no entry
//   the worker ended it itself, says something else   -> conflict, no entry
//   time or the submitter ended it                    -> cancelled; one TaskCancelled entry per lease
//   never granted for this task, or forgotten         -> lease_unknown, no entry
#pragma once

#include <optional>

#include "core/decision.h"
#include "core/request.h"
#include "core/state.h"
#include "core/worker/worker_registry.h"

namespace baton::core {

Decision decide(const State& state, const WorkerRegistry& workers, const LeaseTask& request,
                const Moment& at);
Decision decide(const State& state, const ExtendLease& request, const Moment& at);
Decision decide(const State& state, const ExtendLeases& request, const Moment& at);
Decision decide(const State& state, const CompleteTask& request, const Moment& at);
Decision decide(const State& state, const FailTask& request, const Moment& at);
Decision decide(const State& state, const ReleaseTask& request, const Moment& at);

// What time alone brings about next: a task without attempts left dies, a lease past its expiry ends. Each is
// an entry of its own, recorded before anything is decided that rests on it.
std::optional<Event> due(const State& state, const Moment& at);
// The same for the one task a request speaks of, where due() may not have come to it yet.
std::optional<Event> due_before(const State& state, std::string_view ns, const TaskRef& task,
                                const Moment& at);

// How long to wait after the failure with this number. `random` decides the jitter.
Duration backoff(const RetryPolicy& policy, std::uint32_t failures, std::uint64_t random);

}  // namespace baton::core
