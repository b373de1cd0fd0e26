// The authority's one question: given all that is recorded, what does this request come to?
#pragma once

#include <optional>

#include "core/decision.h"
#include "core/request.h"
#include "core/state.h"
#include "core/worker/worker_registry.h"

namespace baton::core {

Decision decide(const State& state, const WorkerRegistry& workers, const Request& request, const Moment& at);

// What time has brought about for the task this request speaks of, or for the service of the instance that
// makes it; to be recorded first.
std::optional<Event> due_before(const State& state, const WorkerRegistry& workers, const Request& request,
                                const Moment& at);

}  // namespace baton::core
