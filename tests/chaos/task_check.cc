#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "tests/chaos/checks.h"

namespace baton::chaos {
namespace {

constexpr std::size_t kOperationsMax = 64;  // of one task; a bit for each
constexpr std::size_t kStepsMax = 2'000'000;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// All that can be known of a task without its log. That a lease expires may happen at any time.
struct Phase {
  bool created = false;
  Lsn held = 0;       // under this lease
  Lsn completed = 0;  // under this lease
  friend auto operator<=>(const Phase&, const Phase&) = default;
};

// Looks for an order of a task's operations in which each reply is right and nobody returned before another
// began that stands in front of it (Wing and Gong's search, with what was tried remembered).
class Search {
 public:
  explicit Search(std::vector<const Operation*> operations) : operations_(std::move(operations)) {}

  enum class Found : std::uint8_t { yes, no, gave_up };

  Found run() {
    if (operations_.size() > kOperationsMax) return Found::gave_up;
    const bool is_created_here = std::ranges::any_of(operations_, [](const Operation* o) {
      return o->kind == Kind::submit && o->outcome == Outcome::done && !o->existed;
    });
    const bool found = explain(0, {.created = !is_created_here});
    if (found) return Found::yes;
    return steps_ >= kStepsMax ? Found::gave_up : Found::no;
  }

 private:
  static std::int64_t end_of(const Operation& o) {
    return o.outcome == Outcome::unknown ? kNever : o.returned_us;
  }

  bool explain(std::uint64_t placed, const Phase& phase) {
    std::int64_t first_end = kNever;
    bool all_placed = true;
    for (std::size_t at = 0; at < operations_.size(); ++at) {
      if ((placed >> at & 1) != 0 || operations_[at]->outcome == Outcome::unknown) continue;
      all_placed = false;
      first_end = std::min(first_end, end_of(*operations_[at]));
    }
    if (all_placed) return true;  // what nobody knows the outcome of need not have happened
    if (++steps_ >= kStepsMax || !tried_.insert({placed, phase}).second) return false;
    for (std::size_t at = 0; at < operations_.size(); ++at) {
      const Operation& o = *operations_[at];
      if ((placed >> at & 1) != 0 || o.invoked_us > first_end) continue;
      Phase then = phase;
      if (fits(o, placed, then) && explain(placed | std::uint64_t{1} << at, then)) return true;
    }
    return false;
  }

  bool has_failed_under(Lsn lease, std::uint64_t placed) const {
    for (std::size_t at = 0; at < operations_.size(); ++at) {
      const Operation& o = *operations_[at];
      if ((placed >> at & 1) != 0 && o.kind == Kind::fail && o.lease == lease &&
          (o.word == "COMMITTED" || o.outcome == Outcome::unknown))
        return true;
    }
    return false;
  }

  // Whether the reply is right here; if so, `phase` is what follows.
  bool fits(const Operation& o, std::uint64_t placed, Phase& phase) const {
    const bool is_held = phase.held == o.lease && o.lease != 0;
    const bool worked = o.outcome == Outcome::unknown || o.word == "COMMITTED";
    switch (o.kind) {
      case Kind::submit:
        if (o.existed != phase.created) return false;
        phase.created = true;
        return true;
      case Kind::lease:
        if (!phase.created || phase.completed != 0) return false;
        phase.held = o.lease;
        return true;
      case Kind::extend:
        if (o.outcome == Outcome::done) return is_held;
        if (o.outcome == Outcome::refused && is_held) phase.held = 0;
        return true;
      case Kind::complete:
        if (worked && is_held)
          phase.completed = o.lease, phase.held = 0;
        else if (o.word == "COMMITTED")
          return phase.completed == o.lease;
        else if (o.outcome != Outcome::unknown && phase.completed == o.lease)
          return false;
        else if (is_held)
          phase.held = 0;
        return true;
      case Kind::fail:
        if (worked && is_held)
          phase.held = 0;
        else if (o.word == "COMMITTED")
          return has_failed_under(o.lease, placed);
        else if (o.outcome != Outcome::unknown && has_failed_under(o.lease, placed))
          return false;
        else if (is_held)
          phase.held = 0;
        return true;
      case Kind::get:
      case Kind::write: return true;
    }
    return false;
  }

  const std::vector<const Operation*> operations_;
  std::set<std::pair<std::uint64_t, Phase>> tried_;
  std::size_t steps_ = 0;
};

bool concerns_a_task(const Operation& o) {
  return o.task != 0 && o.outcome != Outcome::absent && o.kind != Kind::get && o.kind != Kind::write;
}

}  // namespace

Complaints check_tasks(const std::vector<Operation>& history) {
  std::map<Lsn, std::vector<const Operation*>> by_task;
  for (const Operation& o : history) {
    if (concerns_a_task(o)) by_task[o.task].push_back(&o);
  }
  Complaints complaints;
  for (auto& [task, operations] : by_task) {
    switch (Search(operations).run()) {
      case Search::Found::yes: break;
      case Search::Found::no:
        complaints.push_back(fmt::format("task {}: no order of its {} operations explains the replies", task,
                                         operations.size()));
        break;
      case Search::Found::gave_up:
        complaints.push_back(
            fmt::format("task {}: its {} operations are too many to search", task, operations.size()));
        break;
    }
  }
  return complaints;
}

}  // namespace baton::chaos
