#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "tests/chaos/checks.h"

namespace baton::chaos {
namespace {

// The coordinator counts whole milliseconds: a lease may end by so much earlier than the worker reckons.
constexpr std::int64_t kGrainUs = 1000;

bool has_entry_of_its_own(const Operation& o) {
  return (o.kind == Kind::submit && !o.existed) || (o.kind == Kind::lease && o.lease != 0);
}

// The time during which a worker believed that a task was its own.
struct Holding {
  std::string worker;
  Lsn lease = 0;
  std::int64_t from_us = 0;
  std::int64_t until_us = 0;
};

// A lease counts from when it was asked for, as workers are told to, and ends when its worker has said so.
std::map<Lsn, std::vector<Holding>> holdings_of(const std::vector<Operation>& history) {
  std::map<Lsn, Holding> by_lease;
  std::map<Lsn, Lsn> task_of;
  for (const Operation& o : history) {
    if (o.kind != Kind::lease || o.outcome != Outcome::done || o.lease == 0) continue;
    by_lease[o.lease] = {o.who, o.lease, o.returned_us, o.invoked_us + o.ttl_us};
    task_of[o.lease] = o.task;
  }
  for (const Operation& o : history) {
    const auto held = by_lease.find(o.lease);
    if (held == by_lease.end()) continue;
    if (o.kind == Kind::extend && o.outcome == Outcome::done)
      held->second.until_us = std::max(held->second.until_us, o.invoked_us + o.ttl_us);
  }
  for (const Operation& o : history) {
    const auto held = by_lease.find(o.lease);
    if (held != by_lease.end() && (o.kind == Kind::complete || o.kind == Kind::fail))
      held->second.until_us = std::min(held->second.until_us, o.invoked_us);
  }
  std::map<Lsn, std::vector<Holding>> by_task;
  for (auto& [lease, holding] : by_lease) by_task[task_of[lease]].push_back(holding);
  return by_task;
}

}  // namespace

Complaints check_order(const std::vector<Operation>& history) {
  std::vector<const Operation*> by_begin, by_end;
  for (const Operation& o : history) {
    if (o.outcome == Outcome::done && o.lsn != 0) by_begin.push_back(&o);
  }
  by_end = by_begin;
  std::ranges::sort(by_begin, {}, &Operation::invoked_us);
  std::ranges::sort(by_end, {}, &Operation::returned_us);
  Complaints complaints;
  Lsn reached = 0;  // by whoever had returned before this one began
  auto next = by_end.begin();
  for (const Operation* o : by_begin) {
    for (; next != by_end.end() && (*next)->returned_us < o->invoked_us; ++next)
      reached = std::max(reached, (*next)->lsn);
    if (o->lsn < reached || (o->lsn == reached && has_entry_of_its_own(*o)))
      complaints.push_back(
          fmt::format("{} was told lsn {} after somebody had been told {}", o->who, o->lsn, reached));
  }
  return complaints;
}

Complaints check_ownership(const std::vector<Operation>& history) {
  Complaints complaints;
  for (auto& [task, holdings] : holdings_of(history)) {
    std::vector<Holding> in_time = holdings;
    std::ranges::sort(in_time, {}, &Holding::from_us);
    for (std::size_t at = 1; at < in_time.size(); ++at) {
      const Holding &earlier = in_time[at - 1], &later = in_time[at];
      if (later.from_us < earlier.until_us - kGrainUs && earlier.from_us < earlier.until_us &&
          later.from_us < later.until_us)
        complaints.push_back(fmt::format("task {}: {} believed to hold it under {} when {} got it under {}",
                                         task, earlier.worker, earlier.lease, later.worker, later.lease));
    }
  }
  return complaints;
}

ResourceReport check_resource(const std::vector<Operation>& history) {
  std::vector<const Operation*> writes;
  for (const Operation& o : history) {
    if (o.kind == Kind::write) writes.push_back(&o);
  }
  std::ranges::sort(writes, {}, &Operation::invoked_us);
  ResourceReport report;
  std::map<Lsn, Lsn> highest;  // fence, by task
  for (const Operation* write : writes) {
    Lsn& fence = highest[write->task];
    const bool is_stale = write->lease < fence;
    ++(is_stale ? report.stale : report.accepted);
    if (!is_stale) fence = write->lease;
  }
  for (const Operation& o : history) {
    if (o.kind != Kind::complete || o.word != "COMMITTED") continue;
    if (highest[o.task] != o.lease)
      report.complaints.push_back(
          fmt::format("task {} was completed under {}, but {} wrote last", o.task, o.lease, highest[o.task]));
  }
  return report;
}

}  // namespace baton::chaos
