#include "tests/sim/coverage.h"

#include <fmt/format.h>

#include <optional>

namespace baton::sim {
namespace {

using namespace core;

constexpr std::size_t kOps = static_cast<std::size_t>(Op::count);
constexpr std::size_t kFounds = static_cast<std::size_t>(Found::count);
constexpr std::size_t kRelations = static_cast<std::size_t>(Relation::count);

constexpr std::string_view kOpNames[] = {"extend",  "extend-many", "complete", "fail",
                                         "release", "cancel",      "requeue"};
constexpr std::string_view kFoundNames[] = {"waiting", "leased", "completed", "failed", "dead", "gone"};
constexpr std::string_view kRelationNames[] = {"current", "lapsed",  "expired", "old",
                                               "other",   "unknown", "none"};

std::size_t index_of(const Cell& cell) {
  std::size_t index = static_cast<std::size_t>(cell.op);
  index = index * kFounds + static_cast<std::size_t>(cell.found);
  index = index * kRelations + static_cast<std::size_t>(cell.relation);
  return index * 4 + (cell.again ? 2u : 0u) + (cell.restarted ? 1u : 0u);
}

Cell cell_at(std::size_t index) {
  Cell cell;
  cell.restarted = index & 1;
  cell.again = index & 2;
  index /= 4;
  cell.relation = static_cast<Relation>(index % kRelations);
  index /= kRelations;
  cell.found = static_cast<Found>(index % kFounds);
  cell.op = static_cast<Op>(index / kFounds);
  return cell;
}

bool names_a_lease(Op op) { return op < Op::cancel; }

// What cannot happen, and why. Everything else has to.
struct Unreachable {
  std::optional<Found> found;  // none: whatever
  Relation relation;
  std::string_view why;
};
constexpr Unreachable kUnreachable[] = {
    {Found::waiting, Relation::current, "a waiting task has no lease"},
    {Found::waiting, Relation::lapsed, "a waiting task has no lease"},
    {Found::completed, Relation::current, "a finished task has no lease"},
    {Found::completed, Relation::lapsed, "a finished task has no lease"},
    {Found::failed, Relation::current, "a finished task has no lease"},
    {Found::failed, Relation::lapsed, "a finished task has no lease"},
    {Found::dead, Relation::current, "a finished task has no lease"},
    {Found::dead, Relation::lapsed, "a finished task has no lease"},
    {Found::gone, Relation::current, "a task that is gone has no lease"},
    {Found::gone, Relation::lapsed, "a task that is gone has no lease"},
};

}  // namespace

std::string_view name_of(Op op) { return kOpNames[static_cast<std::size_t>(op)]; }
std::string_view name_of(Found state) { return kFoundNames[static_cast<std::size_t>(state)]; }
std::string_view name_of(Relation lease) { return kRelationNames[static_cast<std::size_t>(lease)]; }

std::string_view why_unreachable(const Cell& cell) {
  if (names_a_lease(cell.op) && cell.relation == Relation::none) return "the operation names a lease";
  if (!names_a_lease(cell.op)) return cell.relation == Relation::none ? "" : "the operation names no lease";
  for (const Unreachable& row : kUnreachable) {
    if (row.relation == cell.relation && (!row.found || *row.found == cell.found)) return row.why;
  }
  return "";
}

Found found(const History& history, TaskId id) {
  const SeenTask* task = history.task(id.lsn);
  if (task == nullptr || task->id != id || task->purged) return Found::gone;
  return static_cast<Found>(task->state);
}

Relation relation(const History& history, const SecretKey& key, TaskId task, const LeaseId& lease,
                  Instant now) {
  const SeenLease* seen = history.lease(lease.lsn);
  if (seen == nullptr || seen->epoch != lease.epoch ||
      lease.nonce != lease_nonce(key, lease.epoch, lease.lsn, seen->task)) {
    return Relation::unknown;
  }
  if (seen->task != task.lsn) return Relation::other;
  if (!seen->over) return now < seen->expiry ? Relation::current : Relation::lapsed;
  return seen->how == Ended::expired ? Relation::expired : Relation::old;
}

std::uint64_t& Coverage::at(const Cell& cell) { return counts[index_of(cell)]; }

void Coverage::count(const Request& request, const History& history, const SecretKey& key, Instant now,
                     Epoch epoch, bool again) {
  const auto lease_op = [&](Op op, const TaskRef& task, const LeaseId& lease) {
    if (!task.key.empty()) return;
    ++at({op, found(history, task.id), relation(history, key, task.id, lease, now), again,
          task.id.epoch < epoch});
  };
  const auto task_op = [&](Op op, const TaskRef& task) {
    if (!task.key.empty()) return;
    ++at({op, found(history, task.id), Relation::none, again, task.id.epoch < epoch});
  };
  if (const auto* extend = std::get_if<ExtendLease>(&request))
    lease_op(Op::extend, extend->task, extend->lease);
  if (const auto* many = std::get_if<ExtendLeases>(&request)) {
    for (const ExtendLease& item : many->items) lease_op(Op::extend_many, item.task, item.lease);
  }
  if (const auto* complete = std::get_if<CompleteTask>(&request))
    lease_op(Op::complete, complete->task, complete->lease);
  if (const auto* fail = std::get_if<FailTask>(&request)) lease_op(Op::fail, fail->task, fail->lease);
  if (const auto* release = std::get_if<ReleaseTask>(&request))
    lease_op(Op::release, release->task, release->lease);
  if (const auto* cancel = std::get_if<CancelTask>(&request)) task_op(Op::cancel, cancel->task);
  if (const auto* requeue = std::get_if<RequeueTask>(&request)) task_op(Op::requeue, requeue->task);
}

void Coverage::add(const Coverage& other) {
  for (std::size_t i = 0; i < kCells; ++i) counts[i] += other.counts[i];
}

std::vector<std::string> Coverage::missing() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kCells; ++i) {
    const Cell cell = cell_at(i);
    if (counts[i] > 0 || !why_unreachable(cell).empty()) continue;
    names.push_back(fmt::format("{} of a {} task under {}, {}, {}", name_of(cell.op), name_of(cell.found),
                                cell.relation == Relation::none ? "no lease" : name_of(cell.relation),
                                cell.again ? "again" : "first",
                                cell.restarted ? "after a restart" : "in the same epoch"));
  }
  return names;
}

std::string Coverage::table() const {
  fmt::memory_buffer out;
  const auto to = std::back_inserter(out);
  std::size_t reached = 0;
  std::size_t reachable = 0;
  for (std::size_t op = 0; op < kOps; ++op) {
    fmt::format_to(to, "\n  {:<12}", kOpNames[op]);
    for (const std::string_view relation_name : kRelationNames) fmt::format_to(to, "{:>34}", relation_name);
    for (std::size_t state = 0; state < kFounds; ++state) {
      fmt::format_to(to, "\n    {:<10}", kFoundNames[state]);
      for (std::size_t lease = 0; lease < kRelations; ++lease) {
        std::string shown;
        for (std::size_t i = 0; i < 4; ++i) {
          const Cell cell{static_cast<Op>(op), static_cast<Found>(state), static_cast<Relation>(lease),
                          (i & 2) != 0, (i & 1) != 0};
          if (!why_unreachable(cell).empty()) continue;
          ++reachable;
          reached += counts[index_of(cell)] > 0;
          shown += fmt::format("{}{}", i == 0 ? "" : "/", counts[index_of(cell)]);
        }
        fmt::format_to(to, "{:>34}", shown.empty() ? "-" : shown);
      }
    }
  }
  return fmt::format(
      "coverage: {} of {} cells; in each first/first after a restart/again/again after a restart{}\n",
      reached, reachable, fmt::to_string(out));
}

}  // namespace baton::sim
