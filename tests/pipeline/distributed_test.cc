// Runs that are spread over a master and workers: the same on every coordinator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "pipeline/context.h"
#include "pipeline/memory_coordinator.h"
#include "pipeline/pipeline.h"
#include "pipeline/role_guard.h"
#include "pipeline/run.h"
#include "pipeline/worker.h"
#include "tests/pipeline/company.h"
#include "tests/pipeline/subjects.h"

namespace baton::pipeline {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Report {
  std::string target;
  int failures = 0;
};
BATON_FIELDS(Report, target, failures)

class Notes : public RunObserver {
 public:
  void noticed(const std::string& text) override {
    const std::lock_guard lock(mutex_);
    all_.push_back(text);
  }
  std::vector<std::string> all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
};

class ADistributedRun : public ::testing::TestWithParam<Transport> {
 protected:
  const std::unique_ptr<contract::Subject> subject_ = GetParam().make();
};
INSTANTIATE_TEST_SUITE_P(On, ADistributedRun, ::testing::ValuesIn(transports()),
                         [](const auto& one) { return one.param.name; });

TEST_P(ADistributedRun, SpreadsModulesByCapability) {  // P8 P9 P10 P12
  Pipeline pipeline("spread");
  std::atomic<bool> published_here = false;
  auto build = pipeline.add("build").run([](Context& context) { return "built by " + context.worker(); });
  auto test = pipeline.add("test", build)
                  .matrix({"Windows", "linux"})
                  .run([](Context& context, const std::string& built) {
                    return Report{*context.matrix_target() + " on " + context.worker() + ", " + built, 0};
                  });
  std::vector<std::string> seen;
  pipeline.add("publish", test)
      .pin_to_master()
      .run([&](Context& context, const MatrixResults<Report>& reports) {
        published_here = context.worker() == "master";
        for (const auto& one : reports) seen.push_back(one.value->target);
      });
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {"LINUX"}));
  company.hire(worker_options(2, {"windows"}));
  const RunReport report = company.run({.jobs = 1});
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << report.reason;
  EXPECT_TRUE(published_here);
  EXPECT_THAT(seen, ElementsAre(HasSubstr("Windows on worker-2, built by"),
                                HasSubstr("linux on worker-1, built by")));
  EXPECT_EQ(company.report(1).end, WorkerEnd::closed);
  EXPECT_EQ(report.workers.size(), 2U);
}

// Hears what modules say.
class Listener : public RunObserver {
 public:
  void said(const LogLine& line) override {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line.text);
    heard_.notify_all();
  }
  bool hears(const std::string& text) {
    std::unique_lock lock(mutex_);
    return heard_.wait_for(lock, std::chrono::seconds(30),
                           [&] { return std::ranges::find(lines_, text) != lines_.end(); });
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable heard_;
  std::vector<std::string> lines_;
};

TEST_P(ADistributedRun, HearsWhatModulesSayWhileTheyRun) {  // P16
  constexpr int kMany = 20000;                              // more than goes through while it runs
  Listener listener;
  Pipeline pipeline("talks");
  pipeline.add("talks").run([&](Context& context) {
    context.log("begins");
    if (!listener.hears("begins")) throw std::runtime_error("nobody listened");
    for (int i = 0; i < kMany; ++i) context.log("line " + std::to_string(i));
  });
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {}));
  const RunReport report = company.run({.is_only_master = true, .observer = &listener});
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << module(report, "talks").failure.message;
  std::vector<std::string> expected = {"begins"};
  for (int i = 0; i < kMany; ++i) expected.push_back("line " + std::to_string(i));
  if (subject_->connect()->blobs() != nullptr) {
    EXPECT_EQ(listener.lines(), expected);
    return;
  }
  // The end of it is all that fits, and where something is missing is seen.
  const auto heard = listener.lines();
  const auto gap = std::ranges::find_if(
      heard, [](const std::string& line) { return line.find("lines left out") != std::string::npos; });
  const auto known = static_cast<std::size_t>(gap - heard.begin());
  const std::size_t rest = heard.size() - std::min(known + 1, heard.size());
  EXPECT_TRUE(std::equal(heard.begin(), gap, expected.begin()));
  EXPECT_TRUE(
      std::equal(heard.rbegin(), heard.rbegin() + static_cast<std::ptrdiff_t>(rest), expected.rbegin()));
  if (gap != heard.end()) {
    EXPECT_EQ(*gap, "[… " + std::to_string(expected.size() - known - rest) + " lines left out …]");
  }
}

// Who is at work, as those see it who watch.
class AtWork : public RunObserver {
 public:
  void changed(const ModuleReport& report, const std::shared_ptr<const void>&) override {
    if (report.status != ModuleStatus::running) return;
    const std::lock_guard lock(mutex_);
    all_.insert(report.id);
    changed_.notify_all();
  }
  bool are(std::size_t many) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return all_.size() == many; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> all_;
};
TEST_P(ADistributedRun, ShowsAllThatAWorkerIsAt) {  // P16 P18
  AtWork at_work;
  Pipeline pipeline("several");
  for (const char* name : {"a", "b", "c"}) {
    pipeline.add(name).run([&](Context&) {
      if (!at_work.are(3)) throw std::runtime_error("not all are seen to run");
    });
  }
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {}, 3));
  const RunReport report = company.run({.is_only_master = true, .observer = &at_work});
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << module(report, "a").failure.message;
}

TEST_P(ADistributedRun, PrefersWhoeverHasWhatItLikes) {  // P8
  Pipeline pipeline("prefers");
  auto disk = pipeline.add("disk-is-there").needs_capability("disk").run([](Context&) {});
  auto ssd = pipeline.add("ssd-is-there").needs_capability("ssd").run([](Context&) {});
  for (int i = 0; i < 4; ++i) {
    pipeline.add("m" + std::to_string(i), after(disk), after(ssd))
        .prefers_capability("SSD")
        .exclusive("one at a time")
        .run([](Context&) {});
  }
  pipeline.add("other").prefers_capability("gold").run([](Context&) {});
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {"disk"}));
  company.hire(worker_options(2, {"ssd"}));
  const RunReport report = company.run();
  EXPECT_EQ(report.outcome, RunOutcome::succeeded);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(module(report, "m" + std::to_string(i)).worker, "worker 2");
}

TEST_P(ADistributedRun, RunsOnlyWhatIsPinnedOnAMasterThatIsNothingElse) {  // P10
  Pipeline pipeline("only");
  auto there = pipeline.add("there").run([](Context& context) { return context.worker(); });
  std::string where;
  pipeline.add("here", there).pin_to_master().run([&](Context& context, const std::string& other) {
    where = other + ", " + context.worker();
  });
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {}));
  EXPECT_EQ(company.run().outcome, RunOutcome::succeeded);
  EXPECT_EQ(where, "worker-1, master");
}

TEST_P(ADistributedRun, CompletesWithoutWorkers) {  // P11
  Pipeline pipeline("alone");
  auto a = pipeline.add("a").run([](Context&) { return 1; });
  pipeline.add("b", a).run([](Context&, int) {});
  Company company(*subject_, pipeline);
  EXPECT_EQ(company.run({.jobs = 1}).outcome, RunOutcome::succeeded);
}

TEST_P(ADistributedRun, KeepsSkipsFailuresAndCleanUps) {  // P13 P7
  Pipeline pipeline("endings");
  pipeline.on_failure(OnFailure::finish);
  auto skipped = pipeline.add("skipped").run([](Context& context) -> int { context.skip("not today"); });
  auto cascade = pipeline.add("cascade", skipped).run([](Context&, int) {});
  auto lint =
      pipeline.add("lint").allow_failure().run([](Context&) -> int { throw std::runtime_error("untidy"); });
  pipeline.add("looks", settled(lint)).run([](Context&, const Outcome<int>& outcome) {
    if (outcome.failure.message != "untidy" || outcome.value) throw std::runtime_error("lost on the way");
  });
  auto bad = pipeline.add("bad").run([](Context& context) { context.shell("echo oh no >&2; exit 7"); });
  auto after = pipeline.add("after", bad).run([](Context&) {});
  pipeline.add("cleanup", pipeline::after(after)).always_run().run([](Context&) {});
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {}));
  const RunReport report = company.run();
  EXPECT_EQ(report.outcome, RunOutcome::failed);
  EXPECT_EQ(module(report, "skipped").reason, "not today");
  EXPECT_EQ(module(report, "cascade").status, ModuleStatus::skipped);
  EXPECT_EQ(module(report, "lint").status, ModuleStatus::ignored_failure);
  EXPECT_EQ(module(report, "looks").status, ModuleStatus::succeeded);
  EXPECT_EQ(module(report, "bad").failure,
            (ModuleFailure{FailureKind::exit_code, "sh exited with code 7", "oh no\n", 7}));
  EXPECT_EQ(module(report, "after").status, ModuleStatus::dependency_failed);
  EXPECT_EQ(module(report, "cleanup").status, ModuleStatus::succeeded);
  (void)cascade;
}

TEST_P(ADistributedRun, StopsWorkersAtTheFirstFailure) {  // P7 P13
  Pipeline pipeline("fail fast");
  std::latch both(2);
  auto slow = pipeline.add("slow").run([&](Context& context) {
    both.arrive_and_wait();
    context.exec({"sleep", "100"});
  });
  pipeline.add("fails").run([&](Context&) {
    both.arrive_and_wait();
    throw std::runtime_error("no");
  });
  pipeline.add("cleanup", settled(slow)).always_run().run([](Context&, const Outcome<None>&) {});
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {}));
  company.hire(worker_options(2, {}));
  const RunReport report = company.run();
  EXPECT_EQ(report.outcome, RunOutcome::failed);
  EXPECT_EQ(module(report, "slow").status, ModuleStatus::cancelled) << module(report, "slow").failure.message;
  EXPECT_EQ(module(report, "cleanup").status, ModuleStatus::succeeded);
}

TEST_P(ADistributedRun, GoesOnElsewhereWhenAWorkerIsStopped) {  // P4
  Pipeline pipeline("stopped");
  std::latch has_begun(1);
  std::atomic<int> calls = 0;
  pipeline.add("long").run([&](Context& context) {
    if (++calls > 1) return;
    has_begun.count_down();
    context.exec({"sleep", "100"});
  });
  const Graph graph = *Graph::of(pipeline.definition());
  Company company(*subject_, pipeline);
  std::stop_source stop;
  std::jthread first([&] {
    const auto coordinator = subject_->connect();
    EXPECT_EQ(run_worker(graph, *coordinator, worker_options(1, {}), stop.get_token()).end,
              WorkerEnd::stopped);
  });
  std::jthread later([&] {
    has_begun.wait();
    stop.request_stop();
    first.join();
    subject_->let_pass(subject_->lease() + milliseconds(10));
    company.hire(worker_options(2, {}));
  });
  const RunReport report = company.run();
  EXPECT_EQ(report.outcome, RunOutcome::succeeded);
  EXPECT_EQ(module(report, "long").worker, "worker 2");
  EXPECT_EQ(module(report, "long").attempt, 2U);
}

TEST_P(ADistributedRun, HoldsWhatNobodyCanRunUntilSomebodyComes) {  // P8
  Pipeline pipeline("late");
  pipeline.add("image").needs_capability("Docker").run([](Context&) {});
  Notes notes;
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {"linux"}));
  std::jthread later([&] {
    while (!std::ranges::any_of(notes.all(), [](const std::string& note) {
      return note.starts_with("image waits: nobody has docker");
    }))
      std::this_thread::yield();
    company.hire(worker_options(2, {"docker", "linux"}));
  });
  const RunReport report = company.run({.is_only_master = true, .observer = &notes});
  EXPECT_EQ(report.outcome, RunOutcome::succeeded);
  EXPECT_EQ(module(report, "image").worker, "worker 2");
}

TEST_P(ADistributedRun, FailsWhatNobodyWillEverRun) {  // P8
  Pipeline pipeline("hopeless");
  pipeline.add("image").needs_capability("docker").needs_capability("gpu").run([](Context&) {});
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {"docker"}));
  const RunReport known_complete = company.run({.is_only_master = true, .workers_expected = 1});
  EXPECT_EQ(known_complete.outcome, RunOutcome::failed);
  EXPECT_EQ(module(known_complete, "image").failure.kind, FailureKind::capability);
  EXPECT_THAT(module(known_complete, "image").failure.message,
              AllOf(HasSubstr("docker, gpu"), HasSubstr("nobody has")));
}

TEST(ADistributedRunInMemory, GivesUpAfterTheCapabilityTimeout) {  // P8
  Pipeline pipeline("hopeless");
  pipeline.add("image").needs_capability("gpu").run([](Context&) {});
  const auto subject = transports().front().make();
  Company company(*subject, pipeline);
  const RunReport report = company.run({.is_only_master = true, .capability_timeout = milliseconds(1)});
  EXPECT_EQ(module(report, "image").failure.kind, FailureKind::capability);
}

// A transport that can do no more than it must: no feed of results, and no waiting for work.
class Plain : public MemoryCoordinator {
 public:
  using MemoryCoordinator::MemoryCoordinator;
  Result<std::vector<SerializedModuleResult>> next_results(std::stop_token stop) override {
    return DistributedCoordinator::next_results(stop);
  }
  Result<Dequeued> dequeue_module(const WorkerRegistration& worker, std::stop_token) override {
    std::stop_source soon;
    const std::jthread impatience([&] { soon.request_stop(); });
    auto answer = MemoryCoordinator::dequeue_module(worker, soon.get_token());
    if (!answer && answer.error().code == Errc::closed) return Empty{};
    return answer;
  }
};
class PlainSubject : public contract::Subject {
 public:
  std::unique_ptr<DistributedCoordinator> connect() override { return std::make_unique<Plain>(exchange_); }
  Duration lease() const override { return kLostAfter; }
  void let_pass(Duration) override {}

 private:
  MemoryExchange exchange_;
};
TEST(ADistributedRunOnAPlainTransport, WorksTheSame) {  // P1 P3
  Pipeline pipeline("plain");
  std::vector<Handle<int>> all;
  for (int i = 0; i < 20; ++i)
    all.push_back(pipeline.add("m" + std::to_string(i)).run([i](Context&) { return i; }));
  std::atomic<int> sum = 0;
  for (int i = 0; i < 20; ++i)
    pipeline.add("n" + std::to_string(i), all[static_cast<std::size_t>(i)]).run([&](Context&, int value) {
      sum += value;
    });
  PlainSubject subject;
  Company company(subject, pipeline);
  company.hire(worker_options(1, {}, 2));
  EXPECT_EQ(company.run().outcome, RunOutcome::succeeded);
  EXPECT_EQ(sum, 190);
}

TEST_P(ADistributedRun, KeepsWorkersOfOtherPipelinesOut) {  // P11
  Pipeline pipeline("one"), other("other");
  pipeline.add("a").run([](Context&) {});
  other.add("b").run([](Context&) {});
  Company company(*subject_, pipeline);
  const auto master = subject_->connect();
  ASSERT_TRUE(master->open_run(
      {.session = "m", .name = "one", .fingerprint = Graph::of(pipeline.definition())->fingerprint()}, {}));
  const auto coordinator = subject_->connect();
  const WorkerReport report = run_worker(*Graph::of(other.definition()), *coordinator, worker_options(1, {}));
  EXPECT_EQ(report.end, WorkerEnd::refused);
  EXPECT_THAT(report.reason, HasSubstr("another pipeline"));
}

TEST_P(ADistributedRun, LetsGoWhoeverHasLostTheMaster) {  // P17
  Pipeline pipeline("lost");
  pipeline.add("a").run([](Context&) {});
  const Graph graph = *Graph::of(pipeline.definition());
  const auto master = subject_->connect();
  ASSERT_TRUE(master->open_run({.session = "m", .name = "lost", .fingerprint = graph.fingerprint()}, {}));
  subject_->let_pass(subject_->lease() + milliseconds(10));
  WorkerOptions options = worker_options(1, {});
  options.master_lost_after = subject_->lease();
  const auto coordinator = subject_->connect();
  const WorkerReport report = run_worker(graph, *coordinator, options);
  EXPECT_EQ(report.end, WorkerEnd::master_lost);
  EXPECT_EQ(exit_code(report.end), 4);
}

TEST(Roles, AreKeptApart) {  // P18
  MemoryExchange exchange;
  MemoryCoordinator behind(exchange);
  RoleGuard master(behind, Role::master), worker(behind, Role::worker);
  const auto refused = [](const auto& answer) { return !answer && answer.error().code == Errc::wrong_state; };
  EXPECT_TRUE(refused(worker.open_run({}, {})));
  EXPECT_TRUE(refused(worker.enqueue_module({}, {})));
  EXPECT_TRUE(refused(worker.wait_for_result("m", {})));
  EXPECT_TRUE(refused(worker.next_results({})));
  EXPECT_TRUE(refused(worker.get_registered_workers({})));
  EXPECT_TRUE(refused(worker.broadcast_cancellation("x", {})));
  EXPECT_TRUE(refused(worker.close_run("x", {})));
  EXPECT_TRUE(refused(worker.publish_result({.module = "m"}, {})));
  EXPECT_TRUE(refused(master.register_worker({}, {})));
  EXPECT_TRUE(refused(master.dequeue_module({}, {})));
  EXPECT_TRUE(refused(master.send_heartbeat({}, {})));
  EXPECT_TRUE(refused(master.publish_result({.module = "m", .lease = "1"}, {})));
  EXPECT_EQ(worker.enqueue_module({}, {}).error().message,
            "enqueue_module is for the master, and this is a worker");
}

}  // namespace
}  // namespace baton::pipeline
