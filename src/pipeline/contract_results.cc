// Results and leases: which stand, and what becomes of whoever falls silent.
#include "pipeline/contract_checks.h"
#include "pipeline/contract_parties.h"

#include <algorithm>
#include <future>
#include <vector>

namespace baton::pipeline::contract {
Status returns_results(Subject& subject) {
  CAST(all);
  const Deadline deadline(subject.patience());
  DONE(all.master->enqueue_module(assignment("early"), {}));
  DONE(all.master->enqueue_module(assignment("late"), {}));
  const auto early = take_assignment(*all.first, all.one, subject.patience());
  const auto late = take_assignment(*all.second, all.two, subject.patience());
  HOLDS(early && late, "no assignments");
  SerializedModuleResult result = result_of(*early, 1, "{\"text\":\"\\u0001 and more\"}");
  result.failure = ModuleFailure{FailureKind::exception, "m", "d", 3};
  result.skipped_because = "because";
  result.artifacts = {{"early", "bin", {"00ff", 12}}};
  HOLDS(is(all.first->publish_result(result, {}), Accepted::first), "the first result was not accepted");
  HOLDS(is(all.master->wait_for_result("early", deadline.token()), result),
        "a result that was published before the wait is not returned as it was");
  auto waits =
      std::async(std::launch::async, [&] { return all.master->wait_for_result("late", deadline.token()); });
  HOLDS(is(all.second->publish_result(result_of(*late, 2), {}), Accepted::first),
        "the result was not accepted");
  HOLDS(is(waits.get(), result_of(*late, 2)), "whoever waited did not get the result");
  return {};
}

Status lets_waiters_go(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("slow"), {}));
  const auto assigned = take_assignment(*all.first, all.one, subject.patience());
  HOLDS(assigned, "no assignment");
  const Deadline deadline(subject.patience());
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
  const auto assigned = take_assignment(*all.first, all.one, subject.patience());
  HOLDS(assigned, "no assignment");
  HOLDS(is(all.first->publish_result(result_of(*assigned, 1), {}), Accepted::first),
        "the first result was not accepted");
  HOLDS(is(all.first->publish_result(result_of(*assigned, 1), {}), Accepted::duplicate),
        "the same result again should be acknowledged as a duplicate");
  HOLDS(is(all.first->publish_result(result_of(*assigned, 1, "\"other\""), {}), Accepted::stale),
        "another result was accepted after the first");
  const auto stands = all.master->wait_for_result("m", {});
  HOLDS(stands && stands->value == "\"done\"", "the first result does not stand");
  return {};
}

Status takes_the_masters_own_results(Subject& subject) {
  CAST(all);
  SerializedModuleResult own{.module = "pinned", .value = "1"};
  HOLDS(is(all.master->publish_result(own, {}), Accepted::first),
        "the result of a module that the master ran was not accepted");
  HOLDS(is(all.master->wait_for_result("pinned", {}), own), "it is not returned");
  return {};
}

Status lets_the_master_withdraw(Subject& subject) {
  CAST(all);
  const Deadline deadline(subject.patience());
  for (const char* module : {"begun", "waits"}) DONE(all.master->enqueue_module(assignment(module), {}));
  const auto begun = take_assignment(*all.first, all.one, subject.patience());
  HOLDS(begun && begun->assignment.module == "begun", "no assignment");
  SerializedModuleResult withdrawn{
      .module = "begun", .attempt = 0, .status = ModuleStatus::cancelled, .skipped_because = "unwanted"};
  HOLDS(is(all.master->publish_result(withdrawn, {}), Accepted::stale),
        "the master withdrew what a worker has begun");
  HOLDS(is(all.first->publish_result(result_of(*begun, 1), {}), Accepted::first),
        "after that, the result of whoever had begun it was not accepted");
  HOLDS(is(all.master->publish_result(withdrawn, {}), Accepted::stale), "the first result should stand");
  withdrawn.module = "waits";
  HOLDS(is(all.master->publish_result(withdrawn, {}), Accepted::first),
        "the master cannot withdraw what nobody has begun");
  HOLDS(is(all.master->publish_result(withdrawn, {}), Accepted::duplicate),
        "the same again should be acknowledged as a duplicate");
  HOLDS(gets_nothing(subject, *all.second, all.two), "what was withdrawn is handed out");
  HOLDS(is(all.master->wait_for_result("waits", deadline.token()), withdrawn), "its result is not returned");
  return {};
}

Status feeds_each_result_once(Subject& subject) {
  CAST(all);
  const Deadline deadline(subject.patience());
  for (const char* module : {"a", "b", "c"}) DONE(all.master->enqueue_module(assignment(module), {}));
  for (int i = 0; i < 3; ++i) {
    const auto assigned = take_assignment(*all.first, all.one, subject.patience());
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

Status leases_again_what_was_lost(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("m"), {}));
  const auto lost = take_assignment(*all.first, all.one, subject.patience());
  HOLDS(lost && lost->attempt == 1, "no assignment");
  HOLDS(gets_nothing(subject, *all.second, all.two), "it was handed to another while its lease lasts");
  subject.let_pass(subject.lease() + milliseconds(1));
  const auto again = take_assignment(*all.second, all.two, subject.patience());
  HOLDS(again && again->attempt == 2, "when the lease has ended it should be handed out as attempt 2");
  HOLDS(is(all.first->publish_result(result_of(*lost, 1), {}), Accepted::stale),
        "the result of a lease that has ended was accepted");
  HOLDS(is(all.second->publish_result(result_of(*again, 2), {}), Accepted::first),
        "the result of the second attempt was not accepted");
  return {};
}

Status is_not_misled_by_a_result_of_nobody(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("m"), {}));
  const auto assigned = take_assignment(*all.first, all.one, subject.patience());
  HOLDS(assigned, "no assignment");
  SerializedModuleResult nobodys = result_of(*assigned, 1);
  nobodys.module = "later";
  nobodys.lease += "0";
  HOLDS(!is(all.first->publish_result(nobodys, {}), Accepted::first),
        "a result of what was never enqueued was accepted");
  DONE(all.master->enqueue_module(assignment("later"), {}));
  const auto later = take_assignment(*all.second, all.two, subject.patience());
  HOLDS(later && later->assignment.module == "later", "after that, the module is not handed out");
  return {};
}

Status refuses_a_late_result(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("m"), {}));
  const auto lost = take_assignment(*all.first, all.one, subject.patience());
  HOLDS(lost, "no assignment");
  subject.let_pass(subject.lease() + milliseconds(1));
  HOLDS(is(all.first->publish_result(result_of(*lost, 1), {}), Accepted::stale),
        "a result was accepted after its lease had ended, though nobody has taken the module since");
  return {};
}

Status keeps_leases_alive(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("m"), {}));
  const auto assigned = take_assignment(*all.first, all.one, subject.patience());
  HOLDS(assigned, "no assignment");
  for (int i = 0; i < 4; ++i) {
    subject.let_pass(Duration{subject.lease().ms / 2});
    const auto reply = all.first->send_heartbeat(
        {.index = 1, .session = all.one.session, .leases = {assigned->lease}, .current_modules = {"m"}}, {});
    HOLDS(reply && reply->lost.empty(), "a lease was lost in spite of heartbeats");
  }
  HOLDS(gets_nothing(subject, *all.second, all.two), "it was handed to another in spite of heartbeats");
  HOLDS(is(all.first->publish_result(result_of(*assigned, 1), {}), Accepted::first),
        "its result was not accepted in spite of heartbeats");
  return {};
}

Status tells_of_lost_leases(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("m"), {}));
  const auto assigned = take_assignment(*all.first, all.one, subject.patience());
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
  HOLDS(take_assignment(*all.first, all.one, subject.patience()), "no assignment");
  subject.let_pass(subject.lease() + milliseconds(1));
  HOLDS(gets_nothing(subject, *all.second, all.two), "it was handed out once more than it may");
  const Deadline deadline(subject.patience());
  const auto result = all.master->wait_for_result("m", deadline.token());
  HOLDS(result && result->failure && result->failure->kind == FailureKind::worker_lost,
        "when no attempt is left there should be a result: worker lost");
  return {};
}

}  // namespace baton::pipeline::contract
