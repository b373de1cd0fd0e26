// Masters and workers: who may take part, and what they are told.
#include "pipeline/contract_checks.h"
#include "pipeline/contract_parties.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <optional>
#include <thread>

namespace baton::pipeline::contract {
namespace {

bool answers(const Result<std::optional<CancellationSignal>>& said,
             const std::optional<CancellationSignal>& expected) {
  return said && *said == expected;
}

}  // namespace

Status lists_workers(Subject& subject) {
  const Party master = subject.connect(), first = subject.connect();
  DONE(master->open_run(opening(), {}));
  const WorkerRegistration self = worker(3, {"docker", "linux"});
  DONE(first->register_worker(self, {}));
  const auto status = [&]() -> std::optional<RegisteredWorker> {
    const auto workers = master->get_registered_workers({});
    return workers && workers->size() == 1 ? std::optional(workers->front()) : std::nullopt;
  };
  auto seen = status();
  HOLDS(seen && seen->registration == self && seen->status == WorkerStatus::connected,
        "a worker that has registered should be listed as it did, connected");
  DONE(first->send_heartbeat({.index = 3, .session = self.session}, {}));
  seen = status();
  HOLDS(seen && seen->status == WorkerStatus::active, "after a heartbeat it should be active");
  DONE(master->enqueue_module(assignment("build"), {}));
  DONE(master->enqueue_module(assignment("test"), {}));
  const auto build = take_assignment(*first, self, subject.patience());
  const auto test = take_assignment(*first, self, subject.patience());
  HOLDS(build && test, "no assignment");
  DONE(first->send_heartbeat({.index = 3,
                              .session = self.session,
                              .leases = {build->lease, test->lease},
                              .current_modules = {"build", "test"}},
                             {}));
  seen = status();
  if (seen) std::ranges::sort(seen->current_modules);
  HOLDS(seen && seen->status == WorkerStatus::executing &&
            seen->current_modules == (std::vector<std::string>{"build", "test"}),
        "all modules that it works on should be told");
  subject.let_pass(subject.lease() + milliseconds(1));
  seen = status();
  HOLDS(seen && seen->status == WorkerStatus::timed_out, "one that has fallen silent should be timed out");
  DONE(first->send_heartbeat({.index = 3, .session = self.session, .leaving = true}, {}));
  seen = status();
  HOLDS(seen && seen->status == WorkerStatus::disconnected, "one that has left should be disconnected");
  return {};
}

Status refuses_a_second_worker_with_one_index(Subject& subject) {
  CAST(all);
  const Party other = subject.connect();
  const auto refused = other->register_worker(worker(1, {}, "another-process"), {});
  HOLDS(!refused && refused.error().code == Errc::locked,
        "another process with the index of a worker that is there should be refused (LOCKED)");
  DONE(all.first->register_worker(all.one, {}));
  subject.let_pass(subject.lease() + milliseconds(1));
  DONE(other->register_worker(worker(1, {}, "another-process"), {}));
  const auto replaced = all.first->send_heartbeat({.index = 1, .session = all.one.session}, {});
  HOLDS(!replaced && replaced.error().code == Errc::conflict,
        "one that was replaced should hear so (CONFLICT)");
  return {};
}

Status refuses_another_pipeline(Subject& subject) {
  CAST(all);
  WorkerRegistration other = worker(3);
  other.fingerprint = 8;
  const Party stranger = subject.connect();
  const auto refused = stranger->register_worker(other, {});
  HOLDS(!refused && refused.error().code == Errc::conflict,
        "a worker with another graph should be refused (CONFLICT)");
  DONE(all.master->enqueue_module(assignment("m"), {}));
  const auto nothing = stranger->dequeue_module(other, {});
  const auto told = all.first->run_opening({});
  HOLDS(told ? told->name == "contract" && told->fingerprint == 7 : told.error().code == Errc::not_found,
        "a worker should hear of the run, if anything is told at all");
  HOLDS(!nothing && nothing.error().code == Errc::conflict,
        "a worker with another graph should get no work (CONFLICT)");
  return {};
}

Status has_one_master(Subject& subject) {
  const Party first = subject.connect(), second = subject.connect(), someone = subject.connect();
  DONE(first->open_run(opening("first"), {}));
  const auto refused = second->open_run(opening("second"), {});
  HOLDS(!refused && refused.error().code == Errc::locked,
        "a second master should be refused while the first is there (LOCKED)");
  DONE(someone->register_worker(worker(1), {}));
  for (int i = 0; i < 3; ++i) {
    subject.let_pass(Duration{subject.lease().ms / 2});
    DONE(first->get_registered_workers({}));
  }
  HOLDS(!second->open_run(opening("second"), {}),
        "asking for the workers should show that the master is there");
  DONE(someone->register_worker(worker(1), {}));
  subject.let_pass(subject.lease() + milliseconds(1));
  const auto reply = someone->send_heartbeat({.index = 1, .session = worker(1).session}, {});
  HOLDS(reply && reply->master_silent_for >= subject.lease(),
        "workers should hear how long the master has been silent");
  DONE(second->open_run(opening("second"), {}));
  return {};
}

// Those that come first, and those that take over: each time several find the run without a master.
Status has_one_master_of_many_that_come_at_once(Subject& subject) {
  constexpr int kMany = 6;
  for (const char* time : {"first", "second", "third"}) {
    std::vector<Party> masters;
    for (int i = 0; i < kMany; ++i) masters.push_back(subject.connect());
    std::latch at_once(kMany);
    std::atomic<int> admitted = 0, refused = 0;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kMany; ++i) {
        threads.emplace_back([&, i] {
          at_once.arrive_and_wait();
          const auto opened = masters[i]->open_run(opening(time + std::to_string(i)), {});
          if (opened) ++admitted;
          if (!opened && opened.error().code == Errc::locked) ++refused;
        });
      }
    }
    HOLDS(admitted == 1 && refused == kMany - 1,
          "of several masters that come at once one should be admitted, and the others refused (LOCKED)");
    subject.let_pass(subject.lease() + milliseconds(1));
  }
  return {};
}

Status heeds_one_master_alone(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("m"), {}));
  subject.let_pass(subject.lease() + milliseconds(1));
  const Party next = subject.connect();
  DONE(next->open_run(opening("next"), {}));
  const auto is_conflict = [](const auto& answer) {
    return !answer && answer.error().code == Errc::conflict;
  };
  HOLDS(is_conflict(all.master->get_registered_workers({})) &&
            is_conflict(all.master->broadcast_cancellation("no", {})) &&
            is_conflict(all.master->close_run("over", {})),
        "a master that another has taken over from should hear so (CONFLICT)");
  HOLDS(answers(all.first->is_cancellation_requested({}), std::nullopt),
        "a master that another has taken over from has cancelled the run");
  HOLDS(take_assignment(*all.first, all.one, subject.patience()),
        "a master that another has taken over from has closed the run, or taken back what was enqueued");
  return {};
}

Status refuses_a_run_that_is_over(Subject& subject) {
  CAST(all);
  DONE(all.master->close_run("succeeded", {}));
  subject.let_pass(subject.lease() + milliseconds(1));
  const Party next = subject.connect();
  const auto refused = next->open_run(opening("next"), {});
  HOLDS(!refused && refused.error().code == Errc::conflict,
        "a run that is over should not be opened again (CONFLICT)");
  return {};
}

Status tells_how_long_leases_last(Subject& subject) {
  CAST(all);
  const auto told = all.first->run_opening({});
  HOLDS(told || told.error().code == Errc::not_found, "a worker should hear of the run, if anything is told");
  HOLDS(!told || !told->lease || *told->lease == subject.lease(),
        "leases last for another time than is told");
  return {};
}

Status goes_on_after_a_restart_of_the_master(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("done"), {}));
  DONE(all.master->enqueue_module(assignment("open"), {}));
  const auto done = take_assignment(*all.first, all.one, subject.patience());
  HOLDS(done && done->assignment.module == "done", "no assignment");
  DONE(all.first->publish_result(result_of(*done, 1), {}));
  subject.let_pass(subject.lease() + milliseconds(1));
  const Party again = subject.connect();
  DONE(again->open_run(opening("later"), {}));
  DONE(again->enqueue_module(assignment("done"), {}));
  DONE(again->enqueue_module(assignment("open"), {}));
  const Deadline deadline(subject.patience());
  const auto known = again->wait_for_result("done", deadline.token());
  HOLDS(known && *known == result_of(*done, 1), "a result from before the restart is gone");
  const auto open = take_assignment(*all.second, all.two, subject.patience());
  HOLDS(open && open->assignment.module == "open", "an assignment from before the restart is gone");
  HOLDS(gets_nothing(subject, *all.second, all.two),
        "an assignment that was enqueued again was handed out twice");
  ModuleAssignment other = assignment("open");
  other.priority = 1;
  const auto refused = again->enqueue_module(other, {});
  HOLDS(!refused && refused.error().code == Errc::conflict,
        "a module that is enqueued as something else should be refused (CONFLICT)");
  return {};
}

Status hands_over_to_the_next_master(Subject& subject) {
  CAST(all);
  HOLDS(is(all.master->enqueued_modules({}), std::vector<std::string>()), "something was enqueued by nobody");
  for (const char* module : {"told", "done", "open"})
    DONE(all.master->enqueue_module(assignment(module), {}));
  const auto told = take_assignment(*all.first, all.one, subject.patience());
  const auto done = take_assignment(*all.first, all.one, subject.patience());
  HOLDS(told && done, "no assignment");
  const Deadline deadline(subject.patience());
  DONE(all.first->publish_result(result_of(*told, 1), {}));
  const auto heard = all.master->next_results(deadline.token());
  DONE(all.first->publish_result(result_of(*done, 1), {}));
  const SerializedModuleResult own{.module = "own", .value = "\"mine\""};
  DONE(all.master->publish_result(own, {}));
  subject.let_pass(subject.lease() + milliseconds(1));

  const Party again = subject.connect();
  RunOpening other = opening("later"), edited = other;
  other.fingerprint = 8;
  edited.definition = "the same modules with other commands";
  for (const RunOpening& one : {other, edited}) {
    const auto refused = again->open_run(one, {});
    HOLDS(!refused && refused.error().code == Errc::conflict,
          "a master with another pipeline should not get the run (CONFLICT)");
  }
  DONE(again->open_run(opening("later"), {}));
  auto enqueued = again->enqueued_modules({});
  HOLDS(enqueued, "what was enqueued is not known");
  std::ranges::sort(*enqueued);
  HOLDS(*enqueued == (std::vector<std::string>{"done", "open", "told"}),
        "the next master should hear of all that was enqueued");
  HOLDS(is(again->own_results({}), {own}), "the next master should hear what the first one ran itself");
  if (!heard && heard.error().code == Errc::not_found) return {};  // there is no feed
  for (std::vector<std::string> known; known.size() < 2;) {
    const auto results = again->next_results(deadline.token());
    HOLDS(results, "the next master should get the results from before: told to its predecessor or not");
    for (const SerializedModuleResult& one : *results) known.push_back(one.module);
  }
  return {};
}

Status broadcasts_cancellation(Subject& subject) {
  CAST(all);
  HOLDS(answers(all.first->is_cancellation_requested({}), std::nullopt), "cancelled before anybody said so");
  DONE(all.master->broadcast_cancellation("lint failed", {}));
  DONE(all.master->broadcast_cancellation("another reason", {}));
  const std::optional<CancellationSignal> expected = CancellationSignal{"lint failed"};
  HOLDS(answers(all.first->is_cancellation_requested({}), expected),
        "a worker does not hear of the cancellation, with the first reason");
  const auto reply = all.first->send_heartbeat({.index = 1, .session = all.one.session}, {});
  HOLDS(reply && reply->cancelled == expected, "a heartbeat does not bring the cancellation");
  const Party late = subject.connect();
  DONE(late->register_worker(worker(9), {}));
  HOLDS(answers(late->is_cancellation_requested({}), expected),
        "a worker that joins later does not hear of the cancellation");
  return {};
}

}  // namespace baton::pipeline::contract
