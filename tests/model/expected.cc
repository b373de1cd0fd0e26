#include <algorithm>
#include <concepts>
#include <sstream>

#include "core/lease/lease_manager.h"
#include "core/limits.h"
#include "tests/model/reference_model.h"

namespace baton::model {

using namespace core;

namespace {

Outcome refused(Errc code) { return {.refusal = code}; }
Outcome answered(Reply reply) { return {.reply = std::move(reply)}; }
Outcome recorded(Event event, Reply reply) { return {.event = std::move(event), .reply = std::move(reply)}; }

bool is_between(Duration value, Duration least, Duration most) { return value >= least && value <= most; }
bool is_between(std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  return value >= least && value <= most;
}

bool is_sane(const RetryPolicy& retry) {
  return is_between(retry.max_failures, 1, kFailuresMax) && is_between(retry.base, {}, kDelayMax) &&
         is_between(retry.max, retry.base, kDelayMax) &&
         is_between(retry.factor_percent, 100, kFactorPercentMax) && is_between(retry.jitter_percent, 0, 100);
}

// D10: a worker that says again what ended its lease hears the same again; something else is a conflict; and
// one whose lease was ended for it is told so, which is recorded the first time (D7).
Outcome late(const ModelTask& task, const Past* past, bool said_the_same) {
  if (past == nullptr) return refused(Errc::lease_unknown);
  if (past->how == Ended::expired || past->how == Ended::dead) {
    if (past->told) return answered(Cancelled{});
    return recorded(TaskCancelled{.task = task.id.lsn, .lease = past->lease}, Cancelled{});
  }
  if (!said_the_same) return refused(Errc::conflict);
  return answered(Committed{.outcome = past->how, .retry_at = past->retry_at});
}

bool is_same(const BlobRef& note, const Blob& blob) {
  return note.length == blob.bytes().size() && (note.length == 0 || note.hash == blob.hash());
}

}  // namespace

bool ReferenceModel::is_real(const LeaseId& lease, const ModelTask& task) const {
  return lease.nonce == lease_nonce(key_, lease.epoch, lease.lsn, task.id.lsn);
}

bool ReferenceModel::is_current(const LeaseId& lease, const ModelTask& task) const {
  return is_real(lease, task) && task.hold && task.hold->lease == lease.lsn &&
         task.hold->epoch == lease.epoch;
}

const Past* ReferenceModel::past(const LeaseId& lease, const ModelTask& task) const {
  if (!is_real(lease, task) || lease.lsn == 0) return nullptr;
  for (const Past& one : task.pasts) {
    if (one.lease == lease.lsn && one.epoch == lease.epoch) return &one;
  }
  return nullptr;
}

Outcome ReferenceModel::expected(const Request& request, const WorkerRegistry& workers,
                                 const Moment& at) const {
  if (const auto* lease = std::get_if<LeaseTask>(&request)) return wanted(*lease, workers, at);
  return std::visit(
      [&]<class Asked>(const Asked& asked) {
        if constexpr (std::same_as<Asked, LeaseTask> || !requires { wanted(asked, at); }) {
          return Outcome{};  // said above; or about streams, of which the model knows nothing
        } else {
          return wanted(asked, at);
        }
      },
      request);
}

std::optional<Event> ReferenceModel::expected_due(Instant now) const {
  const ModelTask* doomed = nullptr;
  const ModelTask* expired = nullptr;
  for (const auto& [lsn, task] : tasks_) {
    if (task.is_doomed() && (!doomed || task.place < doomed->place)) doomed = &task;
    if (!task.hold || task.hold->expiry > now) continue;
    if (!expired || std::pair(task.hold->expiry, task.hold->lease) <
                        std::pair(expired->hold->expiry, expired->hold->lease)) {
      expired = &task;
    }
  }
  if (doomed) return TaskDead{.task = doomed->id.lsn, .why = DeadReason::attempts_exhausted};
  if (expired) return LeaseExpired{.task = expired->id.lsn, .lease = expired->hold->lease};
  return {};
}

std::optional<Event> ReferenceModel::expected_due_before(const Request& request, Instant now) const {
  return std::visit(
      [&](const auto& asked) -> std::optional<Event> {
        if constexpr (requires { asked.task.key; }) {
          const ModelTask* task = find(asked.ns, asked.task);
          if (task && task->is_doomed())
            return TaskDead{.task = task->id.lsn, .why = DeadReason::attempts_exhausted};
          if (task && task->hold && task->hold->expiry <= now)
            return LeaseExpired{.task = task->id.lsn, .lease = task->hold->lease};
        }
        return {};
      },
      request);
}

std::optional<TasksPurged> ReferenceModel::expected_purge(std::string_view ns, std::string_view queue,
                                                          const Moment& at) const {
  TasksPurged purged;
  const auto all = finished(ns, queue);
  for (std::size_t i = 0; i < all.size() && i < kPurgeItemsMax; ++i) {
    const bool surplus = all.size() - i > at.rules.retention_count;
    const bool old = all[i]->since + at.rules.retention_age <= at.now;
    if (!surplus && !old) break;
    purged.tasks.push_back(all[i]->id.lsn);
  }
  if (purged.tasks.empty()) return {};
  return purged;
}

std::optional<Errc> ReferenceModel::no_room(std::string_view ns, std::string_view queue,
                                            std::string_view capabilities, std::uint8_t priority,
                                            const Rules& rules) const {
  if (!rules.admit_submissions || tasks_.size() >= rules.tasks_max) return Errc::exhausted;
  std::set<std::pair<std::string, std::string>> queues = paused_;
  std::set<std::pair<std::string, std::uint8_t>> lanes, open;
  for (const auto& [lsn, task] : tasks_) {
    queues.emplace(task.ns, task.queue);
    if (task.ns != ns || task.queue != queue) continue;
    lanes.emplace(task.capabilities, task.priority);
    if (!is_final(task.state)) open.emplace(task.capabilities, task.priority);
  }
  queues.emplace(ns, queue);
  lanes.emplace(capabilities, priority);
  open.emplace(capabilities, priority);
  if (queues.size() > kQueuesMax || open.size() > kLanesPerQueueMax || lanes.size() > kLanesKeptMax)
    return Errc::exhausted;
  return {};
}

Outcome ReferenceModel::wanted(const SubmitTask& request, const Moment& at) const {
  if (!is_name(request.ns) || !is_name(request.queue)) return refused(Errc::invalid_request);
  if (!request.key.empty() && !is_name(request.key)) return refused(Errc::invalid_request);
  const std::size_t size = request.payload.bytes().size();
  if (size > at.rules.payload_bytes_max || size > kPayloadBytesHardMax) return refused(Errc::too_large);
  if (request.priority > kPriorityMax || !is_between(request.delay, {}, kDelayMax) ||
      !is_sane(request.retry) || !is_between(request.max_attempts, 1, kAttemptsMax) ||
      !is_between(request.max_hold, {}, kHoldMax)) {
    return refused(Errc::invalid_request);
  }
  const std::string& capabilities = request.requires_capabilities.joined();
  if (const ModelTask* known = with_key(request.ns, request.key)) {
    const bool same = known->retry_of == TaskId{} && known->queue == request.queue &&
                      is_same(known->payload, request.payload) && known->priority == request.priority &&
                      known->delay == request.delay && known->capabilities == capabilities &&
                      known->retry == request.retry && known->max_attempts == request.max_attempts &&
                      known->max_hold == request.max_hold;
    if (!same) return refused(Errc::conflict);
    return answered(Submitted{.task = known->id, .existed = true});
  }
  if (auto full = no_room(request.ns, request.queue, capabilities, request.priority, at.rules))
    return refused(*full);
  return recorded(TaskCreated{.ns = request.ns,
                              .queue = request.queue,
                              .capabilities = capabilities,
                              .key = request.key,
                              .priority = request.priority,
                              .eligible_at = at.now + request.delay,
                              .retry = request.retry,
                              .max_attempts = request.max_attempts,
                              .max_hold = request.max_hold,
                              .payload = {request.payload.bytes(), request.payload.hash()}},
                  Submitted{.task = {at.epoch, at.lsn}});
}

Outcome ReferenceModel::wanted(const LeaseTask& request, const WorkerRegistry& workers,
                               const Moment& at) const {
  if (!is_name(request.ns) || !is_name(request.worker) || !is_between(request.ttl, kTtlMin, kTtlMax) ||
      request.queues.empty()) {
    return refused(Errc::invalid_request);
  }
  if (request.queues.size() > kQueuesPerLeaseMax) return refused(Errc::too_large);
  for (const std::string& queue : request.queues) {
    if (!is_name(queue)) return refused(Errc::invalid_request);
  }
  if (const Worker* worker = workers.find(request.ns, request.worker); worker && worker->capacity > 0) {
    const auto holds = std::ranges::count_if(tasks_, [&](const auto& entry) {
      return entry.second.hold && entry.second.ns == request.ns &&
             entry.second.hold->worker == request.worker;
    });
    if (holds >= worker->capacity) return answered(Nothing{NothingBecause::at_capacity});
  }
  std::istringstream in(request.capabilities.joined());
  std::set<std::string> offered;
  for (std::string word; in >> word;) offered.insert(word);

  const ModelTask* best = nullptr;
  for (const auto& [lsn, task] : tasks_) {
    if (task.state != TaskState::waiting || task.is_doomed() || task.since > at.now) continue;
    if (task.ns != request.ns || std::ranges::count(request.queues, task.queue) == 0) continue;
    if (is_paused(task.ns, task.queue)) continue;
    if (!std::ranges::all_of(task.needs, [&](const auto& need) { return offered.contains(need); })) continue;
    const auto rank = [](const ModelTask& one) {
      return std::tuple(kPriorityMax - one.priority, one.since, one.place);
    };
    if (best == nullptr || rank(task) < rank(*best)) best = &task;
  }
  if (best == nullptr) {
    const bool paused = std::ranges::any_of(
        request.queues, [&](const std::string& queue) { return is_paused(request.ns, queue); });
    return answered(Nothing{paused ? NothingBecause::paused : NothingBecause::no_task});
  }
  const Duration ttl = best->max_hold.ms > 0 ? std::min(best->max_hold, request.ttl) : request.ttl;
  return recorded(LeaseGranted{.task = best->id.lsn,
                               .attempt = best->attempt + 1,
                               .expiry = at.now + ttl,
                               .worker = request.worker},
                  Granted{.task = best->id,
                          .lease = {at.epoch, at.lsn, lease_nonce(key_, at.epoch, at.lsn, best->id.lsn)},
                          .attempt = best->attempt + 1,
                          .ttl = ttl,
                          .payload = best->payload});
}

Outcome ReferenceModel::extension(std::string_view ns, const ExtendLease& request, const Moment& at) const {
  if (!is_between(request.ttl, kTtlMin, kTtlMax)) return refused(Errc::invalid_request);
  const ModelTask* task = find(ns, request.task);
  if (task == nullptr) return refused(Errc::not_found);
  if (past(request.lease, *task)) return refused(Errc::lease_lost);
  if (!is_current(request.lease, *task)) return refused(Errc::lease_unknown);
  const Hold& hold = *task->hold;
  if (at.now >= hold.expiry) return refused(Errc::lease_lost);

  const Duration left = hold.expiry - at.now;
  const bool plenty = 3 * left.ms > 2 * request.ttl.ms;  // D19: more than two thirds
  if (plenty) return answered(Extended{left});
  Instant expiry = at.now + request.ttl;
  if (task->max_hold.ms > 0 && hold.granted_at + task->max_hold < expiry)
    expiry = hold.granted_at + task->max_hold;
  if (expiry <= hold.expiry) return refused(Errc::hold_exceeded);
  return recorded(LeaseExtended{.task = task->id.lsn, .lease = hold.lease, .expiry = expiry},
                  Extended{expiry - at.now});
}

Outcome ReferenceModel::wanted(const ExtendLease& request, const Moment& at) const {
  return extension(request.ns, request, at);
}

Outcome ReferenceModel::wanted(const ExtendLeases& request, const Moment& at) const {
  if (request.items.size() > kExtendItemsMax) return refused(Errc::too_large);
  std::set<Lsn> named;
  for (const ExtendLease& item : request.items) {
    if (!named.insert(item.lease.lsn).second) return refused(Errc::invalid_request);
  }
  LeasesExtended entry;
  ExtendedMany reply;
  for (const ExtendLease& item : request.items) {
    const Outcome one = extension(request.ns, item, at);
    if (one.event) entry.items.push_back(std::get<LeaseExtended>(*one.event));
    if (one.refusal) {
      reply.items.push_back(failure(*one.refusal, ""));
    } else {
      reply.items.push_back(std::get<Extended>(*one.reply));
    }
  }
  if (entry.items.empty()) return answered(std::move(reply));
  return recorded(std::move(entry), std::move(reply));
}

Outcome ReferenceModel::wanted(const CompleteTask& request, const Moment& at) const {
  const std::size_t size = request.result.bytes().size();
  if (size > at.rules.payload_bytes_max || size > kPayloadBytesHardMax) return refused(Errc::too_large);
  const ModelTask* task = find(request.ns, request.task);
  if (task == nullptr) return refused(Errc::not_found);
  if (!is_current(request.lease, *task)) {
    const Past* ended = past(request.lease, *task);
    return late(*task, ended,
                ended && ended->how == Ended::completed && is_same(ended->note, request.result));
  }
  return recorded(TaskCompleted{.task = task->id.lsn,
                                .lease = task->hold->lease,
                                .result = {request.result.bytes(), request.result.hash()}},
                  Committed{.outcome = Ended::completed});
}

Outcome ReferenceModel::wanted(const FailTask& request, const Moment& at) const {
  if (request.reason.bytes().size() > kReasonBytesMax) return refused(Errc::too_large);
  if (!is_between(request.delay, {}, kDelayMax)) return refused(Errc::invalid_request);
  const ModelTask* task = find(request.ns, request.task);
  if (task == nullptr) return refused(Errc::not_found);
  if (!is_current(request.lease, *task)) {
    const Past* ended = past(request.lease, *task);
    const bool same = ended &&
                      (ended->how == Ended::failed || (ended->how == Ended::retried && !request.final)) &&
                      is_same(ended->note, request.reason);
    return late(*task, ended, same);
  }
  const std::uint32_t failures = task->failures + 1;
  const bool again =
      !request.final && failures < task->retry.max_failures && task->attempt < task->max_attempts;
  Instant retry_at;
  if (again) {
    // The jitter is drawn from the entry's own place, so that it can be drawn only once.
    const std::uint64_t random = keyed_hash(key_, at.epoch, at.lsn, ~task->id.lsn);
    retry_at = at.now + (request.delay.ms > 0 ? request.delay : backoff(task->retry, failures, random));
  }
  const Ended outcome = again ? Ended::retried : Ended::failed;
  return recorded(TaskFailed{.task = task->id.lsn,
                             .lease = task->hold->lease,
                             .outcome = outcome,
                             .failures = failures,
                             .retry_at = retry_at,
                             .reason = {request.reason.bytes(), request.reason.hash()}},
                  Committed{.outcome = outcome, .retry_at = retry_at});
}

Outcome ReferenceModel::wanted(const ReleaseTask& request, const Moment& at) const {
  if (!is_between(request.delay, {}, kDelayMax)) return refused(Errc::invalid_request);
  const ModelTask* task = find(request.ns, request.task);
  if (task == nullptr) return refused(Errc::not_found);
  if (!is_current(request.lease, *task)) {
    const Past* ended = past(request.lease, *task);
    return late(*task, ended, ended && ended->how == Ended::released);
  }
  return recorded(TaskFailed{.task = task->id.lsn,
                             .lease = task->hold->lease,
                             .outcome = Ended::released,
                             .failures = task->failures,
                             .retry_at = at.now + request.delay},
                  Committed{.outcome = Ended::released, .retry_at = at.now + request.delay});
}

Outcome ReferenceModel::wanted(const CancelTask& request, const Moment&) const {
  if (!request.actor.empty() && !is_name(request.actor)) return refused(Errc::invalid_request);
  if (request.note.bytes().size() > kReasonBytesMax) return refused(Errc::too_large);
  const ModelTask* task = find(request.ns, request.task);
  if (task == nullptr) return refused(Errc::not_found);
  if (task->state == TaskState::dead && task->why == DeadReason::cancelled) return answered(Accepted{});
  if (is_final(task->state)) return refused(Errc::wrong_state);
  return recorded(TaskDead{.task = task->id.lsn,
                           .why = DeadReason::cancelled,
                           .actor = request.actor,
                           .note = {request.note.bytes(), request.note.hash()}},
                  Accepted{});
}

Outcome ReferenceModel::wanted(const RequeueTask& request, const Moment& at) const {
  if (!request.key.empty() && !is_name(request.key)) return refused(Errc::invalid_request);
  const ModelTask* old = find(request.ns, request.task);
  if (old == nullptr) {
    const ModelTask* repeat = with_key(request.ns, request.key);
    const bool of_that = repeat != nullptr && request.task.key.empty() && repeat->retry_of == request.task.id;
    if (!of_that) return refused(Errc::not_found);
    return answered(Submitted{.task = repeat->id, .existed = true});
  }
  if (old->state != TaskState::failed && old->state != TaskState::dead) return refused(Errc::wrong_state);
  if (const ModelTask* known = with_key(request.ns, request.key)) {
    if (known->retry_of != old->id) return refused(Errc::conflict);
    return answered(Submitted{.task = known->id, .existed = true});
  }
  if (auto full = no_room(old->ns, old->queue, old->capabilities, old->priority, at.rules))
    return refused(*full);
  return recorded(TaskCreated{.ns = old->ns,
                              .queue = old->queue,
                              .capabilities = old->capabilities,
                              .key = request.key,
                              .priority = old->priority,
                              .eligible_at = at.now,
                              .retry = old->retry,
                              .max_attempts = old->max_attempts,
                              .max_hold = old->max_hold,
                              .retry_of = old->id,
                              .payload_of_old = old->payload},
                  Submitted{.task = {at.epoch, at.lsn}});
}

Outcome ReferenceModel::wanted(const PauseQueue& request, const Moment& at) const {
  if (!is_name(request.ns) || !is_name(request.queue)) return refused(Errc::invalid_request);
  if (is_paused(request.ns, request.queue)) return answered(Accepted{});
  const Rules roomy{.tasks_max = UINT64_MAX, .retention_count = at.rules.retention_count};
  if (!has_queue(request.ns, request.queue) && no_room(request.ns, request.queue, "", 0, roomy))
    return refused(Errc::exhausted);
  return recorded(QueuePaused{.ns = request.ns, .queue = request.queue}, Accepted{});
}

Outcome ReferenceModel::wanted(const ResumeQueue& request, const Moment&) const {
  if (!is_name(request.ns) || !is_name(request.queue)) return refused(Errc::invalid_request);
  if (!is_paused(request.ns, request.queue)) return answered(Accepted{});
  return recorded(QueueResumed{.ns = request.ns, .queue = request.queue}, Accepted{});
}

Outcome ReferenceModel::wanted(const PurgeQueue& request, const Moment&) const {
  if (!is_name(request.ns) || !is_name(request.queue)) return refused(Errc::invalid_request);
  if (!has_queue(request.ns, request.queue)) return refused(Errc::not_found);
  const std::size_t most =
      request.count_max == 0 ? kPurgeItemsMax : std::min<std::size_t>(request.count_max, kPurgeItemsMax);
  TasksPurged purged;
  for (const ModelTask* task : finished(request.ns, request.queue)) {
    if (purged.tasks.size() < most) purged.tasks.push_back(task->id.lsn);
  }
  const auto count = static_cast<std::uint32_t>(purged.tasks.size());
  if (count == 0) return answered(Purged{});
  return recorded(std::move(purged), Purged{count});
}

Outcome ReferenceModel::wanted(const MoveBlob& request, const Moment&) const {
  const auto found = tasks_.find(request.task.lsn);
  if (found == tasks_.end()) return refused(Errc::not_found);
  const ModelTask& task = found->second;
  const BlobRef* kept = request.part == BlobPart::payload ? &task.payload : nullptr;
  for (const Past& past : task.pasts) {
    if (request.part == BlobPart::note && past.lease == request.lease) kept = &past.note;
  }
  if (kept == nullptr || *kept != request.from) return refused(Errc::not_found);
  if (!is_same(*kept, request.blob)) return refused(Errc::corrupt);
  return recorded(BlobMoved{.task = task.id.lsn,
                            .part = request.part,
                            .lease = request.lease,
                            .blob = {request.blob.bytes(), request.blob.hash()}},
                  Accepted{});
}

}  // namespace baton::model
