#include "tests/model/reference_model.h"

#include <algorithm>
#include <sstream>

#include "core/limits.h"

namespace baton::model {

using namespace core;

namespace {

std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> found;
  for (std::string word; in >> word;) found.push_back(word);
  return found;
}

BlobRef kept(const BlobView& blob, const Stamp& at) {
  if (blob.bytes.empty()) return {};
  const auto length = static_cast<std::uint32_t>(blob.bytes.size());
  return {.lsn = at.lsn, .hash = blob.hash, .offset = at.body_end - length, .length = length};
}

bool same_content(const BlobRef& a, const BlobRef& b) { return a.hash == b.hash && a.length == b.length; }

// The newest eight leases are remembered, and beside them how a task ended that nobody held.
void remember(ModelTask& task, const Past& past) {
  task.pasts.insert(task.pasts.begin(), past);
  std::size_t leases = 0;
  std::erase_if(task.pasts, [&](const Past& one) { return one.lease != 0 && ++leases > kEndingsKept; });
}

void end_hold(ModelTask& task, Past past) {
  past.lease = task.hold->lease;
  past.epoch = task.hold->epoch;
  task.hold.reset();
  remember(task, past);
}

void enter(ModelTask& task, TaskState state, Instant since, const Stamp& at) {
  task.state = state;
  task.since = since;
  task.place = at.lsn;
}

bool is_subset(const std::vector<std::string>& few, const std::vector<std::string>& many) {
  return std::ranges::all_of(few, [&](const auto& one) { return std::ranges::count(many, one) > 0; });
}

}  // namespace

ModelTask* ReferenceModel::task(Lsn lsn) {
  const auto found = tasks_.find(lsn);
  return found == tasks_.end() ? nullptr : &found->second;
}

const ModelTask* ReferenceModel::with_key(std::string_view ns, std::string_view key) const {
  for (const auto& [lsn, task] : tasks_) {
    if (!key.empty() && task.key == key && task.ns == ns) return &task;
  }
  return nullptr;
}

const ModelTask* ReferenceModel::find(std::string_view ns, const TaskRef& ref) const {
  if (!ref.key.empty()) return with_key(ns, ref.key);
  const auto found = tasks_.find(ref.id.lsn);
  if (found == tasks_.end() || found->second.id != ref.id || found->second.ns != ns) return nullptr;
  return &found->second;
}

bool ReferenceModel::is_paused(std::string_view ns, std::string_view queue) const {
  return paused_.contains({std::string(ns), std::string(queue)});
}

bool ReferenceModel::has_queue(std::string_view ns, std::string_view queue) const {
  return is_paused(ns, queue) || std::ranges::any_of(tasks_, [&](const auto& entry) {
           return entry.second.ns == ns && entry.second.queue == queue;
         });
}

std::vector<const ModelTask*> ReferenceModel::finished(std::string_view ns, std::string_view queue) const {
  std::vector<const ModelTask*> found;
  for (const auto& [lsn, task] : tasks_) {
    if (is_final(task.state) && task.ns == ns && task.queue == queue) found.push_back(&task);
  }
  std::ranges::sort(found, {}, &ModelTask::place);
  return found;
}

std::optional<std::string> ReferenceModel::observe(const Event& event, const Stamp& stamp) {
  std::string wrong;
  if (stamp.lsn != last_ + 1) wrong = "the entry is not the next one";
  if (stamp.time < time_) wrong = "time goes back";
  if (stamp.epoch != epoch_ && !std::holds_alternative<EpochStarted>(event)) wrong = "the epoch changes";
  if (wrong.empty()) {
    wrong = std::visit([&](const auto& fact) { return happened(fact, stamp); }, event);
  }
  last_ = stamp.lsn;
  epoch_ = stamp.epoch;
  time_ = stamp.time;
  if (wrong.empty()) return {};
  return "entry " + std::to_string(stamp.lsn) + ": " + wrong;
}

std::string ReferenceModel::happened(const TaskCreated& event, const Stamp& at) {
  if (!is_name(event.ns) || !is_name(event.queue)) return "a namespace or queue has no proper name";
  if (!event.key.empty() && !is_name(event.key)) return "the key is not a proper name";
  if (with_key(event.ns, event.key) != nullptr) return "the key is in use";
  if (event.key.empty() && event.content != 0) return "a content hash without a key";
  if (event.priority > kPriorityMax || event.max_attempts < 1) return "an option is out of range";
  if (event.eligible_at < at.time) return "eligible before it is created";
  ModelTask task{.id = {at.epoch, at.lsn},
                 .ns = std::string(event.ns),
                 .queue = std::string(event.queue),
                 .key = std::string(event.key),
                 .capabilities = std::string(event.capabilities),
                 .needs = words(event.capabilities),
                 .priority = event.priority,
                 .delay = event.eligible_at - at.time,
                 .retry = event.retry,
                 .max_attempts = event.max_attempts,
                 .max_hold = event.max_hold,
                 .retry_of = event.retry_of,
                 .payload = kept(event.payload, at),
                 .created_at = at.time};
  if (event.retry_of != TaskId{}) {
    const ModelTask* old = find(event.ns, TaskRef(event.retry_of));
    if (old == nullptr) return "repeats a task that is not there";
    if (old->state != TaskState::failed && old->state != TaskState::dead)
      return "repeats a task that may yet run";
    if (event.payload_of_old != old->payload) return "repeats a task with another payload";
    task.payload = event.payload_of_old;
  }
  enter(task, TaskState::waiting, event.eligible_at, at);
  tasks_.emplace(at.lsn, std::move(task));
  return {};
}

std::string ReferenceModel::happened(const LeaseGranted& event, const Stamp& at) {
  ModelTask* granted = task(event.task);
  if (granted == nullptr) return "grants a task that is not there";
  if (granted->state != TaskState::waiting || granted->hold) return "grants a task that is not waiting";
  if (granted->since > at.time) return "grants a task before it is eligible";
  if (granted->is_doomed()) return "grants a task that has no attempt left";
  if (event.attempt != granted->attempt + 1) return "the attempt does not follow the one before";
  if (event.expiry <= at.time || event.expiry > at.time + kTtlMax) return "the expiry is out of range";
  if (granted->max_hold.ms > 0 && event.expiry > at.time + granted->max_hold)
    return "held longer than allowed";
  if (is_paused(granted->ns, granted->queue)) return "grants a task of a paused queue";
  for (const auto& [lsn, other] : tasks_) {
    // Whoever may take the granted task may take this one, so this one would have been next.
    const bool open = other.state == TaskState::waiting && !other.is_doomed() && other.since <= at.time &&
                      other.ns == granted->ns && other.queue == granted->queue &&
                      is_subset(other.needs, granted->needs);
    const bool first = other.priority != granted->priority
                           ? other.priority > granted->priority
                           : std::pair(other.since, other.place) < std::pair(granted->since, granted->place);
    if (open && first) return "passes over task " + std::to_string(lsn);
  }
  granted->attempt = event.attempt;
  granted->hold = Hold{at.lsn, at.epoch, std::string(event.worker), at.time, event.expiry};
  enter(*granted, TaskState::leased, at.time, at);
  return {};
}

std::string ReferenceModel::not_held(Lsn lsn, Lsn lease, Instant now) const {
  const auto found = tasks_.find(lsn);
  if (found == tasks_.end()) return "speaks of a task that is not there";
  const ModelTask& task = found->second;
  if (task.state != TaskState::leased || !task.hold) return "speaks of a task that is not leased";
  if (task.hold->lease != lease) return "speaks of a lease that is not the current one";
  if (now >= task.hold->expiry) return "the lease has expired";
  return {};
}

std::string ReferenceModel::happened(const LeaseExtended& event, const Stamp& at) {
  if (auto wrong = not_held(event.task, event.lease, at.time); !wrong.empty()) return wrong;
  ModelTask& held = *task(event.task);
  if (event.expiry <= held.hold->expiry || event.expiry > at.time + kTtlMax)
    return "the expiry is out of range";
  if (held.max_hold.ms > 0 && event.expiry > held.hold->granted_at + held.max_hold)
    return "held longer than allowed";
  held.hold->expiry = event.expiry;
  return {};
}

std::string ReferenceModel::happened(const LeasesExtended& event, const Stamp& at) {
  if (event.items.empty() || event.items.size() > kExtendItemsMax) return "extends none, or too many";
  for (const LeaseExtended& item : event.items) {
    if (auto wrong = happened(item, at); !wrong.empty()) return wrong;
  }
  return {};
}

std::string ReferenceModel::happened(const LeaseExpired& event, const Stamp& at) {
  ModelTask* held = task(event.task);
  if (held == nullptr || !held->hold || held->hold->lease != event.lease) return "expires what is not held";
  if (at.time < held->hold->expiry) return "expires a lease before its time";
  end_hold(*held, {.how = Ended::expired});
  enter(*held, TaskState::waiting, at.time, at);
  return {};
}

std::string ReferenceModel::happened(const TaskCompleted& event, const Stamp& at) {
  if (auto wrong = not_held(event.task, event.lease, at.time); !wrong.empty()) return wrong;
  end_hold(*task(event.task), {.how = Ended::completed, .note = kept(event.result, at)});
  enter(*task(event.task), TaskState::completed, at.time, at);
  return {};
}

std::string ReferenceModel::happened(const TaskCancelled& event, const Stamp&) {
  ModelTask* told = task(event.task);
  if (told == nullptr) return "speaks of a task that is not there";
  for (Past& past : told->pasts) {
    if (past.lease != event.lease || past.lease == 0) continue;
    if (past.how != Ended::expired && past.how != Ended::dead) return "the worker had ended the lease itself";
    if (past.told) return "tells it twice";
    past.told = true;
    return {};
  }
  return "speaks of a lease that is not known";
}

std::string ReferenceModel::happened(const TaskFailed& event, const Stamp& at) {
  if (auto wrong = not_held(event.task, event.lease, at.time); !wrong.empty()) return wrong;
  ModelTask& failed = *task(event.task);
  const bool released = event.outcome == Ended::released;
  if (event.failures != failed.failures + (released ? 0 : 1)) return "the failures are miscounted";
  failed.failures = event.failures;
  end_hold(failed, {.how = event.outcome, .retry_at = event.retry_at, .note = kept(event.reason, at)});
  if (event.outcome == Ended::failed) {
    enter(failed, TaskState::failed, at.time, at);
    return {};
  }
  if (event.retry_at < at.time) return "to be tried again in the past";
  if (event.outcome == Ended::retried &&
      (event.failures >= failed.retry.max_failures || failed.attempt >= failed.max_attempts)) {
    return "tried again against the policy";
  }
  if (event.outcome != Ended::retried && !released) return "a failure does not end like this";
  enter(failed, TaskState::waiting, event.retry_at, at);
  return {};
}

std::string ReferenceModel::happened(const TaskDead& event, const Stamp& at) {
  ModelTask* dead = task(event.task);
  if (dead == nullptr || is_final(dead->state)) return "ends a task that is not there or has ended";
  if (event.why == DeadReason::none) return "dead without a reason";
  if (event.why == DeadReason::attempts_exhausted && !dead->is_doomed()) return "attempts are left";
  const Past past{.how = Ended::dead, .note = kept(event.note, at)};
  if (dead->hold) {
    end_hold(*dead, past);
  } else {
    remember(*dead, past);
  }
  dead->why = event.why;
  enter(*dead, TaskState::dead, at.time, at);
  return {};
}

std::string ReferenceModel::happened(const TasksPurged& event, const Stamp&) {
  if (event.tasks.empty() || event.tasks.size() > kPurgeItemsMax) return "purges none, or too many";
  const ModelTask* first = task(event.tasks.front());
  if (first == nullptr) return "purges a task that is not there";
  const auto oldest = finished(first->ns, first->queue);
  if (oldest.size() < event.tasks.size()) return "purges more than has finished";
  for (std::size_t i = 0; i < event.tasks.size(); ++i) {
    if (oldest[i]->id.lsn != event.tasks[i]) return "purges others than the oldest";
  }
  for (const Lsn lsn : event.tasks) tasks_.erase(lsn);
  return {};
}

std::string ReferenceModel::happened(const QueuePaused& event, const Stamp&) {
  return paused_.emplace(event.ns, event.queue).second ? "" : "pauses a paused queue";
}

std::string ReferenceModel::happened(const QueueResumed& event, const Stamp&) {
  return paused_.erase({std::string(event.ns), std::string(event.queue)}) ? "" : "resumes a running queue";
}

std::string ReferenceModel::happened(const BlobMoved& event, const Stamp& at) {
  ModelTask* owner = task(event.task);
  if (owner == nullptr) return "moves bytes of a task that is not there";
  const BlobRef moved = kept(event.blob, at);
  BlobRef* ref = event.part == BlobPart::payload ? &owner->payload : nullptr;
  for (Past& past : owner->pasts) {
    if (event.part == BlobPart::note && past.lease == event.lease) ref = &past.note;
  }
  if (ref == nullptr || !same_content(*ref, moved)) return "moves other bytes than are kept";
  *ref = moved;
  return {};
}

std::string ReferenceModel::happened(const EpochStarted& event, const Stamp& at) {
  if (at.epoch <= epoch_) return "the epoch does not grow";
  if (epoch_ != 0 && key_ != event.key) return "the key changes";
  key_ = event.key;
  return {};
}

std::string ReferenceModel::happened(const StateDigest&, const Stamp&) { return {}; }
std::string ReferenceModel::happened(const SnapshotTaken&, const Stamp&) { return {}; }
std::string ReferenceModel::happened(const Sealed&, const Stamp&) { return {}; }

}  // namespace baton::model
