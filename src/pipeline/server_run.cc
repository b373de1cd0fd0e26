#include "pipeline/server_run.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "pipeline/pulse.h"
#include "pipeline/wire_text.h"

namespace baton::pipeline {
namespace {

constexpr std::size_t kNameBytesMax = 128;
constexpr std::size_t kNoteBytesMax = 4096;  // of a cancelled task

std::string in_hex(std::uint64_t number) {
  std::string text(16, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, number >>= 4)
    *digit = "0123456789abcdef"[number & 15];
  return text;
}

// What became of a module, as the note of its cancelled task.
std::string as_note(SerializedModuleResult result) {
  std::string text = to_text(result);
  if (text.size() <= kNoteBytesMax || !result.failure) return text;
  result.failure->message.resize(kNoteBytesMax / 8);  // a character may take six in JSON
  return to_text(result);
}

// Nothing that a worker says may harm more than its own module.
SerializedModuleResult read_result(const client::Task& task, const std::string& module) {
  SerializedModuleResult result{.attempt = task.view.attempt, .status = ModuleStatus::failed};
  if (auto read = from_text<SerializedModuleResult>(task.result))
    result = std::move(*read);
  else
    result.failure = ModuleFailure{.kind = FailureKind::decode,
                                   .message = "its result cannot be read: " + read.error().message};
  result.module = module;
  return result;
}

bool is_alive(WorkerStatus status) {
  return status != WorkerStatus::disconnected && status != WorkerStatus::timed_out;
}

WorkerStatus status_of(const client::TaskView& view, bool works, bool is_changing) {
  if (view.has_ended()) return WorkerStatus::disconnected;
  if (view.state != "leased") return is_changing ? WorkerStatus::connected : WorkerStatus::timed_out;
  if (view.worker.starts_with(kRegistered)) return WorkerStatus::connected;
  return works ? WorkerStatus::executing : WorkerStatus::active;
}

}  // namespace

ServerRun::ServerRun(const client::ClientOptions& options, std::string id, Duration ttl)
    : run(std::move(id)), lease_ms_(ttl.ms) {
  client::ClientOptions with = options;
  with.waiting_connections_max = std::max<std::size_t>(with.waiting_connections_max, 4096);
  client.emplace(with);
}

Duration ServerRun::master_silence(bool is_missed) {
  if (!is_missed) return master_missed_at_ = 0, Duration{};
  if (master_missed_at_ == 0) master_missed_at_ = steady_ms();
  return lease() + Duration{steady_ms() - master_missed_at_};
}

Result<client::Task> ServerRun::run_task(const std::stop_token& stop) {
  auto task = get(run, stop);
  const std::lock_guard lock(mutex);
  if (!task && task.error().code == Errc::not_found && master_ && !closed)
    closed = Closed{"the run is over, and the server has forgotten it"};
  if (!task) return task;
  if (auto opening = from_text<RunOpening>(task->payload)) {
    heed(*opening);
    master_ = std::move(*opening);
  }
  if (task->view.has_ended())
    closed = Closed{task->view.state == "completed" ? task->result : "the run was cancelled"};
  return task;
}

Status ServerRun::admit(const WorkerRegistration& worker, const std::stop_token& stop) {
  {
    const std::lock_guard lock(mutex);
    if (master_) return compare(worker);
  }
  if (auto task = run_task(stop); !task && task.error().code != Errc::not_found)
    return std::unexpected(task.error());
  const std::lock_guard lock(mutex);
  return compare(worker);
}

Status ServerRun::compare(const WorkerRegistration& worker) const {
  return master_ ? pipeline::admit(*master_, worker) : Status{};
}

void ServerRun::follow(const std::string& module) {
  client->wait(
      named(key_of(module)), kServerWait, [weak = weak_from_this(), module](Result<client::Task> task) {
        const auto self = weak.lock();
        if (!self) return;
        if (task && !task->view.has_ended()) return self->follow(module);
        const std::lock_guard lock(self->mutex);
        if (!task && task.error().code == Errc::closed) return;
        auto result =
            task ? result_of(*task, module) : Result<SerializedModuleResult>(std::unexpected(task.error()));
        if (result)
          self->arrived.push_back(std::move(*result));
        else
          self->feed_failed = result.error();
        self->changed.notify_all();
      });
}

// A worker that takes it between the question and the end of the task has begun it before it was withdrawn:
// it loses its lease.
Result<Accepted> ServerRun::withdraw(const SerializedModuleResult& result, const std::stop_token& stop) {
  const auto task = get(key_of(result.module), stop);
  if (!task) return std::unexpected(task.error());
  if (task->view.queue == own_results())
    return task->payload == to_text(result) ? Accepted::duplicate : Accepted::stale;
  if (task->view.has_ended()) {
    const auto before = result_of(*task, result.module);
    return before && to_text(*before) == as_note(result) ? Accepted::duplicate : Accepted::stale;
  }
  if (task->view.state == "leased") return Accepted::stale;
  const auto ended = ask<void>(stop, [&](auto answer) {
    client->cancel(task->view.task, "master", as_note(result), std::move(answer));
  });
  if (!ended && ended.error().code == Errc::wrong_state) return Accepted::stale;
  if (!ended) return std::unexpected(ended.error());
  return Accepted::first;
}

Status ServerRun::cancel_all(const std::string& queue, const std::string& state,
                             const std::stop_token& stop) {
  const auto left = list(queue, state, stop);
  if (!left) return std::unexpected(left.error());
  std::vector<Question<void>> questions(left->size());
  for (std::size_t i = 0; i < questions.size(); ++i)
    client->cancel((*left)[i].task, "master", {}, questions[i].answer());
  for (Question<void>& question : questions) {
    // One that has ended meanwhile is as good as cancelled.
    if (const auto done = question.wait(stop); !done && is_transient(done.error().code)) return done;
  }
  return {};
}

// If that fails they stay, and harm nobody.
void ServerRun::let_go_of_own_results(const std::stop_token& stop) {
  for (;;) {
    const auto tasks = client->lease(
        {.worker = "master", .queues = {own_results()}, .count = 100, .ttl = lease(), .capabilities = {}},
        stop);
    if (!tasks || tasks->empty()) return;
    std::vector<Question<client::Verdict>> questions(tasks->size());
    for (std::size_t i = 0; i < questions.size(); ++i)
      client->complete((*tasks)[i].held(), {}, questions[i].answer());
    for (Question<client::Verdict>& question : questions) {
      if (!question.wait(stop)) return;
    }
  }
}

Result<SerializedModuleResult> ServerRun::result_of(const client::Task& task, const std::string& module) {
  if (task.view.state == "completed") return read_result(task, module);
  if (task.view.dead_reason == "cancelled") {
    if (auto withdrawn = from_text<SerializedModuleResult>(task.reason)) return withdrawn;
    SerializedModuleResult cancelled{.module = module, .status = ModuleStatus::failed};
    cancelled.failure =
        ModuleFailure{.kind = FailureKind::cancelled,
                      .message = "somebody cancelled its task at the coordinator, " + task.view.task};
    return cancelled;
  }
  SerializedModuleResult result{
      .module = module, .attempt = task.view.attempt, .status = ModuleStatus::failed};
  result.failure = ModuleFailure{.kind = FailureKind::worker_lost,
                                 .message = "its worker fell silent during attempt " +
                                            std::to_string(task.view.attempt) + ", the last one it had"};
  return result;
}

Result<std::vector<client::TaskView>> ServerRun::list(const std::string& queue, const std::string& state,
                                                      const std::stop_token& stop) {
  std::vector<client::TaskView> all;
  client::TaskQuery query{.queue = queue, .state = state, .count = 1000};
  do {
    auto page = ask<client::TaskPage>(stop, [&](auto answer) { client->tasks(query, std::move(answer)); });
    if (!page) return std::unexpected(page.error());
    all.insert(all.end(), page->tasks.begin(), page->tasks.end());
    query.cursor = page->cursor;
  } while (query.cursor != 0);
  return all;
}

Result<std::string> ServerRun::module_of(const client::TaskView& view, const std::stop_token& stop) {
  if (!view.key.starts_with(run + "/")) return std::string();
  if (!view.key.starts_with(run + "/#")) return view.key.substr(run.size() + 1);
  {
    const std::lock_guard lock(mutex);
    if (const auto known = long_names_.find(view.task); known != long_names_.end()) return known->second;
  }
  auto task = get(view.key, stop);  // its name was too long for a key
  if (!task) return std::unexpected(task.error());
  auto assignment = from_text<ModuleAssignment>(task->payload);
  if (!assignment) return std::unexpected(assignment.error());
  const std::lock_guard lock(mutex);
  return long_names_.emplace(view.task, std::move(assignment->module)).first->second;
}

Result<WorkerRegistration> ServerRun::registration_of(const client::TaskView& view,
                                                      const std::stop_token& stop) {
  {
    const std::lock_guard lock(mutex);
    if (const auto known = registrations_.find(view.task); known != registrations_.end())
      return known->second;
  }
  auto task = ask<client::Task>(stop, [&](auto answer) { client->get(view.task, std::move(answer)); });
  if (!task) return std::unexpected(task.error());
  auto registration = from_text<WorkerRegistration>(task->payload);
  if (!registration) return registration;
  const std::lock_guard lock(mutex);
  return registrations_.emplace(view.task, std::move(*registration)).first->second;
}

Result<bool> ServerRun::is_taken(std::int32_t index, const std::string& session,
                                 const std::stop_token& stop) {
  auto there = registered({}, stop);
  if (!there) return std::unexpected(there.error());
  return std::ranges::any_of(*there, [&](const RegisteredWorker& other) {
    return other.registration.index == index && other.registration.session != session &&
           is_alive(other.status);
  });
}

// Nobody holds the task of a worker for a moment: when it has just been handed in, and when the worker, at
// its first heartbeat, takes it under another name.
bool ServerRun::is_changing(const client::TaskView& view, bool is_recent, Duration patience) {
  if (view.state != "waiting" || view.attempt > 1) return false;
  if (view.attempt == 0) return is_recent;
  const std::lock_guard lock(mutex);
  const std::int64_t first_seen_ms = held_by_nobody_.try_emplace(view.task, steady_ms()).first->second;
  return steady_ms() - first_seen_ms < patience.ms;
}

Result<std::vector<RegisteredWorker>> ServerRun::registered(Duration patience, const std::stop_token& stop) {
  auto presences = list(workers(), "", stop);
  if (!presences) return std::unexpected(presences.error());
  auto modules = list(assignments(), "leased", stop);
  if (!modules) return std::unexpected(modules.error());
  std::map<std::string, std::vector<std::string>>
      current;  // modules, by the name under which a worker leases
  for (const client::TaskView& view : *modules) {
    auto module = module_of(view, stop);
    if (!module) return std::unexpected(module.error());
    if (!module->empty()) current[view.worker].push_back(std::move(*module));
  }
  Instant latest;  // of what the coordinator tells: its time is not ours
  for (const client::TaskView& view : *presences) latest = std::max(latest, view.since);
  std::map<std::int32_t, RegisteredWorker> newest;
  for (const client::TaskView& view : *presences) {
    auto registration = registration_of(view, stop);
    if (!registration) return std::unexpected(registration.error());
    const auto works = current.find(registration->name);
    RegisteredWorker worker{
        *registration,
        status_of(view, works != current.end(), is_changing(view, latest - view.since <= lease(), patience)),
        {},
        {}};
    if (works != current.end()) worker.current_modules = works->second;
    if (worker.status == WorkerStatus::timed_out) worker.silent_for = lease();
    // Of two that registered at once the first stays; the other goes away again.
    const auto [known, is_new] = newest.try_emplace(registration->index, worker);
    if (!is_new && !is_alive(known->second.status)) known->second = std::move(worker);
  }
  std::vector<RegisteredWorker> all;
  for (auto& [index, worker] : newest) all.push_back(std::move(worker));
  return all;
}

// Under which name a worker holds its own task says whether it was heard of since it registered. If the
// answer to its request was lost, nobody knows the lease: it is had until that expires, and then taken again.
Status ServerRun::be_there(const std::string& session, std::string_view as, const std::stop_token& stop) {
  const auto held = hold(presence,
                         {.worker = std::string(as) + session,
                          .queues = {workers()},
                          .ttl = lease(),
                          .capabilities = {"session:" + session}},
                         stop);
  if (held || held.error().code != Errc::conflict) return held;
  const auto leased = list(workers(), "leased", stop);
  if (!leased) return std::unexpected(leased.error());
  const bool is_mine = std::ranges::any_of(*leased, [&](const client::TaskView& view) {
    return view.worker == std::string(kRegistered) + session || view.worker == std::string(kActive) + session;
  });
  return is_mine ? Status{} : held;
}

Status ServerRun::hold(client::Held& held, const client::Lease& request, const std::stop_token& stop) {
  if (!held.lease.empty()) {
    const auto extended =
        ask<Duration>(stop, [&](auto answer) { client->extend(held, lease(), std::move(answer)); });
    if (extended) return {};
    if (extended.error().code != Errc::lease_lost && extended.error().code != Errc::lease_unknown)
      return std::unexpected(extended.error());
    held = {};
  }
  auto tasks = client->lease(request, stop);
  if (!tasks) return std::unexpected(tasks.error());
  if (tasks->empty()) return failure(Errc::conflict, "another process holds it");
  held = tasks->front().held();
  return {};
}

bool ServerRun::is_due() {
  const std::lock_guard lock(run_mutex);
  return steady_ms() - extended_at > lease().ms / 3;
}

Status ServerRun::stay_master(const std::stop_token& stop) {
  const std::lock_guard lock(run_mutex);
  if (!is_master) return {};
  extended_at = steady_ms();
  auto held =
      hold(run_held,
           {.worker = "master", .queues = {"pipeline-runs"}, .ttl = lease(), .capabilities = {"run:" + run}},
           stop);
  if (held || held.error().code != Errc::conflict) return held;
  if (const auto task = run_task(stop); task && task->view.dead_reason == "cancelled")
    return failure(Errc::wrong_state, "somebody cancelled the task of run " + run + " at the coordinator");
  return failure(Errc::conflict, "another master has taken over run " + run);
}

std::string ServerRun::key_of(const std::string& module) const {
  const std::string key = run + "/" + module;
  return key.size() <= kNameBytesMax ? key : run + "/#" + in_hex(content_hash(bytes_of(module)));
}

}  // namespace baton::pipeline
