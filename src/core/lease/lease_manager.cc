#include "core/lease/lease_manager.h"

#include <algorithm>

#include "base/check.h"
#include "base/mutant.h"
#include "core/names.h"
#include "core/refusal.h"
#include "core/shelf.h"

namespace baton::core {
namespace {

const TaskOptions& options_of(const State& state, const Task& task) {
  return state.options[task.options];  // slot 0 holds the usual ones
}

bool is_reasonable(Duration ttl) { return ttl >= kTtlMin && ttl <= kTtlMax; }

// From its expiry on a lease is over.
bool has_passed(Instant expiry, Instant now) {
  if (mutant(Mutant::m10_lease_held_at_its_deadline)) return now > expiry;
  if (mutant(Mutant::m13_expiry_without_a_record)) return false;
  return now >= expiry;
}

// What a worker's lease is to a task at this moment.
struct Standing {
  const Lease* held = nullptr;    // it is the current one, and not expired
  const Ending* ended = nullptr;  // it was, and this is how that ended
};

bool is_genuine(const State& state, const Task& task, const LeaseId& lease) {
  return lease.nonce == lease_nonce(state.key, lease.epoch, lease.lsn, task.lsn);
}

// The lsn alone does not name a lease: where the end of a log was lost, another epoch gives the number again.
bool is_held_under(const State& state, const Task& task, const LeaseId& lease) {
  return task.lease != 0 && state.leases[task.lease].lsn == lease.lsn &&
         state.leases[task.lease].epoch == lease.epoch && is_genuine(state, task, lease);
}

Standing standing(const State& state, const Task& task, const LeaseId& lease, Instant now) {
  if (!is_genuine(state, task, lease)) return {};
  if (is_held_under(state, task, lease)) {
    // The engine records an expiry before it decides anything about the task.
    BATON_CHECK(!has_passed(state.leases[task.lease].expiry, now));
    return {.held = &state.leases[task.lease]};
  }
  for (Slot slot = task.endings; slot != 0; slot = state.endings[slot].next) {
    const Ending& ending = state.endings[slot];
    if (ending.lease == lease.lsn && ending.lease_epoch == lease.epoch) return {.ended = &ending};
  }
  return {};
}

// The answer to a worker that speaks under a lease it no longer holds. `same` tells whether it once said
// exactly this, in which case the answer it got is given again.
Decision answer_late(const Task& task, const Ending* ending, bool same) {
  if (ending == nullptr) return Reject{Errc::lease_unknown, "this lease was never granted for this task"};
  switch (ending->how) {
    case Ended::completed:
    case Ended::retried:
    case Ended::failed:
    case Ended::released:
      if (same && mutant(Mutant::m17_duplicate_complete_answers_cancelled)) return Reply{Cancelled{}};
      if (same) return Reply{Committed{.outcome = ending->how, .retry_at = ending->retry_at}};
      return Reject{Errc::conflict, "the attempt was already ended in another way under this lease"};
    case Ended::expired:
    case Ended::dead:
      if (ending->told && !mutant(Mutant::m25_cancelled_records_unbounded)) return Reply{Cancelled{}};
      return Append{TaskCancelled{.task = task.lsn, .lease = ending->lease}, Cancelled{}};
  }
  BATON_CHECK(false && "unknown ending");
}

// What an extension comes to: an entry, an unchanged durable expiry, or a refusal.
struct Extension {
  std::optional<Reject> refusal;
  std::optional<LeaseExtended> entry;
  Extended reply;
};

Extension extension(const State& state, std::string_view ns, const ExtendLease& request, const Moment& at) {
  const auto refused = [](Errc code, std::string_view message) {
    return Extension{.refusal = Reject{code, std::string(message)}};
  };
  if (!is_reasonable(request.ttl)) return refused(Errc::invalid_request, "the ttl must be 1 ms to 24 hours");
  const Slot slot = find_task(state, ns, request.task);
  if (slot == 0) return {.refusal = no_such(request.task)};
  const Task& task = state.tasks[slot];
  // One of many may have expired without a record so far, since it does not matter to the others.
  const bool lapsed = task.lease != 0 && at.now >= state.leases[task.lease].expiry &&
                      is_held_under(state, task, request.lease);
  if (lapsed) return refused(Errc::lease_lost, "the lease is no longer held");
  const Standing now = standing(state, task, request.lease, at.now);
  const bool expired = now.ended != nullptr && now.ended->how == Ended::expired;
  if (expired && mutant(Mutant::m11_heartbeat_revives_expired_lease)) return {.reply = {request.ttl}};
  if (now.ended != nullptr) return refused(Errc::lease_lost, "the lease is no longer held");
  if (now.held == nullptr) return refused(Errc::lease_unknown, "this lease was never granted for this task");

  const Lease& lease = *now.held;
  const Duration left = lease.expiry - at.now;
  // Heartbeats come often; an entry is worth its flush only once a third of the time is used up.
  if (left.ms * 3 > request.ttl.ms * 2) return {.reply = {left}};
  Instant expiry = at.now + request.ttl;
  if (const Duration max_hold = options_of(state, task).max_hold; max_hold.ms > 0) {
    expiry = std::min(expiry, lease.granted_at + max_hold);
    if (expiry <= lease.expiry) return refused(Errc::hold_exceeded, "the task may not be held any longer");
  }
  return {.entry = LeaseExtended{.task = task.lsn, .lease = lease.lsn, .expiry = expiry},
          .reply = {expiry - at.now}};
}

}  // namespace

Duration backoff(const RetryPolicy& policy, std::uint32_t failures, std::uint64_t random) {
  std::int64_t wait = std::min(policy.base.ms, policy.max.ms);
  for (std::uint32_t i = 1; i < failures && wait > 0 && wait < policy.max.ms; ++i) {
    wait = std::min(wait * policy.factor_percent / 100, policy.max.ms);
    if (policy.factor_percent == 100) break;
  }
  const std::int64_t spread = wait * policy.jitter_percent / 100;
  const auto span = static_cast<std::uint64_t>(2 * spread + 1);
  return milliseconds(wait - spread + static_cast<std::int64_t>(random % span));
}

Decision decide(const State& state, const WorkerRegistry& workers, const LeaseTask& request,
                const Moment& at) {
  if (!is_name(request.ns)) {
    return Reject{Errc::invalid_request, "the namespace must be 1 to 128 graphic ASCII characters"};
  }
  if (!is_name(request.worker)) {
    return Reject{Errc::invalid_request, "the worker must be 1 to 128 graphic ASCII characters"};
  }
  if (!is_reasonable(request.ttl)) return Reject{Errc::invalid_request, "the ttl must be 1 ms to 24 hours"};
  if (request.queues.empty()) return Reject{Errc::invalid_request, "name at least one queue"};
  if (request.queues.size() > kQueuesPerLeaseMax) return Reject{Errc::too_large, "more than 16 queues"};

  for (const std::string& queue : request.queues) {
    if (!is_name(queue))
      return Reject{Errc::invalid_request, "the queue must be 1 to 128 graphic ASCII characters"};
  }

  const std::uint32_t active = active_leases(state, request.ns, request.worker);
  if (workers.spare_capacity(request.ns, request.worker, active) == 0)
    return Reply{Nothing{NothingBecause::at_capacity}};

  const Task* best = nullptr;
  std::uint8_t best_priority = 0;
  bool any_paused = false;
  for (const std::string& name : request.queues) {
    const Slot slot = find_queue(state, request.ns, name);
    if (slot == 0) continue;
    const Queue& queue = state.queues[slot];
    any_paused |= queue.paused;
    if (queue.paused) continue;
    for (const Slot lane_slot : queue.open_lanes()) {
      const Lane& lane = state.lanes[lane_slot];
      const Slot candidate = next_in(state, lane, at.now);
      if (candidate == 0 || !covers(request.capabilities.joined(), lane.capabilities)) continue;
      const Task& task = state.tasks[candidate];
      const bool earlier = best != nullptr && (mutant(Mutant::m23_scheduling_by_hash_order)
                                                   ? lane.hash < state.lanes[best->lane].hash
                                                   : is_earlier(task, *best));
      const bool better =
          best == nullptr || lane.priority > best_priority || (lane.priority == best_priority && earlier);
      if (!better) continue;
      best = &task;
      best_priority = lane.priority;
    }
  }
  if (best == nullptr) return Reply{Nothing{any_paused ? NothingBecause::paused : NothingBecause::no_task}};

  Instant expiry = at.now + request.ttl;
  if (const Duration max_hold = options_of(state, *best).max_hold; max_hold.ms > 0) {
    expiry = std::min(expiry, at.now + max_hold);
  }
  const LeaseId lease{at.epoch, at.lsn, lease_nonce(state.key, at.epoch, at.lsn, best->lsn)};
  return Append{
      LeaseGranted{
          .task = best->lsn, .attempt = best->attempt + 1, .expiry = expiry, .worker = request.worker},
      Granted{.task = best->id(),
              .lease = lease,
              .attempt = best->attempt + 1,
              .ttl = expiry - at.now,
              .payload = best->payload}};
}

Decision decide(const State& state, const ExtendLease& request, const Moment& at) {
  const Extension extended = extension(state, request.ns, request, at);
  if (extended.refusal) return *extended.refusal;
  if (!extended.entry) return Reply{extended.reply};
  return Append{*extended.entry, extended.reply};
}

Decision decide(const State& state, const ExtendLeases& request, const Moment& at) {
  if (request.items.size() > kExtendItemsMax)
    return Reject{Errc::too_large, "more than 512 leases in one request"};
  std::vector<Lsn> named;
  for (const ExtendLease& item : request.items) named.push_back(item.lease.lsn);
  std::ranges::sort(named);
  if (std::ranges::adjacent_find(named) != named.end()) {
    return Reject{Errc::invalid_request, "the same lease is named twice"};
  }
  LeasesExtended entry;
  ExtendedMany reply;
  for (const ExtendLease& item : request.items) {
    const Extension extended = extension(state, request.ns, item, at);
    if (extended.entry) entry.items.push_back(*extended.entry);
    if (extended.refusal) {
      reply.items.push_back(failure(extended.refusal->code, extended.refusal->message));
    } else {
      reply.items.push_back(extended.reply);
    }
  }
  if (entry.items.empty()) return Reply{std::move(reply)};
  return Append{std::move(entry), std::move(reply)};
}

Decision decide(const State& state, const CompleteTask& request, const Moment& at) {
  const std::size_t result_bytes_max = std::min(at.rules.payload_bytes_max, kPayloadBytesHardMax);
  if (request.result.bytes().size() > result_bytes_max)
    return too_large("result", request.result.bytes().size(), result_bytes_max);
  const Slot slot = find_task(state, request.ns, request.task);
  if (slot == 0) return no_such(request.task);
  const Task& task = state.tasks[slot];
  Standing now = standing(state, task, request.lease, at.now);
  if (mutant(Mutant::m9_complete_without_lease_check) && task.lease != 0) now = {&state.leases[task.lease]};
  if (now.held == nullptr) {
    const bool same = now.ended != nullptr && now.ended->how == Ended::completed &&
                      now.ended->note.hash == request.result.hash() &&
                      now.ended->note.length == request.result.bytes().size();
    return answer_late(task, now.ended, same);
  }
  return Append{TaskCompleted{.task = task.lsn,
                              .lease = now.held->lsn,
                              .result = {request.result.bytes(), request.result.hash()}},
                Committed{.outcome = Ended::completed}};
}

Decision decide(const State& state, const FailTask& request, const Moment& at) {
  if (request.reason.bytes().size() > kReasonBytesMax)
    return too_large("reason", request.reason.bytes().size(), kReasonBytesMax);
  if (request.delay < Duration{} || request.delay > kDelayMax) {
    return Reject{Errc::invalid_request, "the delay must be 0 to 366 days"};
  }
  const Slot slot = find_task(state, request.ns, request.task);
  if (slot == 0) return no_such(request.task);
  const Task& task = state.tasks[slot];
  const Standing now = standing(state, task, request.lease, at.now);
  if (now.held == nullptr) {
    const bool same =
        now.ended != nullptr &&
        (now.ended->how == Ended::failed || (now.ended->how == Ended::retried && !request.final)) &&
        now.ended->note.hash == request.reason.hash() &&
        now.ended->note.length == request.reason.bytes().size();
    return answer_late(task, now.ended, same);
  }
  const TaskOptions& options = options_of(state, task);
  const std::uint32_t failures = task.failures + 1;
  const bool again =
      !request.final && failures < options.retry.max_failures && task.attempt < options.max_attempts;
  const std::uint64_t random = keyed_hash(state.key, at.epoch, at.lsn, task.lsn ^ UINT64_MAX);
  const Duration wait = request.delay.ms > 0 ? request.delay : backoff(options.retry, failures, random);
  const Ended outcome = again ? Ended::retried : Ended::failed;
  const Instant retry_at = again ? at.now + wait : Instant{};
  return Append{TaskFailed{.task = task.lsn,
                           .lease = now.held->lsn,
                           .outcome = outcome,
                           .failures = failures,
                           .retry_at = retry_at,
                           .reason = {request.reason.bytes(), request.reason.hash()}},
                Committed{.outcome = outcome, .retry_at = retry_at}};
}

Decision decide(const State& state, const ReleaseTask& request, const Moment& at) {
  if (request.delay < Duration{} || request.delay > kDelayMax) {
    return Reject{Errc::invalid_request, "the delay must be 0 to 366 days"};
  }
  const Slot slot = find_task(state, request.ns, request.task);
  if (slot == 0) return no_such(request.task);
  const Task& task = state.tasks[slot];
  const Standing now = standing(state, task, request.lease, at.now);
  if (now.held == nullptr) {
    return answer_late(task, now.ended, now.ended != nullptr && now.ended->how == Ended::released);
  }
  return Append{TaskFailed{.task = task.lsn,
                           .lease = now.held->lsn,
                           .outcome = Ended::released,
                           .failures = task.failures,
                           .retry_at = at.now + request.delay},
                Committed{.outcome = Ended::released, .retry_at = at.now + request.delay}};
}

std::optional<Event> due(const State& state, const Moment& at) {
  if (state.doomed.head != 0) {
    return TaskDead{.task = state.tasks[state.doomed.head].lsn, .why = DeadReason::attempts_exhausted};
  }
  if (state.expiries.empty() || !has_passed(state.expiries.first().at, at.now)) return {};
  const Lease& lease = state.leases[state.expiries.first().slot];
  return LeaseExpired{.task = lease.task, .lease = lease.lsn};
}

std::optional<Event> due_before(const State& state, std::string_view ns, const TaskRef& ref,
                                const Moment& at) {
  const Slot slot = find_task(state, ns, ref);
  if (slot == 0) return {};
  const Task& task = state.tasks[slot];
  if (task.shelf == Shelf::doomed) return TaskDead{.task = task.lsn, .why = DeadReason::attempts_exhausted};
  if (task.lease == 0 || !has_passed(state.leases[task.lease].expiry, at.now)) return {};
  return LeaseExpired{.task = task.lsn, .lease = state.leases[task.lease].lsn};
}

}  // namespace baton::core
