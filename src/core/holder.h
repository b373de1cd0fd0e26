// Who holds leases: the table of workers with a lease, and the timer of when leases expire.
#pragma once

#include <string_view>

#include "core/state.h"

namespace baton::core {

// The lease's own fields are set; from here on it is counted, timed and in the digest.
void start_holding(State& state, Slot lease, std::string_view ns, std::string_view worker);
void stop_holding(State& state, Slot lease);
void move_expiry(State& state, Slot lease, Instant expiry);

std::string_view worker_of(const State& state, const Lease& lease);

}  // namespace baton::core
