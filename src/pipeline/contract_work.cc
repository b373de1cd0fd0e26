// Work: who gets it, in which order, and what is said when there is none.
#include "pipeline/contract_checks.h"
#include "pipeline/contract_parties.h"

#include <algorithm>
#include <ctime>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace baton::pipeline::contract {
namespace {

double processor_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

}  // namespace

Status wakes_whoever_waits(Subject& subject) {
  CAST(all);
  auto taken = std::async(std::launch::async,
                          [&] { return take_assignment(*all.first, all.one, subject.patience()); });
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
  const auto assigned = take_assignment(*all.first, worker(1, {"linux"}), subject.patience());
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
  const Deadline deadline(subject.patience());
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
    const auto assigned = take_assignment(*all.first, all.one, subject.patience());
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
  const auto assigned = take_assignment(*all.first, all.one, subject.patience());
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
  const auto plain = take_assignment(*all.first, worker(1, {"docker"}), subject.patience());
  HOLDS(plain && plain->assignment.module == "plain",
        "one that nobody can take stands in the way of another");
  const auto image = take_assignment(*all.second, worker(2, {"docker", "gpu", "linux"}), subject.patience());
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
    const Deadline long_one(subject.patience());
    return take(*all.second, all.two, long_one.token());
  });
  DONE(all.master->enqueue_module(assignment("left", {"gpu"}), {}));
  DONE(all.master->close_run("all done", {}));
  const auto told = pending.get();
  HOLDS(told && std::holds_alternative<Closed>(*told), "whoever waited was not told that the run is over");
  const auto later = all.first->dequeue_module(all.one, {});
  HOLDS(later && std::holds_alternative<Closed>(*later),
        "whoever asks later is not told that the run is over");
  HOLDS(std::get<Closed>(*later).reason == "all done", "the reason is not told");
  WorkerRegistration able = all.one;
  able.capabilities = {"gpu"};
  const auto left = all.first->dequeue_module(able, {});
  HOLDS(left && std::holds_alternative<Closed>(*left), "something is handed out although the run is over");
  return {};
}

Status waits_without_work(Subject& subject) {
  CAST(all);
  DONE(all.master->enqueue_module(assignment("for-another", {"gpu"}), {}));
  // On a busy machine even who never rests gets a small part of a processor, and something else may be going
  // on in this process at times: so little is allowed, and once is enough.
  const auto is_quiet = [](const auto& wait) {
    constexpr double kWaited = 0.3, kUsedMax = 0.08 * kWaited;  // seconds
    for (int tries = 3; tries > 0; --tries) {
      const double before = processor_seconds();
      const Deadline deadline(milliseconds(static_cast<std::int64_t>(kWaited * 1000)));
      wait(deadline.token());
      if (processor_seconds() - before < kUsedMax) return true;
    }
    return false;
  };
  HOLDS(is_quiet([&](const std::stop_token& stop) { (void)take(*all.first, all.one, stop); }),
        "a worker that waits, while there is something for others, keeps a processor busy");
  HOLDS(
      is_quiet([&](const std::stop_token& stop) { (void)all.master->wait_for_result("for-another", stop); }),
      "whoever waits for a result keeps a processor busy");
  return {};
}

}  // namespace baton::pipeline::contract
