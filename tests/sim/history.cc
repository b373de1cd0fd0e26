#include "tests/sim/history.h"

#include <fmt/format.h>

#include "tests/sim/violation.h"

namespace baton::sim {
namespace {

using core::Stamp;
using core::TaskState;

}  // namespace

const SeenTask* History::task(Lsn lsn) const {
  const auto found = tasks_.find(lsn);
  return found == tasks_.end() ? nullptr : &found->second;
}

const SeenLease* History::lease(Lsn lsn) const {
  const auto found = leases_.find(lsn);
  return found == leases_.end() ? nullptr : &found->second;
}

void History::entry(const core::Event& event, const Stamp& at) {
  demand(at.lsn == last_ + 1, "I1", at, "the entry is not the next one");
  demand(at.time >= time_, "I1", at, "time goes back");
  demand(at.epoch >= epoch_, "I1", at, "the epoch goes back");
  demand(at.epoch == epoch_ || std::holds_alternative<core::EpochStarted>(event), "I1", at,
         "an epoch begins without EpochStarted");
  std::visit([&](const auto& fact) { happened(fact, at); }, event);
  last_ = at.lsn;
  epoch_ = at.epoch;
  time_ = at.time;
}

SeenTask& History::known(Lsn lsn) {
  const auto found = tasks_.find(lsn);
  if (found == tasks_.end() || found->second.purged)
    throw Violation{"I3", fmt::format("an entry speaks of task {}, which is not there", lsn)};
  return found->second;
}

SeenTask& History::open(Lsn lsn) {
  SeenTask& task = known(lsn);
  if (is_final(task.state)) throw Violation{"I9", fmt::format("task {} had ended and is changed", lsn)};
  return task;
}

SeenLease& History::held(SeenTask& task, Lsn lsn, const Stamp& at) {
  const auto found = leases_.find(lsn);
  demand(found != leases_.end() && found->second.task == task.id.lsn, "I14", at,
         "under a lease that was never granted for the task");
  demand(task.lease == lsn && !found->second.over, "I14", at, "under a lease that is not the current one");
  demand(at.time < found->second.expiry, "I13", at, "the lease had expired");
  return found->second;
}

void History::end_lease(SeenTask& task, core::Ended how, const Stamp& at) {
  SeenLease& lease = leases_.at(task.lease);
  lease.over = true;
  lease.how = how;
  lease.ended_by = at.lsn;
  task.lease = 0;
  task.free_from = std::min(at.time, lease.expiry);
}

void History::happened(const core::TaskCreated& event, const Stamp& at) {
  if (!event.key.empty()) {
    const bool fresh = keys_.emplace(std::pair(std::string(event.ns), std::string(event.key)), at.lsn).second;
    demand(fresh, "I16", at, "a second task under a key that is in use");
  }
  tasks_[at.lsn] = {.id = {at.epoch, at.lsn},
                    .ns = std::string(event.ns),
                    .queue = std::string(event.queue),
                    .key = std::string(event.key),
                    .payload_hash = event.payload_of_old.length > 0 ? event.payload_of_old.hash
                                    : event.payload.bytes.empty()   ? 0
                                                                    : event.payload.hash,
                    .free_from = at.time};
}

void History::happened(const core::LeaseGranted& event, const Stamp& at) {
  SeenTask& task = open(event.task);
  demand(task.lease == 0, "I8", at, "the task has a lease already");
  demand(task.state == TaskState::waiting, "I11", at, "only a waiting task may be granted");
  demand(event.attempt == task.grants + 1, "I10", at, "the attempt is not the number of grants");
  demand(at.time >= task.free_from, "I12", at, "the lease overlaps the one before");
  demand(event.expiry > at.time, "I12", at, "the lease has no duration");
  demand(at.lsn > task.newest_lease, "I20", at, "the fencing token does not grow");
  leases_[at.lsn] = {.task = event.task,
                     .epoch = at.epoch,
                     .worker = std::string(event.worker),
                     .granted_at = at.time,
                     .expiry = event.expiry};
  task.state = TaskState::leased;
  task.lease = task.newest_lease = at.lsn;
  ++task.grants;
}

void History::happened(const core::LeaseExtended& event, const Stamp& at) {
  SeenLease& lease = held(open(event.task), event.lease, at);
  demand(event.expiry > lease.expiry, "I19", at, "an expiry that was told moves back");
  lease.expiry = event.expiry;
}

void History::happened(const core::LeasesExtended& event, const Stamp& at) {
  for (const auto& item : event.items) happened(item, at);
}

void History::happened(const core::LeaseExpired& event, const Stamp& at) {
  SeenTask& task = open(event.task);
  demand(task.lease == event.lease && task.lease != 0, "I8", at, "expires a lease that is not current");
  demand(at.time >= leases_.at(task.lease).expiry, "I12", at, "expires a lease before its time");
  end_lease(task, core::Ended::expired, at);
  task.state = TaskState::waiting;
}

void History::happened(const core::TaskCompleted& event, const Stamp& at) {
  SeenTask& task = open(event.task);
  held(task, event.lease, at);
  end_lease(task, core::Ended::completed, at);
  task.state = TaskState::completed;
}

void History::happened(const core::TaskCancelled& event, const Stamp& at) {
  const SeenTask& task = known(event.task);
  const auto lease = leases_.find(event.lease);
  demand(lease != leases_.end() && lease->second.task == task.id.lsn, "I15", at,
         "TaskCancelled for a lease that was never granted for the task");
  demand(lease->second.over, "I15", at, "TaskCancelled for a lease that is held");
  demand(lease->second.told == 0, "I15", at, "a second TaskCancelled for one lease");
  ++lease->second.told;
}

void History::happened(const core::TaskFailed& event, const Stamp& at) {
  SeenTask& task = open(event.task);
  held(task, event.lease, at);
  task.failures += event.outcome != core::Ended::released;
  demand(event.failures == task.failures, "I10", at, "the failures are miscounted");
  end_lease(task, event.outcome, at);
  task.state = event.outcome == core::Ended::failed ? TaskState::failed : TaskState::waiting;
}

void History::happened(const core::TaskDead& event, const Stamp& at) {
  SeenTask& task = open(event.task);
  if (task.lease != 0) end_lease(task, core::Ended::dead, at);
  task.state = TaskState::dead;
}

void History::happened(const core::TasksPurged& event, const Stamp& at) {
  for (const Lsn lsn : event.tasks) {
    SeenTask& task = known(lsn);
    demand(is_final(task.state), "I9", at, "forgets a task that has not ended");
    task.purged = true;
    if (!task.key.empty()) keys_.erase({task.ns, task.key});
  }
}

}  // namespace baton::sim
