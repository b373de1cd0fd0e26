#include "pipeline/contract.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace baton::pipeline::contract {
namespace {

using Party = std::unique_ptr<DistributedCoordinator>;

constexpr Duration kSoon = seconds(20);  // nothing that is due takes longer, even on a busy machine

std::unexpected<Error> broken(std::string what) { return failure(Errc::wrong_state, std::move(what)); }

// Every check is a list of statements that have to hold.
#define HOLDS(condition, what)             \
  do {                                     \
    if (!(condition)) return broken(what); \
  } while (false)
#define DONE(call)                                                                                  \
  do {                                                                                              \
    if (auto call_done = (call); !call_done) return broken(#call ": " + call_done.error().message); \
  } while (false)

// A token that is triggered after a while, so that no check hangs.
class Deadline {
 public:
  explicit Deadline(Duration after = kSoon) : after_(after) {}
  ~Deadline() { thread_.request_stop(); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  std::stop_token token() const { return source_.get_token(); }

 private:
  const Duration after_;
  std::stop_source source_;
  std::jthread thread_{[this](const std::stop_token& over) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, over, std::chrono::milliseconds(after_.ms), [] { return false; });
    if (!over.stop_requested()) source_.request_stop();
  }};
};

ModuleAssignment assignment(const std::string& module, std::vector<std::string> capabilities = {}) {
  return {.module = module, .result_type = "text", .required_capabilities = std::move(capabilities)};
}
WorkerRegistration worker(std::int32_t index, std::vector<std::string> capabilities = {},
                          std::string session = {}) {
  return {.index = index,
          .session = session.empty() ? "session " + std::to_string(index) : session,
          .name = "worker " + std::to_string(index),
          .capabilities = std::move(capabilities),
          .slots = 2,
          .fingerprint = 7};
}
RunOpening opening(std::string session = "master") {
  return {.session = std::move(session), .name = "contract", .fingerprint = 7};
}
SerializedModuleResult result_of(const Assigned& assigned, std::int32_t index,
                                 std::string value = "\"done\"") {
  return {.module = assigned.assignment.module,
          .attempt = assigned.attempt,
          .lease = assigned.lease,
          .worker_index = index,
          .value = std::move(value),
          .tries = 1,
          .took = milliseconds(5)};
}

// Asks until there is an assignment or the run is closed, as the framework does.
Result<Dequeued> take(DistributedCoordinator& party, const WorkerRegistration& self,
                      const std::stop_token& stop) {
  for (;;) {
    auto answer = party.dequeue_module(self, stop);
    if (!answer || !std::holds_alternative<Empty>(*answer)) return answer;
    if (stop.stop_requested()) return Dequeued{Empty{}};
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}
Result<Assigned> take_assignment(DistributedCoordinator& party, const WorkerRegistration& self,
                                 Duration at_most = kSoon) {
  const Deadline deadline(at_most);
  auto answer = take(party, self, deadline.token());
  if (!answer) return std::unexpected(answer.error());
  if (auto* assigned = std::get_if<Assigned>(&*answer)) return std::move(*assigned);
  return failure(Errc::not_found, std::holds_alternative<Closed>(*answer) ? "closed" : "nothing");
}
// For what must not come: as long as a lease may last, at least.
bool gets_nothing(Subject& subject, DistributedCoordinator& party, const WorkerRegistration& self) {
  const Duration patience = std::min(milliseconds(100), Duration{subject.lease().ms / 2});
  return !take_assignment(party, self, patience);
}

// A master and two workers that are known.
struct Cast {
  Party master, first, second;
  WorkerRegistration one = worker(1), two = worker(2);
};
Result<Cast> cast(Subject& subject) {
  Cast all{subject.connect(), subject.connect(), subject.connect()};
  if (auto done = all.master->open_run(opening(), {}); !done) return std::unexpected(done.error());
  if (auto done = all.first->register_worker(all.one, {}); !done) return std::unexpected(done.error());
  if (auto done = all.second->register_worker(all.two, {}); !done) return std::unexpected(done.error());
  return all;
}
#define CAST(all)                                             \
  auto all##_made = cast(subject);                            \
  if (!all##_made) return broken(all##_made.error().message); \
  Cast& all = *all##_made

Status wakes_whoever_waits(Subject& subject) {
  CAST(all);
  auto taken = std::async(std::launch::async, [&] { return take_assignment(*all.first, all.one); });
  DONE(all.master->enqueue_module(assignment("build"), {}));
  const auto assigned = taken.get();
  HOLDS(assigned, "a worker that waited did not get what was enqueued");
  HOLDS(assigned->assignment.module == "build" && assigned->attempt == 1, "it got something else");
  return {};
}

Status carries_all_of_an_assignment(Subject& subject) {
  CAST(all);
  ModuleAssignment whole{.module = "test[linux]",
                         .result_type = "{a:text,}",
                         .required_capabilities = {"linux"},
                         .matrix_target = "linux",
                         .priority = 6,
                         .attempts_max = 3,
                         .always_run = true};
  whole.dependencies = {{.module = "build", .value = "\"a \\\"quoted\\\"\\n value\""},
                        {.module = "lint",
                         .status = ModuleStatus::ignored_failure,
                         .failure = ModuleFailure{FailureKind::exit_code, "no", "detail", 2}}};
  whole.artifacts = {{"build", "bin", {"00ff", 12}}};
  DONE(all.master->enqueue_module(whole, {}));
  const auto assigned = take_assignment(*all.first, worker(1, {"linux"}));
  HOLDS(assigned && assigned->assignment == whole, "the assignment did not arrive as it was enqueued");
  return {};
}

Status hands_each_to_one(Subject& subject) {
  CAST(all);
  constexpr int kCount = 60;
  std::vector<ModuleAssignment> assignments;
  for (int i = 0; i < kCount; ++i) assignments.push_back(assignment("m" + std::to_string(i)));
  std::mutex mutex;
  std::map<std::string, int> times;
  const Deadline deadline;
  const auto labour = [&](DistributedCoordinator& party, const WorkerRegistration& self) {
    for (;;) {
      auto answer = take(party, self, deadline.token());
      const auto* assigned = answer ? std::get_if<Assigned>(&*answer) : nullptr;
      if (!assigned) return;
      {
        const std::lock_guard lock(mutex);
        ++times[assigned->assignment.module];
      }
      (void)party.publish_result(result_of(*assigned, self.index), {});
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] { labour(*all.first, all.one); });
      threads.emplace_back([&] { labour(*all.second, all.two); });
    }
    DONE(all.master->enqueue_modules(assignments, {}));
    for (const ModuleAssignment& one : assignments)
      DONE(all.master->wait_for_result(one.module, deadline.token()));
    DONE(all.master->close_run("done", {}));
  }
  HOLDS(times.size() == kCount, "not every assignment was handed out");
  HOLDS(std::ranges::all_of(times, [](const auto& one) { return one.second == 1; }),
        "an assignment was handed to two workers");
  return {};
}

Status keeps_their_order(Subject& subject) {
  CAST(all);
  for (const char* module : {"a", "b", "c"}) DONE(all.master->enqueue_module(assignment(module), {}));
  for (const char* module : {"a", "b", "c"}) {
    const auto assigned = take_assignment(*all.first, all.one);
    HOLDS(assigned && assigned->assignment.module == module,
          "they were not handed out in the order in which they were enqueued");
  }
  return {};
}

Status hands_out_the_urgent_first(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("ordinary"), {}));
  ModuleAssignment urgent = assignment("urgent");
  urgent.priority = 9;
  DONE(all.master->enqueue_module(urgent, {}));
  const auto assigned = take_assignment(*all.first, all.one);
  HOLDS(assigned && assigned->assignment.module == "urgent",
        "one of higher priority was not handed out first");
  return {};
}

Status heeds_capabilities(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("image", {"docker", "linux"}), {}));
  HOLDS(gets_nothing(subject, *all.first, worker(1, {"docker"})),
        "it was handed to a worker that lacks a capability");
  DONE(all.master->enqueue_module(assignment("plain"), {}));
  const auto plain = take_assignment(*all.first, worker(1, {"docker"}));
  HOLDS(plain && plain->assignment.module == "plain",
        "one that nobody can take stands in the way of another");
  const auto image = take_assignment(*all.second, worker(2, {"docker", "gpu", "linux"}));
  HOLDS(image && image->assignment.module == "image",
        "a worker with more than the capabilities did not get it");
  return {};
}

Status tells_nothing_from_closed(Subject& subject) {
  CAST(all);
  const Deadline deadline(milliseconds(50));
  const auto none = all.first->dequeue_module(all.one, deadline.token());
  HOLDS(!none ? none.error().code == Errc::closed : std::holds_alternative<Empty>(*none),
        "without work, dequeue_module should say Empty, or wait until it is stopped and return CLOSED");
  auto pending = std::async(std::launch::async, [&] {
    const Deadline long_one;
    return take(*all.second, all.two, long_one.token());
  });
  DONE(all.master->close_run("all done", {}));
  const auto told = pending.get();
  HOLDS(told && std::holds_alternative<Closed>(*told), "whoever waited was not told that the run is over");
  const auto later = all.first->dequeue_module(all.one, {});
  HOLDS(later && std::holds_alternative<Closed>(*later),
        "whoever asks later is not told that the run is over");
  HOLDS(std::get<Closed>(*later).reason == "all done", "the reason is not told");
  return {};
}

Status returns_results(Subject& subject) {
  CAST(all);
  const Deadline deadline;
  DONE(all.master->enqueue_module(assignment("early"), {}));
  DONE(all.master->enqueue_module(assignment("late"), {}));
  const auto early = take_assignment(*all.first, all.one);
  const auto late = take_assignment(*all.second, all.two);
  HOLDS(early && late, "no assignments");
  SerializedModuleResult result = result_of(*early, 1, "{\"text\":\"\\u0001 and more\"}");
  result.failure = ModuleFailure{FailureKind::exception, "m", "d", 3};
  result.skipped_because = "because";
  result.artifacts = {{"early", "bin", {"00ff", 12}}};
  HOLDS(all.first->publish_result(result, {}) == Accepted::first, "the first result was not accepted");
  HOLDS(all.master->wait_for_result("early", deadline.token()) == result,
        "a result that was published before the wait is not returned as it was");
  auto waits =
      std::async(std::launch::async, [&] { return all.master->wait_for_result("late", deadline.token()); });
  HOLDS(all.second->publish_result(result_of(*late, 2), {}) == Accepted::first,
        "the result was not accepted");
  HOLDS(waits.get() == result_of(*late, 2), "whoever waited did not get the result");
  return {};
}

Status lets_waiters_go(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("slow"), {}));
  const auto assigned = take_assignment(*all.first, all.one);
  HOLDS(assigned, "no assignment");
  const Deadline deadline;
  std::stop_source impatient;
  auto gives_up = std::async(std::launch::async,
                             [&] { return all.master->wait_for_result("slow", impatient.get_token()); });
  auto stays =
      std::async(std::launch::async, [&] { return all.master->wait_for_result("slow", deadline.token()); });
  impatient.request_stop();
  const auto stopped = gives_up.get();
  HOLDS(!stopped && stopped.error().code == Errc::closed, "a wait that was stopped should end with CLOSED");
  DONE(all.first->publish_result(result_of(*assigned, 1), {}));
  HOLDS(stays.get(), "one that stopped waiting took another along");
  return {};
}

Status accepts_a_result_once(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("m"), {}));
  const auto assigned = take_assignment(*all.first, all.one);
  HOLDS(assigned, "no assignment");
  HOLDS(all.first->publish_result(result_of(*assigned, 1), {}) == Accepted::first,
        "the first result was not accepted");
  HOLDS(all.first->publish_result(result_of(*assigned, 1), {}) == Accepted::duplicate,
        "the same result again should be acknowledged as a duplicate");
  HOLDS(all.first->publish_result(result_of(*assigned, 1, "\"other\""), {}) == Accepted::stale,
        "another result was accepted after the first");
  const auto stands = all.master->wait_for_result("m", {});
  HOLDS(stands && stands->value == "\"done\"", "the first result does not stand");
  return {};
}

Status leases_again_what_was_lost(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("m"), {}));
  const auto lost = take_assignment(*all.first, all.one);
  HOLDS(lost && lost->attempt == 1, "no assignment");
  HOLDS(gets_nothing(subject, *all.second, all.two), "it was handed to another while its lease lasts");
  subject.let_pass(subject.lease() + milliseconds(1));
  const auto again = take_assignment(*all.second, all.two);
  HOLDS(again && again->attempt == 2, "when the lease has ended it should be handed out as attempt 2");
  HOLDS(all.first->publish_result(result_of(*lost, 1), {}) == Accepted::stale,
        "the result of a lease that has ended was accepted");
  HOLDS(all.second->publish_result(result_of(*again, 2), {}) == Accepted::first,
        "the result of the second attempt was not accepted");
  return {};
}

Status refuses_a_late_result(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("m"), {}));
  const auto lost = take_assignment(*all.first, all.one);
  HOLDS(lost, "no assignment");
  subject.let_pass(subject.lease() + milliseconds(1));
  HOLDS(all.first->publish_result(result_of(*lost, 1), {}) == Accepted::stale,
        "a result was accepted after its lease had ended, though nobody has taken the module since");
  return {};
}

Status keeps_leases_alive(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("m"), {}));
  const auto assigned = take_assignment(*all.first, all.one);
  HOLDS(assigned, "no assignment");
  for (int i = 0; i < 4; ++i) {
    subject.let_pass(Duration{subject.lease().ms / 2});
    const auto reply = all.first->send_heartbeat(
        {.index = 1, .session = all.one.session, .leases = {assigned->lease}, .current_module = "m"}, {});
    HOLDS(reply && reply->lost.empty(), "a lease was lost in spite of heartbeats");
  }
  HOLDS(gets_nothing(subject, *all.second, all.two), "it was handed to another in spite of heartbeats");
  HOLDS(all.first->publish_result(result_of(*assigned, 1), {}) == Accepted::first,
        "its result was not accepted in spite of heartbeats");
  return {};
}

Status tells_of_lost_leases(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("m"), {}));
  const auto assigned = take_assignment(*all.first, all.one);
  HOLDS(assigned, "no assignment");
  subject.let_pass(subject.lease() + milliseconds(1));
  const auto reply =
      all.first->send_heartbeat({.index = 1, .session = all.one.session, .leases = {assigned->lease}}, {});
  HOLDS(reply && reply->lost == std::vector{assigned->lease},
        "a heartbeat for a lease that has ended should say that it is lost");
  return {};
}

Status gives_up_after_the_last_attempt(Subject& subject) {
  CAST(all);
  ModuleAssignment once = assignment("m");
  once.attempts_max = 1;
  DONE(all.master->enqueue_module(once, {}));
  HOLDS(take_assignment(*all.first, all.one), "no assignment");
  subject.let_pass(subject.lease() + milliseconds(1));
  HOLDS(gets_nothing(subject, *all.second, all.two), "it was handed out once more than it may");
  const Deadline deadline;
  const auto result = all.master->wait_for_result("m", deadline.token());
  HOLDS(result && result->failure && result->failure->kind == FailureKind::worker_lost,
        "when no attempt is left there should be a result: worker lost");
  return {};
}

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
  DONE(first->send_heartbeat({.index = 3, .session = self.session, .current_module = "build"}, {}));
  seen = status();
  HOLDS(seen && seen->status == WorkerStatus::executing && seen->current_module == "build",
        "its current module should be told");
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
  const auto refused = other->register_worker(worker(1, {}, "another process"), {});
  HOLDS(!refused && refused.error().code == Errc::conflict,
        "another process with the index of a worker that is there should be refused (CONFLICT)");
  DONE(all.first->register_worker(all.one, {}));
  subject.let_pass(subject.lease() + milliseconds(1));
  DONE(other->register_worker(worker(1, {}, "another process"), {}));
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
  HOLDS(!nothing && nothing.error().code == Errc::conflict,
        "a worker with another graph should get no work (CONFLICT)");
  return {};
}

Status has_one_master(Subject& subject) {
  const Party first = subject.connect(), second = subject.connect(), someone = subject.connect();
  DONE(first->open_run(opening("first"), {}));
  const auto refused = second->open_run(opening("second"), {});
  HOLDS(!refused && refused.error().code == Errc::conflict,
        "a second master should be refused while the first is there (CONFLICT)");
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

Status goes_on_after_a_restart_of_the_master(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("done"), {}));
  DONE(all.master->enqueue_module(assignment("open"), {}));
  const auto done = take_assignment(*all.first, all.one);
  HOLDS(done && done->assignment.module == "done", "no assignment");
  DONE(all.first->publish_result(result_of(*done, 1), {}));
  subject.let_pass(subject.lease() + milliseconds(1));
  const Party again = subject.connect();
  DONE(again->open_run(opening("a later process"), {}));
  DONE(again->enqueue_module(assignment("done"), {}));
  DONE(again->enqueue_module(assignment("open"), {}));
  const Deadline deadline;
  HOLDS(again->wait_for_result("done", deadline.token()) == result_of(*done, 1),
        "a result from before the restart is gone");
  const auto open = take_assignment(*all.second, all.two);
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

bool answers(const Result<std::optional<CancellationSignal>>& said,
             const std::optional<CancellationSignal>& expected) {
  return said && *said == expected;
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

Status takes_the_masters_own_results(Subject& subject) {
  CAST(all);
  SerializedModuleResult own{.module = "pinned", .value = "1"};
  HOLDS(all.master->publish_result(own, {}) == Accepted::first,
        "the result of a module that the master ran was not accepted");
  HOLDS(all.master->wait_for_result("pinned", {}) == own, "it is not returned");
  return {};
}

Status feeds_each_result_once(Subject& subject) {
  CAST(all);
  const Deadline deadline;
  for (const char* module : {"a", "b", "c"}) DONE(all.master->enqueue_module(assignment(module), {}));
  for (int i = 0; i < 3; ++i) {
    const auto assigned = take_assignment(*all.first, all.one);
    HOLDS(assigned, "no assignment");
    DONE(all.first->publish_result(result_of(*assigned, 1), {}));
  }
  std::vector<std::string> fed;
  while (fed.size() < 3) {
    const auto results = all.master->next_results(deadline.token());
    if (!results && results.error().code == Errc::not_found) return {};  // it need not be offered
    HOLDS(results, "the feed ended: " + results.error().message);
    for (const SerializedModuleResult& one : *results) fed.push_back(one.module);
  }
  std::ranges::sort(fed);
  HOLDS((fed == std::vector<std::string>{"a", "b", "c"}), "the feed should tell each result once");
  return {};
}

double processor_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}
Status waits_without_work(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("for another", {"gpu"}), {}));
  const auto wait_for = [](Duration time, const auto& wait) {
    const double before = processor_seconds();
    const Deadline deadline(time);
    wait(deadline.token());
    return (processor_seconds() - before) * 1000 / static_cast<double>(time.ms);
  };
  const double waiting = wait_for(
      milliseconds(300), [&](const std::stop_token& stop) { (void)take(*all.first, all.one, stop); });
  HOLDS(waiting < 0.2, "a worker that waits, while there is something for others, keeps a processor busy");
  const double awaiting = wait_for(milliseconds(300), [&](const std::stop_token& stop) {
    (void)all.master->wait_for_result("for another", stop);
  });
  HOLDS(awaiting < 0.2, "whoever waits for a result keeps a processor busy");
  return {};
}

const Check kChecks[] = {
    {"WakesWhoeverWaits", "a worker that waits gets what is enqueued", wakes_whoever_waits},
    {"CarriesAllOfAnAssignment", "an assignment arrives as it was enqueued", carries_all_of_an_assignment},
    {"HandsEachToOne", "every assignment is handed out, to one worker", hands_each_to_one},
    {"KeepsTheirOrder", "assignments are handed out in their order", keeps_their_order},
    {"HandsOutTheUrgentFirst", "a higher priority comes first", hands_out_the_urgent_first},
    {"HeedsCapabilities", "a worker gets only what it has the capabilities for", heeds_capabilities},
    {"TellsNothingFromClosed", "nothing to do now, and the run is over, are different answers",
     tells_nothing_from_closed},
    {"ReturnsResults", "a result is returned, whether it was published before or after the wait",
     returns_results},
    {"LetsWaitersGo", "one that stops waiting affects no other", lets_waiters_go},
    {"AcceptsAResultOnce", "the first result stands, and the same again is acknowledged",
     accepts_a_result_once},
    {"LeasesAgainWhatWasLost", "what a silent worker had is handed out again, and its result is stale",
     leases_again_what_was_lost},
    {"RefusesALateResult", "a result is stale once its lease has ended", refuses_a_late_result},
    {"KeepsLeasesAlive", "heartbeats keep leases", keeps_leases_alive},
    {"TellsOfLostLeases", "a heartbeat is told which leases are lost", tells_of_lost_leases},
    {"GivesUpAfterTheLastAttempt", "when no attempt is left, the result is: worker lost",
     gives_up_after_the_last_attempt},
    {"ListsWorkers", "workers are listed with status and current module", lists_workers},
    {"RefusesASecondWorkerWithOneIndex", "an index belongs to one process at a time",
     refuses_a_second_worker_with_one_index},
    {"RefusesAnotherPipeline", "a worker with another graph is refused", refuses_another_pipeline},
    {"HasOneMaster", "a run has one master at a time", has_one_master},
    {"GoesOnAfterARestartOfTheMaster", "a master that was started again finds all that was there",
     goes_on_after_a_restart_of_the_master},
    {"BroadcastsCancellation", "a cancellation is durable, and the first reason stands",
     broadcasts_cancellation},
    {"TakesTheMastersOwnResults", "the master publishes what it ran itself", takes_the_masters_own_results},
    {"FeedsEachResultOnce", "a feed of results tells each once", feeds_each_result_once},
    {"WaitsWithoutWork", "whoever waits uses no processor", waits_without_work},
};

}  // namespace

std::span<const Check> checks() { return kChecks; }

}  // namespace baton::pipeline::contract
