#include "server/desk.h"

#include <algorithm>
#include <utility>

#include "core/event_codec.h"
#include "core/prospect.h"
#include "core/stream/outlook.h"

namespace baton::server {
namespace {

// Who waits for work of streams stands in lines too, and who holds as many tasks as he can. No queue has
// such a name.
constexpr std::string_view kStreams = "\1streams of ";
constexpr std::string_view kAtCapacity = "\1at capacity";

std::string line_of(core::Slot service) { return std::string(kStreams) + std::to_string(service); }

constexpr std::size_t kLarge = 64;  // by its weight, the reply to a question

engine::Answer closed() { return {.reply = failure(Errc::closed, "the server is stopping: connect again")}; }

}  // namespace

Error Desk::flooded() {
  return {Errc::exhausted, "too much of the replies to others is not read yet", seconds(1)};
}

bool Desk::is_full_of_halves() {
  const std::size_t free = is_full_of_halves_ ? limits.half_bytes_max / 4 : 0;
  return is_full_of_halves_ = counters.half_bytes >= limits.half_bytes_max - free;
}

// Who asked is gone by now, and the syncer too.
Desk::~Desk() {
  for (const Operation* operation : unbegun_) delete operation;
}

void Desk::accept(std::unique_ptr<Operation> operation, Finisher& finisher) {
  Operation& accepted = *operation.release();
  accepted.desk_ = this;
  accepted.finisher_ = &finisher;
  accepted.outstanding_ = 1;  // so that it is not finished before it has asked for everything
  if (accepted.is_audited()) {
    unbegun_.push_back(&accepted);
    syncer_->run(audit_->syncing(), [this, at = &accepted](const Status& synced) {
      std::erase(unbegun_, at);
      if (synced)
        at->begin(*this);
      else
        at->refused_ = synced.error();
      settle(*at);
    });
    return;
  }
  accepted.begin(*this);
  settle(accepted);
}

Status Desk::audit(Operation& operation, const AuditedAction& action) {
  if (audit_ == nullptr) return {};
  const auto line = audit_->began(action, now());
  if (!line) return std::unexpected(line.error());
  operation.audited_ = *line;
  return {};
}

// It has happened, so all that is left is to tell the operator. The next action will not be begun.
void Desk::audited(const Operation& operation, const engine::Answer& answer) {
  const std::string_view outcome = answer.reply ? "COMMITTED" : word(answer.reply.error().code);
  const auto note = [this](const Status& done) {
    if (!done) authority_.note(done.error().message);
  };
  const auto written = audit_->ended(operation.audited_, outcome, answer.lsn, now());
  note(written);
  if (written) syncer_->run(audit_->syncing(), note);
}

void Desk::abandon(Operation& operation) {
  operation.finisher_ = nullptr;
  if (!waiters_.forget(operation) && !groups.forget(operation, now())) return;
  settle(operation);
}

void Desk::settle(Operation& operation) {
  if (--operation.outstanding_ > 0) return;
  counters.fetched_bytes -= std::exchange(operation.fetched_bytes_, 0);
  if (operation.finisher_ != nullptr) return operation.finisher_->finished(operation);
  operation.abandoned(*this);
  delete &operation;
}

const engine::Answer* Desk::decide(core::Request& request) {
  if (!gate_.is_open())
    return nullptr;  // what passes is charged for, and might have to be asked all the same
  const engine::Answer* answer = authority_.decide_here(request);
  if (answer != nullptr && !answer->reply) ++counters.rejections[word(answer->reply.error().code)];
  return answer;
}

void Desk::await_disk(Operation& operation) {
  ++operation.outstanding_;
  authority_.when_durable([this, at = &operation] { settle(*at); });
}

const engine::Answer* Desk::ask(Operation& operation, std::size_t index, core::Request& request) {
  if (!gate_.is_open()) {
    if (auto refusal = gate_.refuse(request, authority_.engine().state(), now())) {
      ++counters.rejections[word(refusal->code)];
      operation.answered(*this, index, {.reply = std::unexpected(std::move(*refusal))});
      return nullptr;
    }
  }
  ++operation.outstanding_;
  // Two words, so that it needs no memory of its own.
  const auto done = [index, at = &operation](engine::Answer&& answer) {
    Desk& desk = *at->desk_;
    if (!answer.reply) ++desk.counters.rejections[word(answer.reply.error().code)];
    if (at->audited_ != 0) desk.audited(*at, answer);
    at->answered(desk, index, std::move(answer));
    desk.settle(*at);
  };
  if (!authority_.ask_here(request, done)) done(closed());
  return authority_.decided_last();
}

void Desk::ask(core::Request request) {
  authority_.ask(std::move(request), [](engine::Answer) {});
}

void Desk::look(Operation& operation) {
  const bool accepted = authority_.run(
      [this, at = &operation](engine::Engine& engine) {
        if (at->weight() >= kLarge && is_flooded())
          at->refused_ = flooded();
        else
          at->look(engine);
        return true;
      },
      [this, at = &operation] {
        --questions_;
        if (at->finisher_ != nullptr) --at->finisher_->questions;
        if (!at->refused_) at->looked(*this);
        settle(*at);
      });
  if (accepted) {
    ++operation.outstanding_;
    ++questions_;
    if (operation.finisher_ != nullptr) ++operation.finisher_->questions;
  } else {
    operation.refused_ = closed().reply.error();
  }
}

void Desk::stop() {
  stopping_ = true;
  for (Operation* operation : waiters_.take_all()) {
    operation->wake(*this, true);
    settle(*operation);
  }
  tell(groups.take_all(closed().reply.error()));
}

Status Desk::arrive(Operation& operation, const Groups::Name& name, const group::Seat& seat,
                    group::Arrival arrival) {
  if (stopping_) return std::unexpected(closed().reply.error());
  const Status waits = groups.arrive(operation, name, seat, std::move(arrival), now());
  if (waits) ++operation.outstanding_;
  return waits;
}

Status Desk::watch(Operation& operation, const Groups::Name& name, const group::Seat& seat,
                   std::optional<std::string_view> doing, Duration wait) {
  if (stopping_) return std::unexpected(closed().reply.error());
  const Status waits = groups.watch(operation, name, seat, doing, now() + wait, now());
  if (waits) ++operation.outstanding_;
  return waits;
}

void Desk::tell(std::vector<Groups::Answered> answers) {
  for (auto& [operation, outcome] : answers) {
    operation->met(*this, std::move(outcome));
    settle(*operation);
  }
}

void Desk::fetch(Operation& operation, std::size_t index, const core::BlobRef& blob) {
  operation.fetched_bytes_ += blob.length;
  counters.fetched_bytes += blob.length;
  if (auto bytes = authority_.read_at_once(blob)) return operation.fetched(*this, index, std::move(*bytes));
  ++operation.outstanding_;
  reader_.fetch(blob, [this, index, at = &operation](Result<Bytes> bytes) {
    at->fetched(*this, index, std::move(bytes));
    settle(*at);
  });
}

void Desk::wait_for_task(Operation& operation, const TaskWait& wait) {
  if (operation.finisher_ == nullptr || stopping_) return;  // who wanted it has gone, or there is no time
  ++operation.outstanding_;
  // What has come since the operation looked is not announced again, nor is what time has brought.
  if (wait.at_capacity) {
    waiters_.wait_for_task(operation, wait.ns, {std::string(kAtCapacity)}, wait.deadline);
    if (newest_end_ > wait.looked_at) waiters_.task_came(wait.ns, kAtCapacity);
    return;
  }
  waiters_.wait_for_task(operation, wait.ns, wait.queues, wait.deadline, wait.capabilities);
  for (const std::string& queue : wait.queues) {
    const auto prospect = core::prospect(authority_.engine().state(), wait.ns, queue, now());
    if (prospect.next) waiters_.task_comes_at(wait.ns, queue, *prospect.next);
    if (prospect.is_ready_for(wait.capabilities)) waiters_.task_came(wait.ns, queue);
  }
}

void Desk::capacity_changed(std::string_view ns) { waiters_.task_came(ns, kAtCapacity); }

void Desk::wait_for_end(Operation& operation, core::Lsn task, Instant deadline) {
  if (stopping_) operation.refused_ = closed().reply.error();
  if (operation.finisher_ == nullptr || stopping_) return;
  ++operation.outstanding_;
  waiters_.wait_for_end(operation, task, deadline);
  // One that ended since the operation looked is not announced again.
  const core::State& state = authority_.engine().state();
  const core::Slot slot = state.ids.find(task);
  if (slot == 0 || core::is_final(state.tasks[slot].state)) waiters_.task_ended(task);
}

void Desk::wait_for_stream(Operation& operation, std::string_view ns, stream::InstanceId instance,
                           const Looked& looked, Instant deadline) {
  if (operation.finisher_ == nullptr || stopping_) return;
  const core::streams::Streams& all = authority_.engine().state().streams;
  const core::Slot slot = core::streams::find_instance(all, ns, instance);
  if (slot == 0) return;
  ++operation.outstanding_;
  const core::Slot service = all.instances[slot].service;
  const std::string line = line_of(service);
  waiters_.wait_for_task(operation, ns, {line}, deadline);
  // A lease that ends and a retry that is due announce nothing, and nothing is announced again.
  const engine::Engine& engine = authority_.engine();
  const auto outlook = core::outlook(engine.state(), engine.rules().streams, service, looked.at, now());
  if (outlook.next != core::streams::kNever) waiters_.task_comes_at(ns, line, outlook.next);
  if (outlook.has_news || newest_work_ > looked.lsn) waiters_.task_came(ns, line);
}

void Desk::gave(Operation& operation, const HeldLease& held) {
  if (operation.finisher_ != nullptr) news_.watch(*operation.finisher_, held);
}

std::vector<HeldLease> Desk::take_lost(Operation& operation) {
  return operation.finisher_ != nullptr ? operation.finisher_->take_lost() : std::vector<HeldLease>();
}

core::TaskId Desk::find(std::string_view ns, const core::TaskRef& task) const {
  const core::State& state = authority_.engine().state();
  const core::Slot slot = core::find_task(state, ns, task);
  return slot == 0 ? core::TaskId() : state.tasks[slot].id();
}

bool Desk::is_there(core::TaskId task) const {
  const core::State& state = authority_.engine().state();
  const core::Slot slot = state.ids.find(task.lsn);
  return slot != 0 && state.tasks[slot].id() == task;
}

std::string Desk::queue_of(core::TaskId task) const {
  const core::State& state = authority_.engine().state();
  const core::Slot slot = state.ids.find(task.lsn);
  return slot == 0 ? std::string() : state.queue_of(state.tasks[slot]).name;
}

core::BlobRef Desk::payload_of(core::TaskId task) const {
  const core::State& state = authority_.engine().state();
  const core::Slot slot = state.ids.find(task.lsn);
  return slot == 0 ? core::BlobRef() : state.tasks[slot].payload;
}

core::BlobRef Desk::body_of(std::uint64_t message) const {
  const core::streams::Streams& all = authority_.engine().state().streams;
  const core::Slot slot = all.message_numbers.find(message);
  return slot == 0 ? core::BlobRef() : all.messages[slot].body;
}

void Desk::recorded(const core::Event& event, const core::Stamp& stamp) {
  ++counters.entries[core::name_of(core::type_of(event))];
  queue_counts.recorded(event, stamp);
  news_.recorded(event);
  events.recorded(event, stamp);
  work_came(event, stamp);  // also if nobody waits: somebody may have looked before, and begin to now
  if (std::holds_alternative<core::TaskCreated>(event)) {
    task_came(stamp.lsn);
  } else if (const auto* resumed = std::get_if<core::QueueResumed>(&event)) {
    came_to(core::find_queue(authority_.engine().state(), resumed->ns, resumed->queue));
  } else if (const auto* expired = std::get_if<core::LeaseExpired>(&event)) {
    task_came(expired->task);
    lease_ended(expired->task);
  } else if (const auto* failed = std::get_if<core::TaskFailed>(&event)) {
    failed->outcome == core::Ended::failed ? waiters_.task_ended(failed->task) : task_came(failed->task);
    lease_ended(failed->task);
  } else if (const auto* completed = std::get_if<core::TaskCompleted>(&event)) {
    waiters_.task_ended(completed->task);
    lease_ended(completed->task);
  } else if (const auto* dead = std::get_if<core::TaskDead>(&event)) {
    waiters_.task_ended(dead->task);
    lease_ended(dead->task);
  }
}

void Desk::work_came(const core::Event& event, const core::Stamp& stamp) {
  const core::State& state = authority_.engine().state();
  if (!core::brings_work(state, event, stamp)) return;
  newest_work_ = stamp.lsn;
  const auto* batch = std::get_if<core::WorkBatchApplied>(&event);
  if (batch == nullptr) return waiters_.task_came_to_all(kStreams);
  const core::Slot slot = core::streams::find_instance(state.streams, batch->ns, batch->instance);
  waiters_.task_came(batch->ns, line_of(state.streams.instances[slot].service));
}

void Desk::task_came(core::Lsn task) {
  if (!waiters_.anyone_waits()) return;
  const core::State& state = authority_.engine().state();
  const core::Slot slot = state.ids.find(task);
  if (slot != 0) came_to(state.lanes[state.tasks[slot].lane].queue);
}

void Desk::came_to(core::Slot queue) {
  if (queue == 0) return;
  const core::State& state = authority_.engine().state();
  waiters_.task_came(state.queues[queue].ns, state.queues[queue].name);
}

void Desk::lease_ended(core::Lsn task) {
  const core::State& state = authority_.engine().state();
  newest_end_ = state.last;
  if (!waiters_.anyone_waits()) return;
  const core::Slot slot = state.ids.find(task);
  if (slot != 0) waiters_.task_came(state.queue_of(state.tasks[slot]).ns, kAtCapacity);
}

void Desk::tick() {
  gate_.look(now());
  news_.tell(authority_.durable());
  events.tell(authority_.durable(), now());
  tell(groups.take(now()));
  if (!waiters_.anyone_waits()) return;
  const core::State& state = authority_.engine().state();
  const auto look = [&](std::string_view ns, std::string_view queue) {
    if (queue.starts_with(kStreams) || queue == kAtCapacity) return core::Prospect{.needs = {""}};
    return core::prospect(state, ns, queue, now());
  };
  for (const auto& [operation, time_is_up] : waiters_.take(now(), look)) {
    operation->wake(*this, time_is_up);
    settle(*operation);
  }
}

Duration Desk::wait() const { return std::max(Duration{}, std::min(waiters_.next(), groups.next()) - now()); }

}  // namespace baton::server
