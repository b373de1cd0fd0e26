#include "pipeline/server_coordinator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "pipeline/wire_text.h"

namespace baton::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Duration kWait = seconds(20);  // of one question that waits; then it is asked again
constexpr std::uint32_t kManyAttempts = 1'000'000;
constexpr std::size_t kNameBytesMax = 128;
constexpr std::size_t kRunBytesMax = 60;
constexpr std::string_view kRegistered = "registered-";
constexpr std::string_view kActive = "active-";

std::unexpected<Error> stopped() { return failure(Errc::closed, "stopped"); }

std::string in_hex(std::uint64_t number) {
  std::string text(16, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, number >>= 4)
    *digit = "0123456789abcdef"[number & 15];
  return text;
}

// A lease as a worker names it: the task, and the lease of it.
std::string name_of(const client::Held& held) { return held.task + " " + held.lease; }
client::Held held_of(const std::string& name) {
  const std::size_t space = name.find(' ');
  if (space == std::string::npos) return {name, {}};
  return {name.substr(0, space), name.substr(space + 1)};
}

// A question to the server, of which the one who asks may grow tired. The answer then finds nobody.
template <class T>
class Question {
 public:
  client::Callback<T> answer() {
    return [state = state_](Result<T> result) {
      const std::lock_guard lock(state->mutex);
      state->result = std::move(result);
      state->answered.notify_all();
    };
  }
  Result<T> wait(const std::stop_token& stop) {
    std::unique_lock lock(state_->mutex);
    state_->answered.wait(lock, stop, [this] { return state_->result.has_value(); });
    if (state_->result) return std::move(*state_->result);
    return stopped();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable_any answered;
    std::optional<Result<T>> result;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace

class ServerCoordinator::Shared : public std::enable_shared_from_this<ServerCoordinator::Shared> {
 public:
  explicit Shared(const ServerCoordinatorOptions& options) : run_(options.run), lease_(options.lease) {
    client::ClientOptions with = options.client;
    with.waiting_connections_max = std::max<std::size_t>(with.waiting_connections_max, 4096);
    client_.emplace(with);
  }

  // Names: see the header.
  std::string assignments() const { return "pipeline:" + run_; }
  std::string own_results() const { return "pipeline:" + run_ + ":own"; }
  std::string workers() const { return "pipeline:" + run_ + ":workers"; }
  std::string signals() const { return "pipeline:" + run_ + ":signals"; }
  std::string key_of(const std::string& module) const {
    const std::string key = run_ + "/" + module;
    return key.size() <= kNameBytesMax ? key : run_ + "/#" + in_hex(content_hash(bytes_of(module)));
  }
  std::string cancel_key() const { return run_ + "!cancel"; }
  static std::string named(const std::string& key) { return "key:" + key; }

  template <class T, class Ask>
  Result<T> ask(const std::stop_token& stop, Ask ask) {
    if (stop.stop_requested()) return stopped();
    Question<T> question;
    ask(question.answer());
    return question.wait(stop);
  }
  Result<client::Submitted> submit(const client::Submit& request, const std::stop_token& stop) {
    return ask<client::Submitted>(stop, [&](auto answer) { client_->submit(request, std::move(answer)); });
  }
  Result<client::Task> get(const std::string& key, const std::stop_token& stop) {
    return ask<client::Task>(stop, [&](auto answer) { client_->get(named(key), std::move(answer)); });
  }
  Result<std::vector<client::Leased>> lease(const client::Lease& request, const std::stop_token& stop) {
    return client_->lease(request, stop);
  }

  const std::string run_;
  const Duration lease_;
  std::optional<client::Client> client_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  // The master's.
  client::Held run_held_;
  Clock::time_point extended_at_;
  std::vector<SerializedModuleResult> arrived_;
  std::optional<Error> feed_failed_;
  std::map<std::string, WorkerRegistration> registrations_;  // by task
  // A worker's.
  std::optional<RunOpening> master_;
  client::Held presence_;
  bool is_active_ = false;
  std::map<std::string, SerializedModuleResult> published_;  // by lease
  std::optional<Clock::time_point> master_missed_at_;
  std::optional<Closed> closed_;

  // The run as a task; the master's fingerprint is in its payload.
  Result<client::Task> run_task(const std::stop_token& stop) {
    auto task = get(run_, stop);
    if (!task) return task;
    const std::lock_guard lock(mutex_);
    if (auto opening = from_text<RunOpening>(task->payload)) master_ = std::move(*opening);
    if (task->view.has_ended())
      closed_ = Closed{task->view.state == "completed" ? task->result : "the run was cancelled"};
    return task;
  }

  Status admit(const WorkerRegistration& worker, const std::stop_token& stop) {
    {
      const std::lock_guard lock(mutex_);
      if (master_) return compare(worker);
    }
    if (auto task = run_task(stop); !task && task.error().code != Errc::not_found)
      return std::unexpected(task.error());
    const std::lock_guard lock(mutex_);
    return compare(worker);
  }
  Status compare(const WorkerRegistration& worker) const {
    if (!master_ || master_->fingerprint == worker.fingerprint) return {};
    return failure(Errc::conflict,
                   "worker " + std::to_string(worker.index) +
                       " has another pipeline than the master: run the same program, with the same "
                       "options, on all machines");
  }

  // Waits for the end of one assignment, and again if that takes long; the result goes to the feed.
  void follow(const std::string& module) {
    client_->wait(named(key_of(module)), kWait, [weak = weak_from_this(), module](Result<client::Task> task) {
      const auto self = weak.lock();
      if (!self) return;
      if (task && !task->view.has_ended()) return self->follow(module);
      const std::lock_guard lock(self->mutex_);
      if (!task && task.error().code == Errc::closed) return;
      auto result =
          task ? result_of(*task, module) : Result<SerializedModuleResult>(std::unexpected(task.error()));
      if (result)
        self->arrived_.push_back(std::move(*result));
      else
        self->feed_failed_ = result.error();
      self->changed_.notify_all();
    });
  }

  static Result<SerializedModuleResult> result_of(const client::Task& task, const std::string& module) {
    if (task.view.state == "completed") return from_text<SerializedModuleResult>(task.result);
    SerializedModuleResult result{
        .module = module, .attempt = task.view.attempt, .status = ModuleStatus::failed};
    result.failure = ModuleFailure{.kind = FailureKind::worker_lost,
                                   .message = "its worker fell silent during attempt " +
                                              std::to_string(task.view.attempt) + ", the last one it had"};
    return result;
  }

  Result<std::vector<client::TaskView>> list(const std::string& queue, const std::string& state,
                                             const std::stop_token& stop) {
    std::vector<client::TaskView> all;
    client::TaskQuery query{.queue = queue, .state = state, .count = 1000};
    do {
      auto page = ask<client::TaskPage>(stop, [&](auto answer) { client_->tasks(query, std::move(answer)); });
      if (!page) return std::unexpected(page.error());
      all.insert(all.end(), page->tasks.begin(), page->tasks.end());
      query.cursor = page->cursor;
    } while (query.cursor != 0);
    return all;
  }

  // It never changes, so it is fetched once.
  Result<WorkerRegistration> registration_of(const client::TaskView& view, const std::stop_token& stop) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = registrations_.find(view.task); known != registrations_.end())
        return known->second;
    }
    auto task = ask<client::Task>(stop, [&](auto answer) { client_->get(view.task, std::move(answer)); });
    if (!task) return std::unexpected(task.error());
    auto registration = from_text<WorkerRegistration>(task->payload);
    if (!registration) return registration;
    const std::lock_guard lock(mutex_);
    return registrations_.emplace(view.task, std::move(*registration)).first->second;
  }

  static bool is_alive(WorkerStatus status) {
    return status != WorkerStatus::disconnected && status != WorkerStatus::timed_out;
  }
  // Whether somebody else has this index.
  Result<bool> is_taken(std::int32_t index, const std::string& session, const std::stop_token& stop) {
    auto there = registered(stop);
    if (!there) return std::unexpected(there.error());
    return std::ranges::any_of(*there, [&](const RegisteredWorker& other) {
      return other.registration.index == index && other.registration.session != session &&
             is_alive(other.status);
    });
  }

  static WorkerStatus status_of(const client::TaskView& view, bool works) {
    if (view.has_ended()) return WorkerStatus::disconnected;
    if (view.state != "leased") return WorkerStatus::timed_out;
    if (view.worker.starts_with(kRegistered)) return WorkerStatus::connected;
    return works ? WorkerStatus::executing : WorkerStatus::active;
  }

  // Those that there are, with whoever has fallen silent or left and was not replaced.
  Result<std::vector<RegisteredWorker>> registered(const std::stop_token& stop) {
    auto presences = list(workers(), "", stop);
    if (!presences) return std::unexpected(presences.error());
    auto modules = list(assignments(), "leased", stop);
    if (!modules) return std::unexpected(modules.error());
    std::map<std::string, std::string> current;  // module, by the name under which a worker leases
    for (const client::TaskView& view : *modules) current[view.worker] = view.key.substr(run_.size() + 1);
    std::map<std::int32_t, RegisteredWorker> newest;
    for (const client::TaskView& view : *presences) {
      auto registration = registration_of(view, stop);
      if (!registration) return std::unexpected(registration.error());
      const auto works = current.find(registration->name);
      RegisteredWorker worker{*registration, status_of(view, works != current.end()), {}, {}};
      if (works != current.end()) worker.current_module = works->second;
      if (worker.status == WorkerStatus::timed_out) worker.silent_for = lease_;
      // Of two that registered at once the first stays; the other goes away again.
      const auto [known, is_new] = newest.try_emplace(registration->index, worker);
      if (!is_new && !is_alive(known->second.status)) known->second = std::move(worker);
    }
    std::vector<RegisteredWorker> all;
    for (auto& [index, worker] : newest) all.push_back(std::move(worker));
    return all;
  }

  // Under which name a worker holds its own task says whether it was heard of since it registered.
  client::Lease presence_of(const std::string& session, std::string_view as) const {
    return {.worker = std::string(as) + session,
            .queues = {workers()},
            .ttl = lease_,
            .capabilities = {"session:" + session}};
  }

  // Being there is holding the lease of one's own task.
  Status hold(client::Held& held, const client::Lease& request, const std::stop_token& stop) {
    if (!held.lease.empty()) {
      const auto extended =
          ask<Duration>(stop, [&](auto answer) { client_->extend(held, lease_, std::move(answer)); });
      if (extended) return {};
      if (extended.error().code != Errc::lease_lost && extended.error().code != Errc::lease_unknown)
        return std::unexpected(extended.error());
      held = {};
    }
    auto tasks = lease(request, stop);
    if (!tasks) return std::unexpected(tasks.error());
    if (tasks->empty()) return failure(Errc::conflict, "another process holds it");
    held = tasks->front().held();
    return {};
  }
};

ServerCoordinator::ServerCoordinator(const ServerCoordinatorOptions& options)
    : shared_(std::make_shared<Shared>(options)) {}

// What is on its way ends here: the client's own thread must not be the last to know of it.
ServerCoordinator::~ServerCoordinator() { shared_->client_.reset(); }

Status ServerCoordinator::open_run(const RunOpening& opening, std::stop_token stop) {
  Shared& shared = *shared_;
  if (shared.run_.empty() || shared.run_.size() > kRunBytesMax)
    return failure(Errc::invalid_request, "a run's id is 1 to 60 characters");
  const std::string mine = "run:" + shared.run_;
  RunOpening lasting = opening;
  lasting.session.clear();  // the next master of this run has another
  auto submitted = shared.submit({.queue = "pipeline-runs",
                                  .payload = to_text(lasting),
                                  .key = shared.run_,
                                  .options = {.capabilities = {mine}, .max_attempts = kManyAttempts}},
                                 stop);
  if (!submitted && submitted.error().code == Errc::conflict) {
    return failure(Errc::conflict,
                   "run " + shared.run_ + " was begun with another pipeline: give each run its own id");
  }
  if (!submitted) return std::unexpected(submitted.error());
  auto held = shared.hold(shared.run_held_,
                          {.worker = "master-" + opening.session,
                           .queues = {"pipeline-runs"},
                           .ttl = shared.lease_,
                           .capabilities = {mine}},
                          stop);
  if (!held && held.error().code == Errc::conflict) {
    auto task = shared.run_task(stop);
    if (task && task->view.has_ended())
      return failure(Errc::conflict, "run " + shared.run_ + " is over: give each run its own id");
    return failure(Errc::conflict,
                   "run " + shared.run_ + " has a master that is still there: give each run its own id");
  }
  shared.extended_at_ = Clock::now();
  return held;
}

Result<RunOpening> ServerCoordinator::run_opening(std::stop_token stop) {
  auto task = shared_->get(shared_->run_, stop);
  if (!task) return std::unexpected(task.error());
  return from_text<RunOpening>(task->payload);
}

Status ServerCoordinator::enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) {
  return enqueue_modules({assignment}, std::move(stop));
}

Status ServerCoordinator::enqueue_modules(const std::vector<ModuleAssignment>& assignments,
                                          std::stop_token stop) {
  Shared& shared = *shared_;
  if (stop.stop_requested()) return stopped();
  std::vector<Question<client::Submitted>> questions(assignments.size());
  for (std::size_t i = 0; i < assignments.size(); ++i) {
    const ModuleAssignment& one = assignments[i];
    shared.client_->submit({.queue = shared.assignments(),
                            .payload = to_text(one),
                            .key = shared.key_of(one.module),
                            .options = {.priority = one.priority,
                                        .capabilities = one.required_capabilities,
                                        .max_attempts = one.attempts_max}},
                           questions[i].answer());
  }
  for (std::size_t i = 0; i < assignments.size(); ++i) {
    auto submitted = questions[i].wait(stop);
    if (!submitted && submitted.error().code == Errc::conflict)
      return failure(Errc::conflict, assignments[i].module + " was enqueued before, as something else");
    if (!submitted && submitted.error().code == Errc::too_large) {
      return failure(Errc::too_large,
                     "the assignment of " + assignments[i].module +
                         ", with the results that it needs, is too large: " + submitted.error().message);
    }
    if (!submitted) return std::unexpected(submitted.error());
    shared.follow(assignments[i].module);
  }
  return {};
}

Result<SerializedModuleResult> ServerCoordinator::wait_for_result(const std::string& module,
                                                                  std::stop_token stop) {
  Shared& shared = *shared_;
  for (;;) {
    auto task = shared.ask<client::Task>(stop, [&](auto answer) {
      shared.client_->wait(Shared::named(shared.key_of(module)), kWait, std::move(answer));
    });
    if (!task) return std::unexpected(task.error());
    if (task->view.has_ended()) return Shared::result_of(*task, module);
  }
}

Result<std::vector<SerializedModuleResult>> ServerCoordinator::next_results(std::stop_token stop) {
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex_);
  shared.changed_.wait(lock, stop, [&] { return !shared.arrived_.empty() || shared.feed_failed_; });
  if (!shared.arrived_.empty()) return std::exchange(shared.arrived_, {});
  if (shared.feed_failed_) return std::unexpected(*shared.feed_failed_);
  return stopped();
}

Result<std::vector<RegisteredWorker>> ServerCoordinator::get_registered_workers(std::stop_token stop) {
  Shared& shared = *shared_;
  if (!shared.run_held_.lease.empty() &&
      Clock::now() - shared.extended_at_ > std::chrono::milliseconds(shared.lease_.ms / 3)) {
    shared.extended_at_ = Clock::now();
    auto held = shared.hold(shared.run_held_,
                            {.worker = "master",
                             .queues = {"pipeline-runs"},
                             .ttl = shared.lease_,
                             .capabilities = {"run:" + shared.run_}},
                            stop);
    if (!held) return std::unexpected(held.error());
  }
  return shared.registered(stop);
}

Status ServerCoordinator::broadcast_cancellation(const std::string& reason, std::stop_token stop) {
  Shared& shared = *shared_;
  auto submitted =
      shared.submit({.queue = shared.signals(), .payload = reason, .key = shared.cancel_key()}, stop);
  if (!submitted && submitted.error().code != Errc::conflict) return std::unexpected(submitted.error());
  return {};  // a conflict: there was another reason before
}

Status ServerCoordinator::close_run(const std::string& reason, std::stop_token stop) {
  Shared& shared = *shared_;
  auto closed = shared.ask<client::Verdict>(
      stop, [&](auto answer) { shared.client_->complete(shared.run_held_, reason, std::move(answer)); });
  if (!closed) return std::unexpected(closed.error());
  // It has been heard of, or nobody is left to hear of it.
  (void)shared.ask<void>(stop, [&](auto answer) {
    shared.client_->cancel(Shared::named(shared.cancel_key()), {}, {}, std::move(answer));
  });
  return {};
}

Status ServerCoordinator::register_worker(const WorkerRegistration& registration, std::stop_token stop) {
  Shared& shared = *shared_;
  if (auto admitted = shared.admit(registration, stop); !admitted) return admitted;
  const auto refusal = [&] {
    return failure(
        Errc::locked,
        "worker " + std::to_string(registration.index) +
            " is registered already, by another process that is still there: give each its own index");
  };
  auto taken = shared.is_taken(registration.index, registration.session, stop);
  if (!taken) return std::unexpected(taken.error());
  if (*taken) return refusal();
  const std::string key = shared.run_ + "@" + std::to_string(registration.index) + "-" + registration.session;
  auto submitted = shared.submit(
      {.queue = shared.workers(),
       .payload = to_text(registration),
       .key = key,
       .options = {.capabilities = {"session:" + registration.session}, .max_attempts = kManyAttempts}},
      stop);
  if (!submitted) return std::unexpected(submitted.error());
  auto held = shared.hold(shared.presence_, shared.presence_of(registration.session, kRegistered), stop);
  if (!held) return held;
  // Another may have come at the same moment; only one of the two finds the other before itself.
  taken = shared.is_taken(registration.index, registration.session, stop);
  if (!taken) return std::unexpected(taken.error());
  if (!*taken) return {};
  (void)shared.ask<client::Verdict>(stop, [&](auto answer) {
    shared.client_->complete(std::exchange(shared.presence_, {}), "another has its index", std::move(answer));
  });
  return refusal();
}

Result<Dequeued> ServerCoordinator::dequeue_module(const WorkerRegistration& worker, std::stop_token stop) {
  Shared& shared = *shared_;
  if (auto admitted = shared.admit(worker, stop); !admitted) return std::unexpected(admitted.error());
  auto tasks = shared.lease({.worker = worker.name,
                             .queues = {shared.assignments()},
                             .ttl = shared.lease_,
                             .wait = seconds(1),
                             .capabilities = worker.capabilities},
                            stop);
  if (!tasks) return std::unexpected(tasks.error());
  if (!tasks->empty()) {
    const client::Leased& task = tasks->front();
    auto assignment = from_text<ModuleAssignment>(task.payload);
    if (!assignment)
      return failure(Errc::corrupt, "an assignment that cannot be read: " + assignment.error().message);
    return Assigned{std::move(*assignment), task.attempt, name_of(task.held())};
  }
  if (auto run = shared.run_task(stop); !run && run.error().code != Errc::not_found)
    return std::unexpected(run.error());
  const std::lock_guard lock(shared.mutex_);
  if (shared.closed_) return *shared.closed_;
  return Empty{};
}

Result<Accepted> ServerCoordinator::publish_result(const SerializedModuleResult& result,
                                                   std::stop_token stop) {
  Shared& shared = *shared_;
  if (result.lease.empty()) {  // the master's own: handed in and completed in one go, by whoever gets it
    auto submitted = shared.submit(
        {.queue = shared.own_results(), .payload = to_text(result), .key = shared.key_of(result.module)},
        stop);
    if (!submitted && submitted.error().code == Errc::conflict) return Accepted::stale;
    if (!submitted) return std::unexpected(submitted.error());
    if (submitted->existed) return Accepted::duplicate;
    auto tasks =
        shared.lease({.worker = "master", .queues = {shared.own_results()}, .ttl = shared.lease_}, stop);
    if (!tasks) return std::unexpected(tasks.error());
    for (const client::Leased& one : *tasks) {
      auto done = shared.ask<client::Verdict>(
          stop, [&](auto answer) { shared.client_->complete(one.held(), one.payload, std::move(answer)); });
      if (!done) return std::unexpected(done.error());
    }
    return Accepted::first;
  }
  {
    const std::lock_guard lock(shared.mutex_);
    if (const auto known = shared.published_.find(result.lease); known != shared.published_.end()) {
      return known->second == result ? Accepted::duplicate : Accepted::stale;
    }
  }
  auto done = shared.ask<client::Verdict>(stop, [&](auto answer) {
    shared.client_->complete(held_of(result.lease), to_text(result), std::move(answer));
  });
  if (!done) {
    const Errc code = done.error().code;
    if (code == Errc::lease_lost || code == Errc::lease_unknown || code == Errc::conflict ||
        code == Errc::not_found)
      return Accepted::stale;
    return std::unexpected(done.error());
  }
  if (done->cancelled) return Accepted::stale;
  const std::lock_guard lock(shared.mutex_);
  constexpr std::size_t kRemembered = 1024;
  if (shared.published_.size() >= kRemembered) shared.published_.erase(shared.published_.begin());
  shared.published_.emplace(result.lease, result);
  return Accepted::first;
}

Result<HeartbeatReply> ServerCoordinator::send_heartbeat(const WorkerHeartbeat& heartbeat,
                                                         std::stop_token stop) {
  Shared& shared = *shared_;
  auto replaced = shared.is_taken(heartbeat.index, heartbeat.session, stop);
  if (!replaced) return std::unexpected(replaced.error());
  if (*replaced) {
    return failure(Errc::conflict, "another process is worker " + std::to_string(heartbeat.index) + " now");
  }
  if (!std::exchange(shared.is_active_, true)) {  // from now on it is seen to be
    (void)shared.ask<client::Verdict>(
        stop, [&](auto answer) { shared.client_->release(shared.presence_, std::move(answer)); });
    shared.presence_ = {};
  }
  const client::Lease mine = shared.presence_of(heartbeat.session, kActive);
  if (auto held = shared.hold(shared.presence_, mine, stop); !held) {
    if (held.error().code != Errc::conflict) return std::unexpected(held.error());
    return failure(Errc::not_found,
                   "worker " + std::to_string(heartbeat.index) + " is not registered, or has left");
  }
  HeartbeatReply reply;
  std::vector<client::Held> held;
  for (const std::string& lease : heartbeat.leases) held.push_back(held_of(lease));
  if (!held.empty()) {
    auto extended = shared.ask<std::vector<Result<Duration>>>(
        stop, [&](auto answer) { shared.client_->extend_many(held, shared.lease_, std::move(answer)); });
    if (!extended) return std::unexpected(extended.error());
    for (std::size_t i = 0; i < extended->size(); ++i) {
      if (!(*extended)[i]) reply.lost.push_back(heartbeat.leases[i]);
    }
  }
  if (heartbeat.leaving)
    (void)shared.ask<client::Verdict>(
        stop, [&](auto answer) { shared.client_->complete(shared.presence_, "left", std::move(answer)); });
  auto cancelled = is_cancellation_requested(stop);
  if (!cancelled) return std::unexpected(cancelled.error());
  reply.cancelled = std::move(*cancelled);
  auto run = shared.run_task(stop);
  if (!run && run.error().code != Errc::not_found) return std::unexpected(run.error());
  const std::lock_guard lock(shared.mutex_);
  reply.closed = shared.closed_;
  const bool is_missed = run && !run->view.has_ended() && run->view.state != "leased";
  if (!is_missed)
    shared.master_missed_at_.reset();
  else if (!shared.master_missed_at_)
    shared.master_missed_at_ = Clock::now();
  if (is_missed) {
    reply.master_silent_for = shared.lease_ + Duration{std::chrono::duration_cast<std::chrono::milliseconds>(
                                                           Clock::now() - *shared.master_missed_at_)
                                                           .count()};
  }
  return reply;
}

Result<std::optional<CancellationSignal>> ServerCoordinator::is_cancellation_requested(std::stop_token stop) {
  auto signal = shared_->get(shared_->cancel_key(), stop);
  if (signal) return CancellationSignal{signal->payload};
  if (signal.error().code == Errc::not_found) return std::optional<CancellationSignal>();
  return std::unexpected(signal.error());
}

}  // namespace baton::pipeline
