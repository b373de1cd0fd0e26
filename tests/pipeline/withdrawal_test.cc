// What becomes of modules that were handed out and that no worker has begun: the same on every coordinator.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <latch>
#include <mutex>
#include <set>

#include "base/pause.h"
#include "pipeline/context.h"
#include "pipeline/memory_coordinator.h"
#include "tests/pipeline/company.h"
#include "tests/pipeline/subjects.h"

namespace baton::pipeline {
namespace {

// Sees how far modules are, and lets others wait for it.
class Lookout : public RunObserver {
 public:
  void changed(const ModuleReport& report, const std::shared_ptr<const void>&) override {
    {
      const std::lock_guard lock(mutex_);
      seen_.emplace(report.id, report.status);
    }
    changed_.notify_all();
    if (report.id == "waits" && report.status == ModuleStatus::queued && once_it_waits) once_it_waits();
  }
  void noticed(const std::string& text) override {
    if (text.find(" is there: ") != std::string::npos)
      somebody_is_there = true, somebody_is_there.notify_all();
  }
  // False: it was not seen for so long that something is wrong.
  bool sees(const std::string& module, ModuleStatus status) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30),
                             [&] { return seen_.contains({module, status}); });
  }

  std::function<void()> once_it_waits;  // set before the run
  std::atomic<bool> somebody_is_there = false;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::pair<std::string, ModuleStatus>> seen_;
};

class AModuleThatNobodyHasBegun : public ::testing::TestWithParam<Transport> {
 protected:
  // Once this is over, the only place of the only worker is taken, until `waits` has ended so. Whoever has it
  // does not listen to anybody else.
  Handle<None> occupied_until(ModuleStatus ended) {
    pipeline_.add("occupies").stop_grace(minutes(2)).run([this, ended](Context&) {
      is_occupied_.count_down();
      was_seen_ = lookout_.sees("waits", ended);
    });
    return pipeline_.add("start").pin_to_master().run([this](Context&) { is_occupied_.wait(); });
  }

  const std::unique_ptr<contract::Subject> subject_ = GetParam().make();
  Lookout lookout_;
  Pipeline pipeline_{"waits"};
  std::atomic<int> begun_ = 0;
  std::latch is_occupied_{1};
  std::atomic<bool> was_seen_ = false;
};
INSTANTIATE_TEST_SUITE_P(On, AModuleThatNobodyHasBegun, ::testing::ValuesIn(transports()),
                         [](const auto& one) { return one.param.name; });

TEST_P(AModuleThatNobodyHasBegun, IsNotBegunOnceTheRunIsCancelled) {  // P7
  auto start = occupied_until(ModuleStatus::cancelled);
  pipeline_.add("waits", after(start)).run([this](Context&) { ++begun_; });
  std::stop_source stop;
  lookout_.once_it_waits = [&] { stop.request_stop(); };
  Company company(*subject_, pipeline_);
  company.hire(worker_options(1, {}));
  const RunReport report =
      company.run({.is_only_master = true, .stop = stop.get_token(), .observer = &lookout_});
  EXPECT_EQ(report.outcome, RunOutcome::cancelled);
  EXPECT_TRUE(was_seen_) << "it was not withdrawn while the worker had no place for it";
  EXPECT_EQ(module(report, "waits").reason, "stopped by the user");
  EXPECT_EQ(company.report(1).end, WorkerEnd::closed);
  EXPECT_EQ(begun_, 0);
}

TEST_P(AModuleThatNobodyHasBegun, IsNotBegunAfterAFailureThatStopsTheRun) {  // P7 P13
  auto start = occupied_until(ModuleStatus::cancelled);
  pipeline_.add("waits", after(start)).run([this](Context&) { ++begun_; });
  pipeline_.add("fails", after(start)).pin_to_master().run([this](Context&) {
    lookout_.sees("waits", ModuleStatus::queued);
    throw std::runtime_error("no");
  });
  Company company(*subject_, pipeline_);
  company.hire(worker_options(1, {}));
  const RunReport report = company.run({.is_only_master = true, .observer = &lookout_});
  EXPECT_EQ(report.outcome, RunOutcome::failed);
  EXPECT_TRUE(was_seen_) << "it was not withdrawn while the worker had no place for it";
  EXPECT_EQ(module(report, "waits").reason, "fails failed");
  EXPECT_EQ(company.report(1).end, WorkerEnd::closed);
  EXPECT_EQ(begun_, 0);
}

TEST_P(AModuleThatNobodyHasBegun, DoesNotWaitForAPlaceAtAWorkerForEver) {  // P13
  pipeline_.on_failure(OnFailure::finish);
  auto start = occupied_until(ModuleStatus::timed_out);
  pipeline_.add("waits", after(start)).queue_timeout(milliseconds(50)).run([this](Context&) { ++begun_; });
  pipeline_.add("later", after(start)).priority(Priority::low).run([](Context&) {});
  Company company(*subject_, pipeline_);
  company.hire(worker_options(1, {}));
  const RunReport report = company.run({.is_only_master = true, .observer = &lookout_});
  EXPECT_TRUE(was_seen_) << "it was not given up while the worker had no place for it";
  EXPECT_EQ(module(report, "waits").status, ModuleStatus::timed_out);
  EXPECT_EQ(module(report, "waits").failure.message,
            "it has waited for longer than 50 ms, for a place at a worker");
  EXPECT_EQ(module(report, "later").status, ModuleStatus::succeeded);
  EXPECT_EQ(company.report(1).end, WorkerEnd::closed);
  EXPECT_EQ(begun_, 0);
}

// A worker with several places tells of one of its modules only.
TEST_P(AModuleThatNobodyHasBegun, IsToldFromOnesThatHaveBegun) {  // P13
  auto start = pipeline_.add("start").pin_to_master().run(
      [this](Context&) { lookout_.somebody_is_there.wait(false); });
  for (const std::string id : {"one", "other"}) {
    pipeline_.add(id, after(start)).queue_timeout(seconds(3)).run([this](Context&) {
      if (!lookout_.sees("one", ModuleStatus::running) || !lookout_.sees("other", ModuleStatus::running))
        throw std::runtime_error("not seen to run");
    });
  }
  Company company(*subject_, pipeline_);
  company.hire(worker_options(1, {}, 2));
  const RunReport report = company.run({.is_only_master = true, .observer = &lookout_});
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << module(report, "one").failure.message;
}

// Whoever watches keeps the master from looking at the clock for a while.
TEST(AModuleThatHasJustBecomeReady, HasAllTheTimeThatItMayWait) {  // P13
  struct : RunObserver {
    void changed(const ModuleReport& report, const std::shared_ptr<const void>&) override {
      if (report.id == "first" && report.status == ModuleStatus::succeeded) pause(milliseconds(300), {});
    }
  } slow;
  Pipeline pipeline("late");
  auto first = pipeline.add("first").run([](Context&) {});
  pipeline.add("second", after(first)).queue_timeout(milliseconds(100)).run([](Context&) {});
  const Graph graph = *Graph::of(pipeline.definition());
  const RunReport report = run(graph, {.jobs = 1, .observer = &slow});
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << module(report, "second").failure.message;
}

// Hears of a cancellation only if it asks.
class Deaf : public MemoryCoordinator {
 public:
  using MemoryCoordinator::MemoryCoordinator;
  Result<HeartbeatReply> send_heartbeat(const WorkerHeartbeat& heartbeat, std::stop_token stop) override {
    auto reply = MemoryCoordinator::send_heartbeat(heartbeat, stop);
    if (reply) reply->cancelled.reset();
    return reply;
  }
};

TEST(AModuleOfALostWorker, IsNotBegunAgainOnceTheRunIsCancelled) {  // P4 P7
  std::atomic<int> begun = 0;
  Pipeline pipeline("lost");
  pipeline.add("m").run([&](Context&) { ++begun; });
  const Graph graph = *Graph::of(pipeline.definition());
  std::atomic<std::int64_t> now_ms = 1;
  MemoryExchange exchange{{.now = [&] { return Instant{now_ms}; }}};
  MemoryCoordinator master(exchange), lost(exchange);
  ASSERT_TRUE(master.open_run({.session = "m", .name = "lost", .fingerprint = graph.fingerprint()}, {}));
  ASSERT_TRUE(master.enqueue_module({.module = "m"}, {}));
  const WorkerRegistration self{.index = 1, .session = "lost", .fingerprint = graph.fingerprint()};
  ASSERT_TRUE(lost.register_worker(self, {}));
  ASSERT_TRUE(lost.dequeue_module(self, {}));
  ASSERT_TRUE(master.broadcast_cancellation("enough", {}));
  now_ms += (kLostAfter + milliseconds(1)).ms;
  exchange.time_has_passed();
  ASSERT_TRUE(master.get_registered_workers({}));  // it is still there
  WorkerOptions options = worker_options(2, {});
  options.heartbeat = options.cancellation_poll = hours(1);
  Deaf coordinator(exchange);
  std::jthread worker([&] { run_worker(graph, coordinator, options); });
  EXPECT_EQ(master.wait_for_result("m", {})->status, ModuleStatus::cancelled);
  ASSERT_TRUE(master.close_run("cancelled", {}));
  EXPECT_EQ(begun, 0);
}

}  // namespace
}  // namespace baton::pipeline
