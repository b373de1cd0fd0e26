#include "pipeline/server_coordinator.h"

#include <algorithm>
#include <utility>

#include "pipeline/pulse.h"
#include "pipeline/server_run.h"
#include "pipeline/wire_text.h"

namespace baton::pipeline {
namespace {

constexpr std::size_t kRunBytesMax = 60;

std::unexpected<Error> stopped() { return failure(Errc::closed, "stopped"); }

}  // namespace

ServerCoordinator::ServerCoordinator(const ServerCoordinatorOptions& options)
    : blobs_(options.client, options.run),
      run_(std::make_shared<ServerRun>(options.client, options.run, options.lease)) {}

// What is on its way ends here: the client's own thread must not be the last to know of it.
ServerCoordinator::~ServerCoordinator() { run_->client.reset(); }

Status ServerCoordinator::open_run(const RunOpening& opening, std::stop_token stop) {
  ServerRun& server = *run_;
  if (server.run.empty() || server.run.size() > kRunBytesMax)
    return failure(Errc::invalid_request, "a run's id is 1 to 60 characters");
  const std::string mine = "run:" + server.run;
  RunOpening lasting = opening;
  lasting.session.clear();  // the next master of this run has another
  lasting.lease = server.lease();
  auto submitted = server.submit({.queue = "pipeline-runs",
                                  .payload = to_text(lasting),
                                  .key = server.run,
                                  .options = {.capabilities = {mine}, .max_attempts = kManyAttempts}},
                                 stop);
  if (!submitted && submitted.error().code == Errc::conflict) {
    const auto before = run_opening(stop);
    if (!before) return std::unexpected(before.error());
    if (!is_of_same_pipeline(opening, *before))
      return failure(Errc::conflict,
                     "run " + server.run + " was begun with another pipeline: give each run its own id");
  } else if (!submitted && submitted.error().code == Errc::too_large) {
    return failure(Errc::too_large,
                   "the pipeline, which goes to all workers, is too large: " + submitted.error().message +
                       "; put long scripts into files of their own");
  } else if (!submitted) {
    return std::unexpected(submitted.error());
  }
  auto held = server.hold(server.run_held,
                          {.worker = "master-" + opening.session,
                           .queues = {"pipeline-runs"},
                           .ttl = server.lease(),
                           .capabilities = {mine}},
                          stop);
  if (!held && held.error().code == Errc::conflict) {
    auto task = server.run_task(stop);
    if (task && task->view.has_ended())
      return failure(Errc::conflict, "run " + server.run + " is over: give each run its own id");
    return failure(Errc::locked,
                   "run " + server.run + " has a master that is still there: give each run its own id");
  }
  server.extended_at = steady_ms();
  server.is_master = held.has_value();
  return held;
}

Result<RunOpening> ServerCoordinator::run_opening(std::stop_token stop) {
  auto task = run_->get(run_->run, stop);
  if (!task) return std::unexpected(task.error());
  auto opening = from_text<RunOpening>(task->payload);
  if (opening) run_->heed(*opening);
  return opening;
}

Result<std::vector<std::string>> ServerCoordinator::enqueued_modules(std::stop_token stop) {
  auto tasks = run_->list(run_->assignments(), "", stop);
  if (!tasks) return std::unexpected(tasks.error());
  std::vector<std::string> all;
  for (const client::TaskView& view : *tasks) {
    auto module = run_->module_of(view, stop);
    if (!module) return std::unexpected(module.error());
    if (module->empty()) continue;
    run_->follow(*module);
    all.push_back(std::move(*module));
  }
  return all;
}

Result<std::vector<SerializedModuleResult>> ServerCoordinator::own_results(std::stop_token stop) {
  auto tasks = run_->list(run_->own_results(), "", stop);
  if (!tasks) return std::unexpected(tasks.error());
  std::vector<SerializedModuleResult> all;
  for (const client::TaskView& view : *tasks) {
    auto task =
        run_->ask<client::Task>(stop, [&](auto answer) { run_->client->get(view.task, std::move(answer)); });
    if (!task) return std::unexpected(task.error());
    auto result = from_text<SerializedModuleResult>(task->payload);
    if (!result) return std::unexpected(result.error());
    all.push_back(std::move(*result));
  }
  return all;
}

Status ServerCoordinator::enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) {
  return enqueue_modules({assignment}, std::move(stop));
}

Status ServerCoordinator::enqueue_modules(const std::vector<ModuleAssignment>& assignments,
                                          std::stop_token stop) {
  ServerRun& server = *run_;
  if (stop.stop_requested()) return stopped();
  std::vector<Question<client::Submitted>> questions(assignments.size());
  for (std::size_t i = 0; i < assignments.size(); ++i) {
    const ModuleAssignment& one = assignments[i];
    server.client->submit({.queue = server.assignments(),
                           .payload = to_text(one),
                           .key = server.key_of(one.module),
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
    server.follow(assignments[i].module);
  }
  return {};
}

Result<SerializedModuleResult> ServerCoordinator::wait_for_result(const std::string& module,
                                                                  std::stop_token stop) {
  ServerRun& server = *run_;
  const auto known = server.get(server.key_of(module), stop);
  if (known && known->view.queue == server.own_results())
    return from_text<SerializedModuleResult>(known->payload);
  for (;;) {
    auto task = server.ask<client::Task>(stop, [&](auto answer) {
      server.client->wait(ServerRun::named(server.key_of(module)), kServerWait, std::move(answer));
    });
    if (!task) return std::unexpected(task.error());
    if (task->view.has_ended()) return ServerRun::result_of(*task, module);
  }
}

Result<std::vector<SerializedModuleResult>> ServerCoordinator::next_results(std::stop_token stop) {
  ServerRun& server = *run_;
  std::unique_lock lock(server.mutex);
  server.changed.wait(lock, stop, [&] { return !server.arrived.empty() || server.feed_failed; });
  if (!server.arrived.empty()) return std::exchange(server.arrived, {});
  if (server.feed_failed) return std::unexpected(*server.feed_failed);
  return stopped();
}

Result<std::vector<RegisteredWorker>> ServerCoordinator::get_registered_workers(std::stop_token stop) {
  ServerRun& server = *run_;
  if (server.is_due()) {
    if (auto held = server.stay_master(stop); !held) return std::unexpected(held.error());
  }
  return server.registered(std::min(seconds(1), Duration{server.lease().ms / 4}), stop);
}

Status ServerCoordinator::broadcast_cancellation(const std::string& reason, std::stop_token stop) {
  ServerRun& server = *run_;
  if (auto held = server.stay_master(stop); !held) return held;
  auto submitted =
      server.submit({.queue = server.signals(), .payload = reason, .key = server.cancel_key()}, stop);
  if (!submitted && submitted.error().code != Errc::conflict) return std::unexpected(submitted.error());
  return {};  // a conflict: there was another reason before
}

Status ServerCoordinator::close_run(const std::string& reason, std::stop_token stop) {
  ServerRun& server = *run_;
  // Or what another master has handed out would be taken back.
  if (auto held = server.stay_master(stop); !held) return held;
  // What the master waits for no longer would be leased again, or wait for ever: what was handed out, what
  // workers said, and those who have fallen silent.
  const std::pair<std::string, const char*> nobodys[] = {{server.assignments(), "waiting"},
                                                         {server.assignments(), "leased"},
                                                         {server.said(), "waiting"},
                                                         {server.workers(), "waiting"}};
  for (const auto& [queue, state] : nobodys) {
    if (auto done = server.cancel_all(queue, state, stop); !done) return done;
  }
  auto closed = server.ask<client::Verdict>(
      stop, [&](auto answer) { server.client->complete(server.run_held, reason, std::move(answer)); });
  if (!closed) return std::unexpected(closed.error());
  // It has been heard of, or nobody is left to hear of it.
  const auto forgotten = server.ask<void>(stop, [&](auto answer) {
    server.client->cancel(ServerRun::named(server.cancel_key()), {}, {}, std::move(answer));
  });
  if (forgotten || !is_transient(forgotten.error().code)) server.let_go_of_own_results(stop);
  return {};
}

Result<std::vector<Said>> ServerCoordinator::take_said(std::stop_token stop) {
  constexpr std::uint32_t kPieces = 100;
  constexpr int kRounds = 10;  // whoever asks has other things to ask too
  ServerRun& server = *run_;
  std::vector<Said> all;
  for (int round = 0; round < kRounds; ++round) {
    auto tasks = server.client->lease({.worker = "master",
                                       .queues = {server.said()},
                                       .count = kPieces,
                                       .ttl = server.lease(),
                                       .capabilities = {}},
                                      stop);
    if (!tasks && round == 0) return std::unexpected(tasks.error());
    if (!tasks) break;  // what was taken before is told
    for (const client::Leased& task : *tasks) {
      if (auto said = from_text<std::vector<Said>>(task.payload))
        all.insert(all.end(), said->begin(), said->end());
      server.client->complete(task.held(), {}, [](const Result<client::Verdict>&) {});
    }
    if (tasks->size() < kPieces) break;
  }
  return all;
}

}  // namespace baton::pipeline
