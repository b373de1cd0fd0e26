#include "core/apply.h"

#include "base/check.h"
#include "base/mutant.h"
#include "core/digest.h"
#include "core/holder.h"
#include "core/limits.h"
#include "core/names.h"
#include "core/shelf.h"
#include "core/stream/work_apply.h"
#include "core/usage.h"

namespace baton::core {
namespace {

Slot recorded(const State& state, Lsn task) {
  const Slot slot = state.ids.find(task);
  BATON_CHECK(slot != 0);
  return slot;
}

// A blob is the last part of its record.
BlobRef kept(const BlobView& blob, const Stamp& at) {
  const auto length = static_cast<std::uint32_t>(blob.bytes.size());
  if (length == 0) return {};
  return {.lsn = at.lsn, .hash = blob.hash, .offset = at.body_end - length, .length = length};
}

void forget_ending(State& state, Slot slot) {
  state.digest -= fact_hash(state.endings[slot]);
  state.endings.give_back(slot);
}

// Puts `ending` in front of the task's past; the oldest lease beyond what is kept is forgotten. A death that
// ended no lease takes no lease's place; it is the last ending a task gets.
void remember(State& state, Task& task, Ending ending) {
  ending.task = task.lsn;
  ending.next = task.endings;
  const Slot slot = state.endings.take();
  state.endings[slot] = ending;
  state.digest += fact_hash(ending);
  task.endings = slot;

  Slot last_kept = slot;
  const unsigned kept_max = kEndingsKept + (ending.lease == 0 ? 1 : 0);
  for (unsigned kept = 1; kept < kept_max && last_kept != 0; ++kept)
    last_kept = state.endings[last_kept].next;
  if (last_kept == 0 || state.endings[last_kept].next == 0) return;
  forget_ending(state, state.endings[last_kept].next);
  state.endings[last_kept].next = 0;
}

Ending* find_ending(State& state, const Task& task, Lsn lease) {
  for (Slot slot = task.endings; slot != 0; slot = state.endings[slot].next) {
    if (state.endings[slot].lease == lease) return &state.endings[slot];
  }
  return nullptr;
}

// The task's lease is over; how it ended is remembered.
void end_lease(State& state, Task& task, Ending ending) {
  const Slot slot = task.lease;
  const Lease& lease = state.leases[slot];
  ending.lease = lease.lsn;
  ending.lease_epoch = lease.epoch;
  stop_holding(state, slot);
  task.lease = 0;
  remember(state, task, ending);
}

Slot held(State& state, Lsn task, Lsn lease) {
  const Slot slot = recorded(state, task);
  BATON_CHECK(state.tasks[slot].state == TaskState::leased);
  BATON_CHECK(state.leases[state.tasks[slot].lease].lsn == lease);
  return slot;
}

void move_to(State& state, Slot slot, TaskState next, Instant since, const Stamp& at) {
  unshelve(state, slot);
  Task& task = state.tasks[slot];
  task.state = next;
  task.since = since;
  task.place = at.lsn;
  shelve(state, slot, at.time);
}

void fact(State& state, const TaskCreated& event, const Stamp& at) {
  BATON_CHECK(event.eligible_at >= at.time);
  const Slot slot = state.tasks.take();
  Task& task = state.tasks[slot];
  task.lsn = at.lsn;
  task.epoch = at.epoch;
  task.created_at = at.time;
  task.since = event.eligible_at;
  task.place = at.lsn;
  task.payload = event.payload_of_old.length > 0 ? event.payload_of_old : kept(event.payload, at);
  task.lane = join_lane(state, event.ns, event.queue, event.capabilities, event.priority);
  count_task(state, task);

  const bool plain = event.key.empty() && event.retry == RetryPolicy{} && event.max_hold == Duration{} &&
                     event.max_attempts == kDefaultMaxAttempts && event.retry_of == TaskId{};
  if (!plain) {
    task.options = state.options.take();
    state.options[task.options] = {.key = std::string(event.key),
                                   .content = event.content,
                                   .retry = event.retry,
                                   .max_attempts = event.max_attempts,
                                   .max_hold = event.max_hold,
                                   .retry_of = event.retry_of};
  }
  if (!event.key.empty()) state.keys.insert(ScopedName(event.ns, event.key), slot);
  state.ids.append(at.lsn, slot);
  state.digest += fact_hash(state, task);
  shelve(state, slot, at.time);
}

void fact(State& state, const LeaseGranted& event, const Stamp& at) {
  const Slot slot = recorded(state, event.task);
  Task& task = state.tasks[slot];
  BATON_CHECK(task.state == TaskState::waiting && task.lease == 0);
  BATON_CHECK(task.since <= at.time);
  BATON_CHECK(event.attempt == task.attempt + 1);
  BATON_CHECK(event.expiry > at.time);

  const TaskRewrite rewrite(state, task);
  move_to(state, slot, TaskState::leased, at.time, at);
  if (!mutant(Mutant::m14_attempt_not_counted)) task.attempt = event.attempt;
  task.lease = state.leases.take();
  Lease& lease = state.leases[task.lease];
  lease.lsn = at.lsn;
  lease.task = task.lsn;
  lease.granted_at = at.time;
  lease.expiry = event.expiry;
  lease.epoch = at.epoch;
  lease.task_slot = slot;
  start_holding(state, task.lease, state.queue_of(task).ns, event.worker);
}

void fact(State& state, const LeaseExtended& event, const Stamp& at) {
  const Slot slot = state.tasks[held(state, event.task, event.lease)].lease;
  BATON_CHECK(at.time < state.leases[slot].expiry);  // by the entry's own time: what has expired stays so
  BATON_CHECK(event.expiry > state.leases[slot].expiry);
  move_expiry(state, slot, event.expiry);
}

void fact(State& state, const LeasesExtended& event, const Stamp& at) {
  for (const LeaseExtended& item : event.items) fact(state, item, at);
}

void fact(State& state, const LeaseExpired& event, const Stamp& at) {
  const Slot slot = held(state, event.task, event.lease);
  Task& task = state.tasks[slot];
  BATON_CHECK(at.time >= state.leases[task.lease].expiry);
  const TaskRewrite rewrite(state, task);
  end_lease(state, task, {.how = Ended::expired});
  const bool reads_clock = mutant(Mutant::m12_clock_read_in_apply);
  move_to(state, slot, TaskState::waiting, reads_clock ? Instant{mutant_clock_ms} : at.time, at);
}

void fact(State& state, const TaskCompleted& event, const Stamp& at) {
  const Slot slot = held(state, event.task, event.lease);
  Task& task = state.tasks[slot];
  BATON_CHECK(at.time < state.leases[task.lease].expiry);
  const TaskRewrite rewrite(state, task);
  end_lease(state, task, {.how = Ended::completed, .note = kept(event.result, at)});
  move_to(state, slot, TaskState::completed, at.time, at);
}

void fact(State& state, const TaskCancelled& event, const Stamp&) {
  Ending* ending = find_ending(state, state.tasks[recorded(state, event.task)], event.lease);
  BATON_CHECK(ending != nullptr && event.lease != 0 && !ending->told);
  state.digest -= fact_hash(*ending);
  ending->told = true;
  state.digest += fact_hash(*ending);
}

void fact(State& state, const TaskFailed& event, const Stamp& at) {
  const Slot slot = held(state, event.task, event.lease);
  Task& task = state.tasks[slot];
  BATON_CHECK(at.time < state.leases[task.lease].expiry);
  BATON_CHECK(event.failures == task.failures + (event.outcome == Ended::released ? 0 : 1));
  const TaskRewrite rewrite(state, task);
  task.failures = event.failures;
  end_lease(state, task, {.how = event.outcome, .retry_at = event.retry_at, .note = kept(event.reason, at)});
  Ended outcome = event.outcome;
  if (mutant(Mutant::m15_policy_evaluated_again_on_replay)) {
    const bool again = event.failures < state.options[task.options].retry.max_failures;
    outcome = again ? Ended::retried : Ended::failed;
  }
  if (outcome == Ended::failed) {
    move_to(state, slot, TaskState::failed, at.time, at);
  } else {
    BATON_CHECK(outcome == Ended::retried || outcome == Ended::released);
    BATON_CHECK(event.retry_at >= at.time);
    move_to(state, slot, TaskState::waiting, event.retry_at, at);
  }
}

void fact(State& state, const TaskDead& event, const Stamp& at) {
  const Slot slot = recorded(state, event.task);
  Task& task = state.tasks[slot];
  BATON_CHECK(!is_final(task.state));
  const TaskRewrite rewrite(state, task);
  const Ending ending{.how = Ended::dead, .note = kept(event.note, at)};
  if (task.state == TaskState::leased) {
    end_lease(state, task, ending);
  } else {
    remember(state, task, ending);
  }
  task.dead_reason = event.why;
  move_to(state, slot, TaskState::dead, at.time, at);
}

void fact(State& state, const TasksPurged& event, const Stamp&) {
  for (const Lsn lsn : event.tasks) {
    const Slot slot = recorded(state, lsn);
    Task& task = state.tasks[slot];
    BATON_CHECK(is_final(task.state) && task.lease == 0);
    unshelve(state, slot);
    state.digest -= fact_hash(state, task);
    for (Slot ending = task.endings; ending != 0;) {
      const Slot next = state.endings[ending].next;
      forget_ending(state, ending);
      ending = next;
    }
    if (task.options != 0) {
      const TaskOptions& options = state.options[task.options];
      if (!options.key.empty()) state.keys.erase(ScopedName(state.queue_of(task).ns, options.key));
      state.options.give_back(task.options);
    }
    state.ids.erase(lsn);
    uncount_task(state, task);
    leave_lane(state, task.lane);
    state.tasks.give_back(slot);
  }
}

void fact(State& state, const QueuePaused& event, const Stamp&) {
  Queue& queue = state.queues[make_queue(state, event.ns, event.queue)];
  BATON_CHECK(!queue.paused);
  queue.paused = true;
  state.digest += paused_hash(queue);
}

void fact(State& state, const QueueResumed& event, const Stamp&) {
  const Slot slot = find_queue(state, event.ns, event.queue);
  BATON_CHECK(slot != 0 && state.queues[slot].paused);
  state.digest -= paused_hash(state.queues[slot]);
  state.queues[slot].paused = false;
  forget_if_empty(state, slot);
}

void fact(State& state, const BlobMoved& event, const Stamp& at) {
  Task& task = state.tasks[recorded(state, event.task)];
  const BlobRef moved = kept(event.blob, at);
  if (event.part == BlobPart::payload) {
    BATON_CHECK(task.payload.hash == moved.hash && task.payload.length == moved.length);
    const TaskRewrite rewrite(state, task);
    task.payload = moved;
    return;
  }
  Ending* ending = find_ending(state, task, event.lease);
  BATON_CHECK(ending != nullptr && ending->note.hash == moved.hash && ending->note.length == moved.length);
  state.digest -= fact_hash(*ending);
  ending->note = moved;
  state.digest += fact_hash(*ending);
}

void fact(State& state, const EpochStarted& event, const Stamp& at) {
  BATON_CHECK(at.epoch > state.epoch);
  BATON_CHECK(state.epoch == 0 || state.key == event.key);
  state.key = event.key;
}

void fact(State& state, const StateDigest& event, const Stamp&) { BATON_CHECK(event.digest == state.digest); }
void fact(State&, const SnapshotTaken&, const Stamp&) {}
void fact(State&, const Sealed&, const Stamp&) {}

}  // namespace

void apply(State& state, const Event& event, const Stamp& stamp) {
  BATON_CHECK(stamp.lsn == state.last + 1);
  BATON_CHECK(stamp.time >= state.time);
  BATON_CHECK(stamp.epoch == state.epoch || std::holds_alternative<EpochStarted>(event));
  // No default branch: an event without a fact() of its own does not compile.
  std::visit([&](const auto& happened) { fact(state, happened, stamp); }, event);
  state.last = stamp.lsn;
  state.epoch = stamp.epoch;
  state.time = stamp.time;
}

}  // namespace baton::core
