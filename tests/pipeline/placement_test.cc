// Who runs what, where workers differ: the same on every coordinator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <set>

#include "pipeline/context.h"
#include "pipeline/reservation.h"
#include "pipeline/role_guard.h"
#include "tests/pipeline/company.h"
#include "tests/pipeline/subjects.h"
#include "tests/served.h"

namespace baton::pipeline {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class Placement : public ::testing::TestWithParam<Transport> {
 protected:
  const std::unique_ptr<contract::Subject> subject_ = GetParam().make();
};
INSTANTIATE_TEST_SUITE_P(On, Placement, ::testing::ValuesIn(transports()),
                         [](const auto& one) { return one.param.name; });

// Waits until there are so many workers: only then it is known who is rare.
class FullHouse : public RunObserver {
 public:
  explicit FullHouse(int people) : people_(people) {}
  void noticed(const std::string& text) override {
    const std::lock_guard lock(mutex_);
    if (text.find(" is there: ") != std::string::npos && ++seen_ >= people_) changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return seen_ >= people_; });
  }

 private:
  const int people_;
  int seen_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
};

TEST_P(Placement, GivesARareWorkerFirstWhatNobodyElseCanDo) {  // P8
  FullHouse house(2);
  std::mutex mutex;
  std::vector<std::string> order;  // on the rare one
  Pipeline pipeline("scarce");
  auto start = pipeline.add("start").pin_to_master().run([&](Context&) { house.wait(); });
  const auto note = [&](Context& context) {
    const std::lock_guard lock(mutex);
    if (context.worker() == "worker-2") order.push_back(context.module());
  };
  for (int i = 0; i < 12; ++i) pipeline.add("plain" + std::to_string(i), after(start)).run(note);
  pipeline.add("render", after(start)).needs_capability("gpu").run(note);
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {}));
  company.hire(worker_options(2, {"gpu"}));
  EXPECT_EQ(company.run({.is_only_master = true, .observer = &house}).outcome, RunOutcome::succeeded);
  ASSERT_FALSE(order.empty());
  EXPECT_EQ(order.front(), "render");
}

TEST_P(Placement, LetsNoModuleWaitForOneItPrefersWhoIsBusy) {  // P8
  FullHouse house(2);
  std::atomic<bool> is_busy = false, has_run = false;
  Pipeline pipeline("prefers");
  auto start = pipeline.add("start").pin_to_master().run([&](Context&) { house.wait(); });
  pipeline.add("busy", after(start)).needs_capability("ssd").run([&](Context&) {
    is_busy = true;
    EXPECT_TRUE(eventually([&] { return has_run.load(); }));
  });
  auto begun = pipeline.add("begun", after(start)).pin_to_master().run([&](Context&) {
    EXPECT_TRUE(eventually([&] { return is_busy.load(); }));
  });
  pipeline.add("likes", after(begun)).prefers_capability("ssd").run([&](Context&) { has_run = true; });
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {}));
  company.hire(worker_options(2, {"ssd"}));
  const RunReport report = company.run({.is_only_master = true, .observer = &house});
  EXPECT_EQ(report.outcome, RunOutcome::succeeded);
  EXPECT_EQ(module(report, "likes").worker, "worker 1");
}

TEST_P(Placement, TakesBackWhatOneHadWhoWasPreferredAndIsLost) {  // P4 P8
  FullHouse house(1);
  Pipeline pipeline("prefers");
  pipeline.timeout(minutes(1));
  auto start = pipeline.add("start").pin_to_master().run([&](Context&) { house.wait(); });
  pipeline.add("likes", after(start)).prefers_capability("ssd").run([](Context&) {});
  const Graph graph = *Graph::of(pipeline.definition());
  const WorkerRegistration self{.index = 1,
                                .session = "lost",
                                .name = "lost",
                                .capabilities = with_unreserved({"ssd"}),
                                .fingerprint = graph.fingerprint(),
                                .parts = graph.parts()};
  const auto master = subject_->connect(), lost = subject_->connect();
  RunReport report;
  {
    const std::jthread runs([&] {
      report = run(graph, {.jobs = 1,
                           .observer = &house,
                           .coordinator = master.get(),
                           .worker_poll = milliseconds(10),
                           .lost_after = subject_->lease()});
    });
    EXPECT_TRUE(lost->register_worker(self, {}));
    EXPECT_TRUE(eventually([&] {
      const auto got = lost->dequeue_module(self, {});
      return got && std::holds_alternative<Assigned>(*got);
    }));
    subject_->let_pass(subject_->lease() + milliseconds(10));
  }
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << report.reason;
  EXPECT_EQ(module(report, "likes").worker, "master");
}

// Takes no assignment with the results of more than one module, as a server takes none that is very long.
class Narrow : public RoleGuard {
 public:
  explicit Narrow(DistributedCoordinator& behind) : RoleGuard(behind, Role::master) {}
  Status enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) override {
    if (assignment.dependencies.size() > 1)
      return failure(Errc::too_large, assignment.module + " is too large");
    return RoleGuard::enqueue_module(assignment, std::move(stop));
  }
  Status enqueue_modules(const std::vector<ModuleAssignment>& assignments, std::stop_token stop) override {
    for (const ModuleAssignment& one : assignments) {
      if (auto done = enqueue_module(one, stop); !done) return done;
    }
    return {};
  }
};

// With a worker that could do what the master could too.
RunReport run_at_narrow(contract::Subject& subject, const Graph& graph, FullHouse& house) {
  const auto behind = subject.connect();
  Narrow narrow(*behind);
  std::stop_source over;
  const std::jthread worker([&] {
    const auto coordinator = subject.connect();
    run_worker(graph, *coordinator, worker_options(1, {"far"}, 4), over.get_token());
  });
  RunReport report =
      run(graph, {.jobs = 1, .observer = &house, .coordinator = &narrow, .worker_poll = milliseconds(10)});
  over.request_stop();
  return report;
}

TEST_P(Placement, LeavesToTheMasterWhatIsTooLargeToBeHandedOut) {  // P4 P11
  FullHouse house(1);
  Pipeline pipeline("narrow");
  auto start = pipeline.add("start").pin_to_master().run([&](Context&) { house.wait(); });
  auto one = pipeline.add("one", after(start)).run([](Context&) { return 1; });
  auto two = pipeline.add("two", after(start)).run([](Context&) { return 2; });
  pipeline.add("sum", one, two).run([](Context&, int a, int b) { return a + b; });
  pipeline.add("beside", after(two)).needs_capability("far").run([](Context&) {});
  const RunReport report = run_at_narrow(*subject_, *Graph::of(pipeline.definition()), house);
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << report.reason;
  EXPECT_EQ(module(report, "sum").worker, "master");
}

TEST_P(Placement, BeginsWhatIsTooLargeToBeHandedOutOnlyWhereThereIsAPlace) {  // P8 P11
  class Crowd : public FullHouse {
   public:
    using FullHouse::FullHouse;
    void changed(const ModuleReport& report, const std::shared_ptr<const void>&) override {
      if (report.worker != "master") return;
      if (report.status == ModuleStatus::running)
        running_.insert(report.id);
      else
        running_.erase(report.id);
      most = std::max(most, running_.size());
    }
    std::size_t most = 0;

   private:
    std::set<std::string> running_;
  } crowd(1);
  Pipeline pipeline("narrow");
  auto start = pipeline.add("start").pin_to_master().run([&](Context&) { crowd.wait(); });
  auto one = pipeline.add("one", after(start)).run([](Context&) { return 1; });
  auto two = pipeline.add("two", after(start)).run([](Context&) { return 2; });
  for (int i = 0; i < 5; ++i)
    pipeline.add("sum" + std::to_string(i), one, two).run([](Context&, int a, int b) { return a + b; });
  const RunReport report = run_at_narrow(*subject_, *Graph::of(pipeline.definition()), crowd);
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << report.reason;
  EXPECT_EQ(module(report, "sum4").worker, "master");
  EXPECT_EQ(crowd.most, 1U);
}

TEST_P(Placement, FailsOnlyWhatIsTooLargeToBeHandedOut) {  // P4 P7 P11
  FullHouse house(1);
  std::atomic<bool> has_tidied_up = false;
  Pipeline pipeline("narrow");
  auto start = pipeline.add("start").pin_to_master().run([&](Context&) { house.wait(); });
  auto one = pipeline.add("one", after(start)).run([](Context&) { return 1; });
  auto two = pipeline.add("two", after(start)).run([](Context&) { return 2; });
  auto sum =
      pipeline.add("sum", one, two).needs_capability("far").run([](Context&, int a, int b) { return a + b; });
  pipeline.add("tidy", settled(sum)).always_run().run([&](Context&, const Outcome<int>& ended) {
    has_tidied_up = ended.status == ModuleStatus::failed;
  });
  const RunReport report = run_at_narrow(*subject_, *Graph::of(pipeline.definition()), house);
  EXPECT_EQ(report.outcome, RunOutcome::failed) << report.reason;
  EXPECT_EQ(module(report, "sum").failure.message, "sum is too large");
  EXPECT_TRUE(has_tidied_up);
}

TEST_P(Placement, GivesAProcessorToOneModuleThatKeepsItBusy) {  // P8
  std::mutex mutex;
  std::condition_variable changed;
  int at_once = 0, most = 0;
  Pipeline pipeline("busy");
  for (int i = 0; i < 3; ++i) {
    pipeline.add("m" + std::to_string(i)).hint(Hint::cpu).run([&](Context&) {
      std::unique_lock lock(mutex);
      most = std::max(most, ++at_once);
      changed.notify_all();
      changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return at_once > 1; });  // if it can be
      --at_once;
    });
  }
  WorkerOptions options = worker_options(1, {}, 3);
  options.processors = 1;
  Company company(*subject_, pipeline);
  company.hire(options);
  EXPECT_EQ(company.run().outcome, RunOutcome::succeeded);
  EXPECT_EQ(most, 1);
}

TEST_P(Placement, DoesNotLetAModuleWaitForAProcessorForEver) {  // P8 P13
  std::mutex mutex;
  std::condition_variable changed;
  bool is_late = false;
  struct Observer : RunObserver {
    void changed(const ModuleReport& report, const std::shared_ptr<const void>&) override {
      if (report.status == ModuleStatus::timed_out) once_late();
    }
    std::function<void()> once_late;
  } observer;
  observer.once_late = [&] {
    const std::lock_guard lock(mutex);
    is_late = true;
    changed.notify_all();
  };
  Pipeline pipeline("busy");
  pipeline.on_failure(OnFailure::finish);
  std::latch is_busy(1);
  pipeline.add("busy").hint(Hint::cpu).run([&](Context&) {
    is_busy.count_down();
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(30), [&] { return is_late; });
  });
  auto start = pipeline.add("start").pin_to_master().run([&](Context&) { is_busy.wait(); });
  pipeline.add("late", after(start)).hint(Hint::cpu).queue_timeout(milliseconds(300)).run([](Context&) {});
  WorkerOptions options = worker_options(1, {}, 2);
  options.processors = 1;
  Company company(*subject_, pipeline);
  company.hire(options);
  const RunReport report = company.run({.is_only_master = true, .observer = &observer});
  EXPECT_TRUE(is_late);
  EXPECT_EQ(module(report, "busy").status, ModuleStatus::succeeded);
  EXPECT_THAT(module(report, "late").failure.message, StartsWith("it has waited for longer than 300 ms"));
}

WorkerOptions reserved(WorkerOptions options) {
  options.is_reserved = true;
  return options;
}

TEST_P(Placement, LeavesToOthersWhatDoesNotNeedAReservedWorker) {  // P8
  FullHouse house(2);
  Pipeline pipeline("reserved");
  auto start = pipeline.add("start").pin_to_master().run([&](Context&) { house.wait(); });
  std::vector<std::string> plain;
  for (int i = 0; i < 6; ++i) plain.push_back("plain" + std::to_string(i));
  std::mutex mutex;
  std::condition_variable changed;
  int at_once = 0;
  for (const std::string& id : plain) {
    pipeline.add(id, after(start)).run([&](Context&) {
      std::unique_lock lock(mutex);
      ++at_once;
      changed.notify_all();
      changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return at_once > 1; });  // if it can be
      --at_once;
    });
  }
  pipeline.add("test", after(start)).matrix({"linux", "gpu"}).run([](Context&) {});
  pipeline.add("render", after(start)).needs_capability("GPU").needs_capability("linux").run([](Context&) {});
  Company company(*subject_, pipeline);
  company.hire(reserved(worker_options(1, {"gpu", "linux"}, 4)));
  company.hire(worker_options(2, {"linux"}));
  const RunReport report = company.run({.is_only_master = true, .observer = &house});
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << report.reason;
  for (const std::string& id : plain) EXPECT_EQ(module(report, id).worker, "worker 2");
  EXPECT_EQ(module(report, "test[linux]").worker, "worker 2") << "every machine is that";
  EXPECT_EQ(module(report, "test[gpu]").worker, "worker 1");
  EXPECT_EQ(module(report, "render").worker, "worker 1");
}

// All that the master says.
class Notices : public RunObserver {
 public:
  void noticed(const std::string& text) override { all.push_back(text); }
  std::vector<std::string> all;
};

TEST_P(Placement, SaysWhoIsReservedForWhatWhenNobodyElseIsThere) {  // P8
  Pipeline pipeline("reserved");
  pipeline.on_failure(OnFailure::finish);
  pipeline.add("plain").run([](Context&) {});
  pipeline.add("named").needs_capability("linux").run([](Context&) {});
  pipeline.add("other").needs_capability("docker").run([](Context&) {});
  Notices notices;
  Company company(*subject_, pipeline);
  company.hire(reserved(worker_options(1, {"gpu", "linux"})));
  const RunReport report = company.run({.is_only_master = true, .observer = &notices, .workers_expected = 1});
  const std::string why = "whoever could run it is reserved for other modules, as worker 1 for gpu";
  for (const std::string id : {"plain", "named"}) {
    EXPECT_EQ(module(report, id).failure.kind, FailureKind::capability);
    EXPECT_EQ(module(report, id).failure.message, why);
  }
  EXPECT_EQ(module(report, "other").failure.message, "nobody has docker; worker 1 lacks docker");
  EXPECT_THAT(notices.all, Contains("worker 1 (worker-1) is there: gpu, linux; 1 place, reserved"));
  EXPECT_THAT(notices.all, Contains("plain and 1 more wait: " + why));
  EXPECT_THAT(notices.all, Each(Not(HasSubstr("unreserved"))));
}

TEST_P(Placement, LeavesItToTheMasterWhereAllWorkersAreReserved) {  // P8 P11
  Pipeline pipeline("reserved");
  auto first = pipeline.add("first").needs_capability("gpu").run([](Context&) {});
  pipeline.add("second", after(first)).run([](Context&) {});
  Company company(*subject_, pipeline);
  company.hire(reserved(worker_options(1, {"gpu"})));
  const RunReport report = company.run({.jobs = 1});
  EXPECT_EQ(report.outcome, RunOutcome::succeeded);
  EXPECT_EQ(module(report, "first").worker, "worker 1");
  EXPECT_EQ(module(report, "second").worker, "master");
}

TEST_P(Placement, IsRefusedToAReservedWorkerThatCanDoNothingSpecial) {  // P8
  Pipeline pipeline("reserved");
  pipeline.add("plain").run([](Context&) {});
  const auto coordinator = subject_->connect();
  const WorkerReport report =
      run_worker(*Graph::of(pipeline.definition()), *coordinator, reserved(worker_options(1, {"linux"})));
  EXPECT_EQ(report.end, WorkerEnd::refused);
  EXPECT_EQ(report.reason,
            "a reserved worker needs a capability of its own besides linux: name what it is reserved for "
            "with --cap");
}

TEST_P(Placement, IsToldWithWhoWaitedAndWhoWorked) {  // P16
  Pipeline pipeline("times");
  for (int i = 0; i < 3; ++i)
    pipeline.add("m" + std::to_string(i)).run([&](Context& context) { context.exec({"sleep", "0.02"}); });
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {}));
  const RunReport report = company.run();
  ASSERT_THAT(report.times, SizeIs(2));
  EXPECT_EQ(report.times[1].index, 1);
  EXPECT_EQ(report.times[1].modules, 3U);
  EXPECT_GE(report.times[1].busy, milliseconds(60));
  Duration longest;
  for (const ModuleReport& one : report.modules) longest = std::max(longest, queue_wait(one));
  EXPECT_GE(longest, milliseconds(40)) << "the last waited for the two before it";
}

}  // namespace
}  // namespace baton::pipeline
