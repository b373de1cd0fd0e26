// Questions: one task, its end, pages of tasks and queues.
#include <algorithm>
#include <optional>
#include <utility>

#include "core/query.h"
#include "core/refusal.h"
#include "server/desk.h"
#include "server/limits.h"
#include "server/second_look.h"
#include "server/verb.h"

namespace baton::server {
namespace {

constexpr Parameter kTask{"task", Kind::text, Place::position, "Task id, or key: and its key"};
constexpr Parameter kGet[] = {kTask};
constexpr Parameter kWait[] = {
    kTask, {"wait_ms", Kind::number, Place::option, "How long at most; 60000 if not given"}};
constexpr Parameter kTasks[] = {
    {"queue", Kind::text, Place::option, "Of this queue only"},
    {"state", Kind::text, Place::option, "waiting, leased, completed, failed or dead"},
    {"worker", Kind::text, Place::option, "Leased by this worker only"},
    {"older_than_ms", Kind::number, Place::option, "In their state for longer than this only"},
    {"count", Kind::number, Place::option, "Tasks on a page at most; 100 if not given"},
    {"cursor", Kind::number, Place::option, "Where to go on, as the page before said"}};

void write_view(ReplyWriter& reply, const core::TaskView& view) {
  const bool leased = view.state == core::TaskState::leased;
  const bool dead = view.state == core::TaskState::dead;
  const std::size_t members = 8 + (view.key.empty() ? 0 : 1) + (leased ? 3 : 0) + (dead ? 1 : 0) +
                              (view.retry_of == core::TaskId{} ? 0 : 1) + (view.capabilities.empty() ? 0 : 1);
  reply.map(members);
  reply.member("task", core::to_text(view.id));
  reply.member("queue", view.queue);
  reply.member("state", core::name_of(view.state));
  reply.member("priority", view.priority);
  reply.member("attempt", view.attempt);
  reply.member("failures", view.failures);
  reply.member("created_at", static_cast<std::uint64_t>(view.created_at.ms));
  reply.member("since", static_cast<std::uint64_t>(view.since.ms));
  if (!view.key.empty()) reply.member("key", view.key);
  if (leased) {
    reply.member("worker", view.worker);
    reply.member("fence", core::fence_text({view.lease_epoch, view.lease, 0}));
    reply.member("lease_expiry", static_cast<std::uint64_t>(view.lease_expiry.ms));
  }
  if (dead) reply.member("dead_reason", core::name_of(view.dead_reason));
  if (view.retry_of != core::TaskId{}) reply.member("retry_of", core::to_text(view.retry_of));
  if (!view.capabilities.empty()) reply.member("capabilities", view.capabilities);
}

// One task with its bytes; waits for its end if asked to.
class TaskOperation final : public Operation {
 public:
  TaskOperation(std::string ns, core::TaskRef task, Duration wait)
      : ns_(std::move(ns)), task_(std::move(task)), wait_(wait) {}

  void begin(Desk& desk) override { desk.look(*this); }
  void look(engine::Engine& engine) override {
    view_ = core::view(engine.state(), ns_, task_);
    lsn_ = engine.state().last;
  }
  void looked(Desk& desk) override {
    if (!view_) return;
    if (!core::is_final(view_->state) && wait_ > Duration{} && !time_is_up_) {
      if (!deadline_) deadline_ = desk.now() + wait_;
      // By id, even if it was named by its key: the key may pass on to another task.
      task_ = core::TaskRef(view_->id);
      return desk.wait_for_end(*this, view_->id.lsn, *deadline_);
    }
    desk.fetch(*this, second_look_.index_of(0), view_->payload);
    desk.fetch(*this, second_look_.index_of(1), view_->note);
  }
  void wake(Desk& desk, bool time_is_up) override {
    time_is_up_ = time_is_up;
    desk.look(*this);
  }
  void fetched(Desk& desk, std::size_t index, Result<Bytes> bytes) override {
    if (second_look_.is_outdated(index)) return;
    if (second_look_.is_due(bytes)) return desk.look(*this);
    bytes_[SecondLook::part_of(index)] = std::move(bytes);
  }
  bool is_blocking() const override { return wait_ > Duration{}; }
  std::size_t weight() const override { return 64; }

  void write(ReplyWriter& reply) override {
    if (!view_) return reply.error({Errc::not_found, "no such task: " + core::to_text(task_)});
    for (const auto& bytes : bytes_) {
      if (!bytes) return reply.error(bytes.error());
    }
    reply.map(4);
    reply.member("lsn", lsn_);
    reply.name("task");
    write_view(reply, *view_);
    reply.name("payload");
    reply.bytes(*bytes_[0]);
    reply.name(view_->state == core::TaskState::completed ? "result" : "reason");
    reply.bytes(*bytes_[1]);
  }

 private:
  const std::string ns_;
  core::TaskRef task_;
  const Duration wait_;
  std::optional<Instant> deadline_;
  bool time_is_up_ = false;
  core::Lsn lsn_ = 0;
  std::optional<core::TaskView> view_;
  SecondLook second_look_;
  Result<Bytes> bytes_[2];  // payload; result or reason
};

class ListOperation final : public Operation {
 public:
  ListOperation(core::ListTasks query, std::optional<Duration> age) : query_(std::move(query)), age_(age) {}

  void begin(Desk& desk) override { desk.look(*this); }
  void look(engine::Engine& engine) override {
    if (age_) query_.older_than = engine.now() - *age_;
    page_ = core::list(engine.state(), query_);
    lsn_ = engine.state().last;
  }
  std::size_t weight() const override { return 512; }
  void write(ReplyWriter& reply) override {
    reply.map(3);
    reply.member("lsn", lsn_);
    reply.name("tasks");
    reply.list(page_.tasks.size());
    for (const core::TaskView& view : page_.tasks) write_view(reply, view);
    reply.member("cursor", page_.next);
  }

 private:
  core::ListTasks query_;
  const std::optional<Duration> age_;
  core::TaskPage page_;
  core::Lsn lsn_ = 0;
};

std::unique_ptr<Operation> get(const std::string& ns, Arguments& arguments) {
  return std::make_unique<TaskOperation>(ns, arguments.task("task"), Duration{});
}

std::unique_ptr<Operation> wait(const std::string& ns, Arguments& arguments) {
  const auto wait_ms = static_cast<std::int64_t>(arguments.number("wait_ms", 60'000, kWaitMsMax));
  return std::make_unique<TaskOperation>(ns, arguments.task("task"), milliseconds(wait_ms));
}

std::optional<core::TaskState> parse_state(std::string_view text) {
  for (std::size_t at = 0; at < core::kTaskStates; ++at) {
    const auto state = static_cast<core::TaskState>(at);
    if (core::name_of(state) == text) return state;
  }
  return {};
}

std::unique_ptr<Operation> tasks(const std::string& ns, Arguments& arguments) {
  core::ListTasks query{.ns = ns,
                        .queue = std::string(arguments.text("queue")),
                        .worker = std::string(arguments.text("worker"))};
  std::optional<Duration> age;
  if (arguments.has("older_than_ms")) age = arguments.duration("older_than_ms", {});
  if (arguments.has("state")) {
    query.state = parse_state(arguments.text("state"));
    if (!query.state)
      arguments.complain(Errc::invalid_request, "state must be waiting, leased, completed, failed or dead");
  }
  query.from = arguments.number("cursor", 0, INT64_MAX);
  query.count_max = arguments.number("count", 100, core::kListTasksMax);
  return std::make_unique<ListOperation>(std::move(query), age);
}

constexpr Verb kVerbs[] = {
    {"get", Permission::query, kGet, get,
     "A task, its payload, and its result or the reason of its last failure", "Task"},
    {"wait", Permission::query, kWait, wait, "As GET, once the task has ended or the time is over", "Task"},
    {"tasks", Permission::query, kTasks, tasks, "A page of tasks, in the order in which they were submitted",
     "Tasks"},
};

}  // namespace

std::span<const Verb> query_verbs() { return kVerbs; }

}  // namespace baton::server
