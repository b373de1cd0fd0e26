// What streams remember and need no longer.
#pragma once

#include <optional>

#include "core/decision.h"
#include "core/state.h"

namespace baton::core {

// A bounded amount of it.
std::optional<StreamsForgotten> overdue_to_forget(const State& state, const Moment& at);

}  // namespace baton::core
