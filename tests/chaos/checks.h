// The checks of a history. Each looks at it in a way of its own, and says what it found wrong, in words;
// nothing wrong is an empty list.
#pragma once

#include <string>
#include <vector>

#include "tests/chaos/history.h"
#include "tests/chaos/log_entries.h"

namespace baton::chaos {

using Complaints = std::vector<std::string>;

// Who returned before another began has the smaller lsn: order by lsn is order in time.
Complaints check_order(const std::vector<Operation>& history);

// The log is a legal sequence, every reply is what it explains, and all that is in it was asked for by
// somebody. Whatever a client does not know the outcome of may be in it or not.
Complaints check_against_log(const std::vector<Operation>& history, const Log& log);

// What happened to each task can be put into an order that explains every reply and respects time, found by
// search and without a look at any lsn but as a name.
Complaints check_tasks(const std::vector<Operation>& history);

// No two workers believe at the same time that they hold a task. True only while the coordinator's clock does
// not jump ahead.
Complaints check_ownership(const std::vector<Operation>& history);

// The resource that workers write to takes only fences that grow. Whoever completed a task had the last word.
struct ResourceReport {
  std::uint64_t accepted = 0;
  std::uint64_t stale = 0;  // refused
  Complaints complaints;
};
ResourceReport check_resource(const std::vector<Operation>& history);

// After everything has been drained: all that was acknowledged was completed, once, and nothing else was.
struct Totals {
  std::uint64_t submitted = 0;  // acknowledged
  std::uint64_t recovered = 0;  // of unknown outcome, and there
  std::uint64_t lost = 0;
  std::uint64_t phantom = 0;
  std::uint64_t doubly_completed = 0;
  std::uint64_t repeated_work = 0;  // grants beyond the first of a task
  Complaints complaints;
};
Totals check_totals(const std::vector<Operation>& history, const Log& log);

}  // namespace baton::chaos
