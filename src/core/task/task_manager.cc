#include "core/task/task_manager.h"

#include <algorithm>

#include "base/check.h"
#include "base/mutant.h"
#include "core/names.h"
#include "core/refusal.h"
#include "core/stream/work_decision.h"
#include "core/usage.h"

namespace baton::core {
namespace {

// Everything a key stands for: submitting it again with anything else in it is a conflict.
std::uint64_t content_of(const SubmitTask& request) {
  Bytes bytes;
  ByteWriter out(bytes);
  out.text(request.queue);
  out.varint(request.payload.bytes().size());
  out.fixed(request.payload.hash());
  out.fixed(request.priority);
  out.zigzag(request.delay.ms);
  out.text(request.requires_capabilities.joined());
  out.varint(request.retry.max_failures);
  out.zigzag(request.retry.base.ms);
  out.varint(request.retry.factor_percent);
  out.zigzag(request.retry.max.ms);
  out.varint(request.retry.jitter_percent);
  out.varint(request.max_attempts);
  out.zigzag(request.max_hold.ms);
  return content_hash(bytes);
}

std::uint64_t content_of_repeat(TaskId old) {
  const std::uint64_t words[] = {old.epoch, old.lsn};
  return content_hash(std::as_bytes(std::span(words)));
}

std::optional<Reject> refuse(const RetryPolicy& policy) {
  const char* wrong = nullptr;
  if (policy.max_failures < 1 || policy.max_failures > kFailuresMax)
    wrong = "max_failures must be 1 to 1000";
  else if (policy.base.ms < 0 || policy.base > kDelayMax)
    wrong = "the backoff must be 0 to 366 days";
  else if (policy.max < policy.base || policy.max > kDelayMax)
    wrong = "the longest backoff must be as long as the first one, and 366 days at most";
  else if (policy.factor_percent < 100 || policy.factor_percent > kFactorPercentMax)
    wrong = "the factor of the backoff must be 100 to 10000 percent";
  else if (policy.jitter_percent > 100)
    wrong = "the jitter must be 0 to 100 percent";
  if (wrong == nullptr) return {};
  return Reject{Errc::invalid_request, wrong};
}

std::optional<Reject> refuse_name(std::string_view ns, std::string_view queue) {
  if (!is_name(ns))
    return Reject{Errc::invalid_request, "the namespace must be 1 to 128 graphic ASCII characters"};
  if (!is_name(queue))
    return Reject{Errc::invalid_request, "the queue must be 1 to 128 graphic ASCII characters"};
  return {};
}

std::optional<Reject> refuse(const SubmitTask& request, const Rules& rules) {
  if (auto bad = refuse_name(request.ns, request.queue)) return bad;
  if (!request.key.empty() && !is_name(request.key)) {
    return Reject{Errc::invalid_request, "the key must be 1 to 128 graphic ASCII characters"};
  }
  const std::size_t payload_bytes_max = std::min(rules.payload_bytes_max, kPayloadBytesHardMax);
  if (request.payload.bytes().size() > payload_bytes_max)
    return too_large("payload", request.payload.bytes().size(), payload_bytes_max);
  if (request.priority > kPriorityMax) return Reject{Errc::invalid_request, "the priority must be 0 to 9"};
  if (request.delay < Duration{} || request.delay > kDelayMax) {
    return Reject{Errc::invalid_request, "the delay must be 0 to 366 days"};
  }
  if (auto bad = refuse(request.retry)) return bad;
  if (request.max_attempts < 1 || request.max_attempts > kAttemptsMax) {
    return Reject{Errc::invalid_request, "the number of attempts must be 1 to 1000000"};
  }
  if (request.max_hold < Duration{} || request.max_hold > kHoldMax) {
    return Reject{Errc::invalid_request, "the maximum hold time must be 0 (none) to 30 days"};
  }
  return {};
}

// A task that is to be added.
struct Growth {
  std::string_view ns;
  std::string_view queue;
  std::string_view capabilities;
  std::uint8_t priority;
  std::size_t payload_bytes;
};

bool has_all_queues(const Namespace& held, const NamespaceLimits& limits) {
  return limits.queues_max != 0 && held.queues >= limits.queues_max;
}

std::optional<Reject> refuse_growth(const State& state, const Growth& growth, bool is_new_queue,
                                    const NamespaceLimits& limits) {
  if (limits == NamespaceLimits{}) return {};
  const Namespace& held = usage_of(state, growth.ns);
  if (limits.tasks_max != 0 && held.tasks >= limits.tasks_max)
    return full("the namespace holds as many tasks as it may", limits.tasks_max);
  if (is_new_queue && has_all_queues(held, limits))
    return full("the namespace has as many queues as it may", limits.queues_max);
  if (limits.payload_bytes_max != 0 && held.payload_bytes + growth.payload_bytes > limits.payload_bytes_max)
    return full("the namespace holds as many bytes of payload as it may", limits.payload_bytes_max);
  return {};
}

// Of a queue that may have too many. Where all tasks have ended nobody looks for one any more, and those that
// ended are kept for long; so what counts is lanes with others.
std::optional<Reject> refuse_lane(const State& state, const Queue& queue, const Growth& growth) {
  const auto fits = [&](Slot slot) {
    const Lane& lane = state.lanes[slot];
    return lane.priority == growth.priority && lane.capabilities == growth.capabilities;
  };
  if (std::ranges::any_of(queue.open_lanes(), fits)) return {};
  if (queue.lanes_open >= kLanesPerQueueMax)
    return full("the queue has as many sets of capabilities and priorities as it may", kLanesPerQueueMax);
  if (queue.lanes.size() < kLanesKeptMax || std::ranges::any_of(queue.lanes, fits)) return {};
  return full("the queue has as many sets of capabilities and priorities as it may, of finished tasks too",
              kLanesKeptMax);
}

// Room for one more task in this namespace, queue and lane.
std::optional<Reject> refuse_growth(const State& state, const Growth& growth, const Rules& rules) {
  if (!rules.admit_submissions) {
    return Reject{Errc::exhausted, "the disk is nearly full: submissions wait until there is space again"};
  }
  if (state.tasks.used() >= rules.tasks_max) {
    return full("the coordinator holds as many tasks as it may", rules.tasks_max);
  }
  const Slot slot = find_queue(state, growth.ns, growth.queue);
  if (auto full = refuse_growth(state, growth, slot == 0, rules.each_namespace)) return full;
  if (slot == 0) {
    if (state.queues.used() < kQueuesMax) return {};
    return full("there are as many queues as there may be", kQueuesMax);
  }
  const Queue& known = state.queues[slot];
  if (known.lanes.size() < kLanesPerQueueMax) return {};
  return refuse_lane(state, known, growth);
}

Decision answer_from_key(const State& state, Slot known, std::uint64_t content) {
  const Task& task = state.tasks[known];
  if (state.options[task.options].content != content) {
    return Reject{Errc::conflict,
                  "the key was used before with other content, for task " + to_text(task.id())};
  }
  return Reply{Submitted{.task = task.id(), .existed = true}};
}

// Made where it stays: an event is large, and this is asked most often.
Decision create(const SubmitTask& request, std::uint64_t content, const Moment& at) {
  Decision decision(std::in_place_type<Append>, Event(std::in_place_type<TaskCreated>),
                    Submitted{.task = {at.epoch, at.lsn}});
  TaskCreated& created = std::get<TaskCreated>(std::get<Append>(decision).event);
  created.ns = request.ns;
  created.queue = request.queue;
  created.capabilities = request.requires_capabilities.joined();
  created.key = request.key;
  created.content = content;
  created.priority = request.priority;
  created.eligible_at = at.now + request.delay;
  created.retry = request.retry;
  created.max_attempts = request.max_attempts;
  created.max_hold = request.max_hold;
  created.payload = request.payload;
  return decision;
}

}  // namespace

Decision decide(const State& state, const SubmitTask& request, const Moment& at) {
  if (auto bad = refuse(request, at.rules)) return *bad;

  std::uint64_t content = 0;
  if (!request.key.empty()) {
    content = content_of(request);
    const Slot known = state.keys.find(ScopedName(request.ns, request.key));
    if (known != 0 && !mutant(Mutant::m16_idempotency_key_ignored))
      return answer_from_key(state, known, content);
  }
  const Growth growth{request.ns, request.queue, request.requires_capabilities.joined(), request.priority,
                      request.payload.bytes().size()};
  if (auto full = refuse_growth(state, growth, at.rules)) return *full;
  return create(request, content, at);
}

Decision decide(const State& state, const CancelTask& request, const Moment&) {
  if (!request.actor.empty() && !is_name(request.actor)) {
    return Reject{Errc::invalid_request, "the actor must be 1 to 128 graphic ASCII characters"};
  }
  if (request.note.bytes().size() > kReasonBytesMax)
    return too_large("note", request.note.bytes().size(), kReasonBytesMax);
  const Slot slot = find_task(state, request.ns, request.task);
  if (slot == 0) return no_such(request.task);
  const Task& task = state.tasks[slot];
  if (task.state == TaskState::dead && task.dead_reason == DeadReason::cancelled) return Reply{Accepted{}};
  if (is_final(task.state))
    return Reject{Errc::wrong_state, "the task has already ended: it is " + std::string(name_of(task.state))};
  return Append{TaskDead{.task = task.lsn,
                         .why = DeadReason::cancelled,
                         .actor = request.actor,
                         .note = {request.note.bytes(), request.note.hash()}},
                Accepted{}};
}

Decision decide(const State& state, const RequeueTask& request, const Moment& at) {
  if (!request.key.empty() && !is_name(request.key)) {
    return Reject{Errc::invalid_request, "the key must be 1 to 128 graphic ASCII characters"};
  }
  const Slot slot = find_task(state, request.ns, request.task);
  if (slot == 0) {
    // The old task may be forgotten while its repetition is not, and the request may be a repetition too.
    const Slot repeat = request.key.empty() || !is_name(request.ns)
                            ? 0
                            : state.keys.find(ScopedName(request.ns, request.key));
    const bool of_that = repeat != 0 && request.task.key.empty() &&
                         state.options[state.tasks[repeat].options].retry_of == request.task.id;
    if (!of_that) return no_such(request.task);
    return Reply{Submitted{.task = state.tasks[repeat].id(), .existed = true}};
  }
  const Task& old = state.tasks[slot];
  if (old.state != TaskState::failed && old.state != TaskState::dead) {
    return Reject{Errc::wrong_state, "only a failed or dead task can be requeued, and this one is " +
                                         std::string(name_of(old.state))};
  }
  const std::uint64_t content = request.key.empty() ? 0 : content_of_repeat(old.id());
  if (!request.key.empty()) {
    if (const Slot known = state.keys.find(ScopedName(request.ns, request.key))) {
      return answer_from_key(state, known, content);
    }
  }
  const Lane& lane = state.lanes[old.lane];
  const Queue& queue = state.queues[lane.queue];
  const Growth growth{queue.ns, queue.name, lane.capabilities, lane.priority, old.payload.length};
  if (auto full = refuse_growth(state, growth, at.rules)) return *full;

  const TaskOptions usual;
  const TaskOptions& options = old.options == 0 ? usual : state.options[old.options];
  return Append{TaskCreated{.ns = queue.ns,
                            .queue = queue.name,
                            .capabilities = lane.capabilities,
                            .key = request.key,
                            .content = content,
                            .priority = lane.priority,
                            .eligible_at = at.now,
                            .retry = options.retry,
                            .max_attempts = options.max_attempts,
                            .max_hold = options.max_hold,
                            .retry_of = old.id(),
                            .payload_of_old = old.payload},
                Submitted{.task = {at.epoch, at.lsn}}};
}

Decision decide(const State& state, const PauseQueue& request, const Moment& at) {
  if (auto bad = refuse_name(request.ns, request.queue)) return *bad;
  const Slot slot = find_queue(state, request.ns, request.queue);
  if (slot != 0 && state.queues[slot].paused) return Reply{Accepted{}};
  if (slot == 0 && state.queues.used() >= kQueuesMax) {
    return full("there are as many queues as there may be", kQueuesMax);
  }
  if (slot == 0 && has_all_queues(usage_of(state, request.ns), at.rules.each_namespace)) {
    return full("the namespace has as many queues as it may", at.rules.each_namespace.queues_max);
  }
  return Append{QueuePaused{.ns = request.ns, .queue = request.queue}, Accepted{}};
}

Decision decide(const State& state, const ResumeQueue& request, const Moment&) {
  if (auto bad = refuse_name(request.ns, request.queue)) return *bad;
  const Slot slot = find_queue(state, request.ns, request.queue);
  if (slot == 0 || !state.queues[slot].paused) return Reply{Accepted{}};
  return Append{QueueResumed{.ns = request.ns, .queue = request.queue}, Accepted{}};
}

Decision decide(const State& state, const PurgeQueue& request, const Moment&) {
  if (auto bad = refuse_name(request.ns, request.queue)) return *bad;
  const Slot slot = find_queue(state, request.ns, request.queue);
  if (slot == 0) return Reject{Errc::not_found, "no such queue: " + request.queue};
  const std::size_t wanted = request.count_max == 0 ? kPurgeItemsMax : request.count_max;
  TasksPurged purged;
  for (Slot task = state.queues[slot].finished.head; task != 0; task = state.tasks[task].next) {
    if (purged.tasks.size() == std::min(wanted, kPurgeItemsMax)) break;
    purged.tasks.push_back(state.tasks[task].lsn);
  }
  const auto count = static_cast<std::uint32_t>(purged.tasks.size());
  if (count == 0) return Reply{Purged{}};
  return Append{std::move(purged), Purged{count}};
}

Decision decide(const State& state, const MoveBlob& request, const Moment& at) {
  if (request.message) return decide_message_move(state, request, at);
  // Kept where it is: the log's records may have been larger once.
  if (request.blob.bytes().size() > at.rules.payload_bytes_max) {
    return Reject{Errc::too_large, "the bytes no longer fit an entry"};
  }
  const Slot slot = state.ids.find(request.task.lsn);
  if (slot == 0) return Reject{Errc::not_found, "the task is gone"};
  const Task& task = state.tasks[slot];
  const BlobRef* kept = request.part == BlobPart::payload ? &task.payload : nullptr;
  for (Slot ending = task.endings; ending != 0 && kept == nullptr; ending = state.endings[ending].next) {
    if (state.endings[ending].lease == request.lease) kept = &state.endings[ending].note;
  }
  if (kept == nullptr || *kept != request.from)
    return Reject{Errc::not_found, "the bytes are no longer needed there"};
  if (request.blob.hash() != kept->hash || request.blob.bytes().size() != kept->length)
    return Reject{Errc::corrupt, "the bytes are not the ones that were kept"};
  return Append{BlobMoved{.task = task.lsn,
                          .part = request.part,
                          .lease = request.lease,
                          .blob = {request.blob.bytes(), request.blob.hash()}},
                Accepted{}};
}

std::optional<TasksPurged> overdue_for_purge(const State& state, Slot slot, const Moment& at) {
  const Queue& queue = state.queues[slot];
  const std::uint64_t finished = queue.finished_count();
  std::uint64_t surplus = finished > at.rules.retention_count ? finished - at.rules.retention_count : 0;
  TasksPurged purged;
  for (Slot task = queue.finished.head; task != 0; task = state.tasks[task].next) {
    if (purged.tasks.size() == kPurgeItemsMax) break;
    if (surplus == 0 && state.tasks[task].since + at.rules.retention_age > at.now) break;
    purged.tasks.push_back(state.tasks[task].lsn);
    surplus -= surplus > 0;
  }
  if (purged.tasks.empty()) return {};
  return purged;
}

}  // namespace baton::core
