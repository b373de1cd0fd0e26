// Messages that nobody tries any more: put back into their old places, or forgotten.
#pragma once

#include <optional>

#include "core/decision.h"
#include "core/state.h"

namespace baton::core {

Decision decide(const State& state, const ReplayLetters& request, const Moment& at);
Decision decide(const State& state, const PurgeLetters& request, const Moment& at);
// The oldest, where there are more than may be kept; a bounded amount.
std::optional<LettersPurged> surplus_letters(const State& state, const Moment& at);

}  // namespace baton::core
