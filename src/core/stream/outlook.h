// Whether somebody who found nothing to claim is likely to find something now, and if not, when.
#pragma once

#include "core/apply.h"
#include "core/event.h"
#include "core/limits.h"
#include "core/state.h"

namespace baton::core {

struct StreamOutlook {
  bool has_news = false;           // something can be claimed that could not be before `since`
  Instant next = streams::kNever;  // when time alone will bring some
};

// Of a service: streams that came free, are due again, were lost, or are no longer offered to one instance
// alone.
StreamOutlook outlook(const State& state, const StreamRules& rules, Slot service, Instant since, Instant now);

// Whether an entry, which has been applied, made something claimable that was not so before. It wakes those
// who wait; a message behind others, or a report on one, does not.
bool brings_work(const State& state, const Event& event, const Stamp& at);

}  // namespace baton::core
