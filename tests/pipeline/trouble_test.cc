// Runs in trouble: a coordinator that is lost, a second master, modules that do not listen or say too much.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "base/utf8.h"
#include "pipeline/context.h"
#include "pipeline/folder_blobs.h"
#include "pipeline/memory_coordinator.h"
#include "tests/pipeline/company.h"
#include "tests/pipeline/subjects.h"
#include "tests/served.h"
#include "tests/temporary_directory.h"

namespace baton::pipeline {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Lines : public RunObserver {
 public:
  void said(const LogLine& line) override { all.push_back(line.text); }
  std::vector<std::string> all;
};

class ARunInTrouble : public ::testing::TestWithParam<Transport> {
 protected:
  const std::unique_ptr<contract::Subject> subject_ = GetParam().make();
};
INSTANTIATE_TEST_SUITE_P(On, ARunInTrouble, ::testing::ValuesIn(transports()),
                         [](const auto& one) { return one.param.name; });

TEST_P(ARunInTrouble, CarriesWhateverCommandsPrint) {  // P3 P16
  Pipeline pipeline("bytes");
  pipeline.on_failure(OnFailure::finish);
  pipeline.add("prints").run([](Context& context) { context.shell("printf 'a\\377b\\n'"); });
  pipeline.add("fails").run([](Context& context) { context.shell("printf '\\377\\n' >&2; exit 3"); });
  pipeline.add("returns").run([](Context&) { return std::string("\xFF"); });
  Lines lines;
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {}));
  const RunReport report = company.run({.is_only_master = true, .observer = &lines});
  EXPECT_EQ(report.outcome, RunOutcome::failed);
  EXPECT_EQ(module(report, "prints").status, ModuleStatus::succeeded);
  // In memory it arrives as it is.
  EXPECT_THAT(lines.all, Contains(AnyOf("a\uFFFDb", "a\377b")));
  EXPECT_THAT(module(report, "fails").failure.detail, AnyOf("\uFFFD\n", "\377\n"));
  EXPECT_EQ(module(report, "returns").failure.kind, FailureKind::encode)
      << "what a module returns is not changed on its way";
}

TEST_P(ARunInTrouble, HearsOfAFailureInVeryManyWords) {  // P4 P7
  std::atomic<int> begun = 0;
  Pipeline pipeline("words");
  pipeline.add("fails").run([&](Context&) {
    ++begun;
    std::string words = "no room: ";
    for (int i = 0; i < 100'000; ++i) words += "é";
    throw std::runtime_error(words + " on the disk");
  });
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {}));
  const RunReport report = company.run({.is_only_master = true});
  EXPECT_EQ(report.outcome, RunOutcome::failed);
  const ModuleFailure& failed = module(report, "fails").failure;
  EXPECT_EQ(failed.kind, FailureKind::exception) << failed.message.substr(0, 200);
  EXPECT_THAT(failed.message, AllOf(StartsWith("no room: ééé"), HasSubstr("é [… "),
                                    HasSubstr(" bytes left out …] é"), EndsWith("ééé on the disk")));
  EXPECT_TRUE(is_utf8(failed.message));
  EXPECT_EQ(begun, 1);
}

// A store that has to do with others until a module has ended.
class Busy : public FolderBlobs, public RunObserver {
 public:
  Busy(std::string folder, std::string until) : FolderBlobs(std::move(folder)), until_(std::move(until)) {}
  Status pour(const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) override {
    is_asked = true;
    EXPECT_TRUE(eventually([this] { return has_ended_.load(); })) << until_ << " was not heard of";
    return FolderBlobs::pour(blob, into, stop);
  }
  void changed(const ModuleReport& report, const std::shared_ptr<const void>&) override {
    if (report.id == until_ && is_final(report.status)) has_ended_ = true;
  }
  void said(const LogLine&) override { ++lines; }

  std::atomic<bool> is_asked = false;
  int lines = 0;

 private:
  const std::string until_;
  std::atomic<bool> has_ended_ = false;
};

TEST_P(ARunInTrouble, HearsOfOthersWhileWhatOneHasSaidDoesNotCome) {  // P7 P15 P16
  const TemporaryDirectory folder;
  FolderBlobs theirs(folder.path());
  Busy ours(folder.path(), "brief");
  Pipeline pipeline("talkative");
  pipeline.add("talks").run([](Context& context) {
    for (int i = 0; i < 200; ++i) context.log(std::string(99, 'x'));
  });
  pipeline.add("brief").run([&](Context&) { EXPECT_TRUE(eventually([&] { return ours.is_asked.load(); })); });
  WorkerOptions worker = worker_options(1, {}, 2);
  worker.site.blobs = &theirs;
  RunOptions options{.is_only_master = true, .observer = &ours};
  options.site.blobs = &ours;
  Company company(*subject_, pipeline);
  company.hire(std::move(worker));
  EXPECT_EQ(company.run(std::move(options)).outcome, RunOutcome::succeeded);
  EXPECT_EQ(ours.lines, 200);
}

// A worker that registers, and leaves as soon as something has been handed out.
class LeavingWorker : public RunObserver {
 public:
  LeavingWorker(contract::Subject& subject, const Pipeline& pipeline)
      : coordinator_(subject.connect()),
        self_{.index = 1,
              .session = "leaves",
              .name = "leaves",
              .capabilities = {"gpu"},
              .fingerprint = Graph::of(pipeline.definition())->fingerprint()} {
    EXPECT_TRUE(coordinator_->register_worker(self_, {}));
  }
  void changed(const ModuleReport& report, const std::shared_ptr<const void>&) override {
    if (report.status != ModuleStatus::queued) return;
    EXPECT_TRUE(coordinator_->send_heartbeat({.index = 1, .session = self_.session, .leaving = true}, {}));
  }

 private:
  const std::unique_ptr<DistributedCoordinator> coordinator_;
  const WorkerRegistration self_;
};

TEST_P(ARunInTrouble, GivesUpWhatWasHandedOutToWorkersThatAreGone) {  // P8 P13
  Pipeline pipeline("orphan");
  pipeline.add("image").needs_capability("gpu").run([](Context&) {});
  LeavingWorker worker(*subject_, pipeline);
  Company company(*subject_, pipeline);
  const RunReport report =
      company.run({.is_only_master = true, .observer = &worker, .capability_timeout = milliseconds(1)});
  EXPECT_EQ(module(report, "image").failure.kind, FailureKind::capability);
  EXPECT_THAT(module(report, "image").failure.message, HasSubstr("nobody is left who has gpu"));
}

TEST_P(ARunInTrouble, DoesNotQueueForEverForWorkersThatAreGone) {  // P8 P13
  Pipeline pipeline("orphan");
  pipeline.add("image").needs_capability("gpu").queue_timeout(milliseconds(50)).run([](Context&) {});
  LeavingWorker worker(*subject_, pipeline);
  Company company(*subject_, pipeline);
  const RunReport report = company.run({.is_only_master = true, .observer = &worker});
  EXPECT_EQ(module(report, "image").status, ModuleStatus::timed_out);
  EXPECT_THAT(module(report, "image").failure.message,
              "it has waited for longer than 50 ms: nobody is left who has gpu");
}

// A worker that takes one module, is seen to be at it, and falls silent.
class SilentWorker : public RunObserver {
 public:
  SilentWorker(contract::Subject& subject, const Pipeline& pipeline)
      : subject_(subject), fingerprint_(Graph::of(pipeline.definition())->fingerprint()) {}
  void changed(const ModuleReport& report, const std::shared_ptr<const void>&) override {
    if (report.status != ModuleStatus::running) return;
    was_seen_.test_and_set();
    was_seen_.notify_all();
  }

 private:
  void work() {
    const auto coordinator = subject_.connect();
    const WorkerRegistration self{.index = 3,
                                  .session = "silent",
                                  .name = "silent",
                                  .capabilities = {"gpu"},
                                  .fingerprint = fingerprint_};
    ASSERT_TRUE(coordinator->register_worker(self, {}));
    for (bool has_it = false; !has_it;) {
      const auto dequeued = coordinator->dequeue_module(self, {});
      ASSERT_TRUE(dequeued) << dequeued.error().message;
      const auto* assigned = std::get_if<Assigned>(&*dequeued);
      if (!assigned) continue;
      has_it = true;
      ASSERT_TRUE(coordinator->send_heartbeat({.index = 3,
                                               .session = self.session,
                                               .leases = {assigned->lease},
                                               .current_modules = {assigned->assignment.module}},
                                              {}));
    }
    was_seen_.wait(false);
    subject_.let_pass(subject_.lease() + milliseconds(10));
  }

  contract::Subject& subject_;
  const std::uint64_t fingerprint_;
  std::atomic_flag was_seen_;
  std::jthread thread_{[this] { work(); }};
};
TEST_P(ARunInTrouble, NamesTheWorkerThatAModuleWasLostWith) {  // P4 P6
  Pipeline pipeline("silent");
  pipeline.add("image").needs_capability("gpu").not_idempotent().run([](Context&) {});
  SilentWorker worker(*subject_, pipeline);
  Company company(*subject_, pipeline);
  const RunReport report = company.run({.is_only_master = true, .observer = &worker});
  EXPECT_EQ(module(report, "image").failure.kind, FailureKind::worker_lost);
  EXPECT_THAT(module(report, "image").failure.message, AllOf(HasSubstr("worker 3"), HasSubstr("attempt 1")));
}

TEST_P(ARunInTrouble, RunsNothingAgainThatItsMasterHadFinished) {  // P17
  Pipeline pipeline("again");
  pipeline.on_failure(OnFailure::finish);
  std::atomic<int> begun = 0;
  auto good = pipeline.add("good").run([&](Context&) { return ++begun; });
  pipeline.add("bad").run([&](Context&) { ++begun; });
  std::atomic<int> seen = 0;
  pipeline.add("next", good).run([&](Context&, int value) { seen = value; });
  const auto killed = subject_->connect();
  const Graph graph = *Graph::of(pipeline.definition());
  ASSERT_TRUE(killed->open_run(
      {.session = "killed", .name = "again", .fingerprint = graph.fingerprint(), .parts = graph.parts()},
      {}));
  ASSERT_TRUE(killed->publish_result({.module = "good", .value = "7"}, {}));
  SerializedModuleResult bad{.module = "bad", .status = ModuleStatus::failed};
  bad.failure = ModuleFailure{.kind = FailureKind::exit_code, .message = "it went wrong"};
  ASSERT_TRUE(killed->publish_result(bad, {}));
  subject_->let_pass(subject_->lease() + milliseconds(10));
  Company company(*subject_, pipeline);
  const RunReport report = company.run({.jobs = 1});
  EXPECT_EQ(module(report, "good").status, ModuleStatus::restored);
  EXPECT_EQ(module(report, "bad").status, ModuleStatus::failed);
  EXPECT_EQ(module(report, "bad").failure, *bad.failure);
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(seen, 7);
}

// One whose process is killed when the test says so: nobody hears of what it does after that.
class Killed : public DistributedCoordinator {
 public:
  Killed(std::unique_ptr<DistributedCoordinator> behind, const std::atomic<bool>& is_dead)
      : behind_(std::move(behind)), is_dead_(is_dead) {}

  Status open_run(const RunOpening& opening, std::stop_token stop) override {
    return behind_->open_run(opening, stop);
  }
  Result<std::vector<std::string>> enqueued_modules(std::stop_token stop) override {
    return behind_->enqueued_modules(stop);
  }
  Result<std::vector<SerializedModuleResult>> own_results(std::stop_token stop) override {
    return behind_->own_results(stop);
  }
  Status enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) override {
    return is_dead_ ? dead() : behind_->enqueue_module(assignment, stop);
  }
  Result<SerializedModuleResult> wait_for_result(const std::string& module, std::stop_token stop) override {
    return behind_->wait_for_result(module, stop);
  }
  Result<std::vector<RegisteredWorker>> get_registered_workers(std::stop_token stop) override {
    if (is_dead_) return dead();
    return behind_->get_registered_workers(stop);
  }
  Status broadcast_cancellation(const std::string& reason, std::stop_token stop) override {
    return is_dead_ ? dead() : behind_->broadcast_cancellation(reason, stop);
  }
  Status close_run(const std::string& reason, std::stop_token stop) override {
    return is_dead_ ? dead() : behind_->close_run(reason, stop);
  }
  Status register_worker(const WorkerRegistration&, std::stop_token) override { return dead(); }
  Result<Dequeued> dequeue_module(const WorkerRegistration&, std::stop_token) override { return dead(); }
  Result<Accepted> publish_result(const SerializedModuleResult& result, std::stop_token stop) override {
    if (is_dead_) return dead();
    return behind_->publish_result(result, stop);
  }
  Result<HeartbeatReply> send_heartbeat(const WorkerHeartbeat&, std::stop_token) override { return dead(); }
  Result<std::optional<CancellationSignal>> is_cancellation_requested(std::stop_token stop) override {
    if (is_dead_) return dead();
    return behind_->is_cancellation_requested(stop);
  }

 private:
  static std::unexpected<Error> dead() { return failure(Errc::unavailable, "killed"); }

  const std::unique_ptr<DistributedCoordinator> behind_;
  const std::atomic<bool>& is_dead_;
};
TEST_P(ARunInTrouble, BeginsNothingTwiceThatItsMasterHadBegun) {  // P17
  Pipeline pipeline("again");
  pipeline.on_failure(OnFailure::finish);
  std::atomic<bool> is_dead = false;
  std::atomic<int> published = 0, built = 0, skipped = 0;
  pipeline.add("publish").not_idempotent().run([&](Context& context) {
    if (++published > 1) return;
    is_dead = true;
    while (!context.stop().stop_requested()) std::this_thread::yield();
  });
  pipeline.add("build").run([&](Context&) { ++built; });
  pipeline.add("perhaps").not_idempotent().run([&](Context& context) {
    if (++skipped == 1) context.skip("not today");
  });
  const Graph graph = *Graph::of(pipeline.definition());
  Killed killed(subject_->connect(), is_dead);
  EXPECT_EQ(run(graph, {.jobs = 1, .coordinator = &killed, .worker_poll = milliseconds(1)}).outcome,
            RunOutcome::coordination_lost);
  ASSERT_EQ(published, 1);
  subject_->let_pass(subject_->lease() + milliseconds(10));
  is_dead = false;
  Company company(*subject_, pipeline);
  const RunReport report = company.run({.jobs = 1});
  EXPECT_EQ(published, 1) << "it was begun twice";
  EXPECT_EQ(module(report, "publish").failure.kind, FailureKind::worker_lost);
  EXPECT_THAT(module(report, "publish").failure.message, HasSubstr("it may not be begun twice"));
  EXPECT_EQ(module(report, "build").status, ModuleStatus::succeeded);
  EXPECT_EQ(built, 1);
}

TEST(ARunThatStops, TellsOfTriesThatWereNotMadeAnyMore) {  // P13
  Pipeline pipeline("cut short");
  std::atomic_flag has_failed;  // as a try, and not because it was stopped
  const auto is_worth_it = [&](const ModuleFailure&) {
    has_failed.test_and_set();
    has_failed.notify_all();
    return true;
  };
  pipeline.add("flaky").retry(3, hours(1), is_worth_it).run([](Context&) {
    throw std::runtime_error("not yet");
  });
  pipeline.add("fails").run([&](Context&) {
    has_failed.wait(false);
    throw std::runtime_error("no");
  });
  const Graph graph = *Graph::of(pipeline.definition());
  const RunReport report = run(graph, {.jobs = 2});
  EXPECT_THAT(module(report, "flaky").failure.message, "not yet; the run was stopped before try 2 of 4");
}

// One whose coordinator goes away when the test says so.
class Lossy : public MemoryCoordinator {
 public:
  Lossy(MemoryExchange& exchange, const std::atomic<bool>& is_gone)
      : MemoryCoordinator(exchange), is_gone_(is_gone) {}
  Result<std::vector<RegisteredWorker>> get_registered_workers(std::stop_token stop) override {
    if (is_gone_) return failure(Errc::unavailable, "nobody answers");
    return MemoryCoordinator::get_registered_workers(stop);
  }

 private:
  const std::atomic<bool>& is_gone_;
};
TEST(ARunWithoutItsCoordinator, EndsAlthoughSomethingAlwaysRuns) {  // P7 P17
  Pipeline pipeline("lost");
  std::atomic<bool> is_gone = false, tidied = false;
  auto here = pipeline.add("here").pin_to_master().run([&](Context&) { is_gone = true; });
  auto there = pipeline.add("there", after(here)).run([](Context&) {});
  pipeline.add("cleanup", after(there)).always_run().run([](Context&) {});
  pipeline.add("tidy", after(there)).always_run().pin_to_master().run([&](Context&) { tidied = true; });
  MemoryExchange exchange;
  Lossy coordinator(exchange, is_gone);
  const Graph graph = *Graph::of(pipeline.definition());
  const RunReport report =
      run(graph, {.is_only_master = true, .coordinator = &coordinator, .worker_poll = milliseconds(1)});
  EXPECT_EQ(report.outcome, RunOutcome::coordination_lost);
  EXPECT_EQ(module(report, "cleanup").status, ModuleStatus::cancelled);
  EXPECT_TRUE(tidied) << "what can run here does";
}

// One that is gone as soon as the run is to be stopped. What modules came to arrives damaged until then.
class GoneAtTheStop : public MemoryCoordinator {
 public:
  using MemoryCoordinator::MemoryCoordinator;
  Result<std::vector<SerializedModuleResult>> next_results(std::stop_token stop) override {
    auto results = MemoryCoordinator::next_results(stop);
    if (results)
      std::ranges::for_each(*results, [](SerializedModuleResult& one) { one.value = "no number"; });
    return results;
  }
  Status broadcast_cancellation(const std::string&, std::stop_token) override {
    is_gone_ = true;
    return failure(Errc::unavailable, "nobody answers");
  }
  Status enqueue_modules(const std::vector<ModuleAssignment>& all, std::stop_token stop) override {
    if (is_gone_) return failure(Errc::unavailable, "nobody answers");
    return MemoryCoordinator::enqueue_modules(all, stop);
  }

 private:
  bool is_gone_ = false;  // by the thread that decides
};
TEST(ARunWithoutItsCoordinator, EndsIfThatIsNoticedWhileModulesAreHandedOut) {  // P7 P17
  Pipeline pipeline("lost");
  auto there = pipeline.add("there").run([](Context&) { return 1; });
  pipeline.add("here", there).pin_to_master().run([](Context&, int) {});
  pipeline.add("first", after(there)).always_run().run([](Context&) {});
  pipeline.add("second", after(there)).always_run().run([](Context&) {});
  MemoryExchange exchange;
  GoneAtTheStop coordinator(exchange);
  const Graph graph = *Graph::of(pipeline.definition());
  std::stop_source over;
  std::jthread worker([&] {
    MemoryCoordinator own(exchange);
    run_worker(graph, own, worker_options(1, {}), over.get_token());
  });
  const RunReport report =
      run(graph, {.is_only_master = true, .coordinator = &coordinator, .worker_poll = milliseconds(1)});
  over.request_stop();
  EXPECT_EQ(report.outcome, RunOutcome::coordination_lost);
  EXPECT_EQ(module(report, "here").failure.kind, FailureKind::decode);
  EXPECT_EQ(module(report, "first").status, ModuleStatus::cancelled);
  EXPECT_EQ(module(report, "second").status, ModuleStatus::cancelled);
}

// One that says of all modules that they were enqueued before, as something else.
class Contradictory : public MemoryCoordinator {
 public:
  using MemoryCoordinator::MemoryCoordinator;
  Status enqueue_module(const ModuleAssignment&, std::stop_token) override {
    return failure(Errc::unavailable, "nobody answers");
  }
  Status enqueue_modules(const std::vector<ModuleAssignment>&, std::stop_token) override {
    return failure(Errc::conflict, "it was enqueued before, as something else");
  }
};
TEST(ARunWhoseModulesAreNotTaken, EndsAndSaysWhy) {  // P1 P17
  Pipeline pipeline("refused");
  pipeline.add("there").needs_capability("gpu").run([](Context&) {});
  MemoryExchange exchange;
  MemoryCoordinator worker(exchange);
  Contradictory coordinator(exchange);
  const Graph graph = *Graph::of(pipeline.definition());
  ASSERT_TRUE(worker.register_worker(
      {.index = 1, .session = "s", .name = "w", .capabilities = {"gpu"}, .fingerprint = graph.fingerprint()},
      {}));
  const RunReport report = run(graph, {.is_only_master = true, .coordinator = &coordinator});
  EXPECT_EQ(report.outcome, RunOutcome::coordination_lost);
  EXPECT_THAT(module(report, "there").failure.message, HasSubstr("enqueued before"));
}

TEST(ASecondMaster, DoesNotTidyUpForTheFirst) {  // P5 P7
  Pipeline pipeline("twice");
  std::atomic<bool> tidied = false;
  pipeline.add("tidy").always_run().run([&](Context&) { tidied = true; });
  MemoryExchange exchange({.lease = milliseconds(1), .now = [] { return Instant{1}; }});  // no time passes
  MemoryCoordinator first(exchange), second(exchange);
  ASSERT_TRUE(first.open_run({.session = "first"}, {}));
  const Graph graph = *Graph::of(pipeline.definition());
  const RunReport report = run(graph, {.coordinator = &second, .lost_after = milliseconds(1)});
  EXPECT_EQ(report.outcome, RunOutcome::refused);
  EXPECT_THAT(report.reason, HasSubstr("a master that is still there"));
  EXPECT_EQ(module(report, "tidy").status, ModuleStatus::cancelled);
  EXPECT_FALSE(tidied);
}

// Counts how often the master has looked at the clock.
class Ticks : public RunObserver {
 public:
  void time_passed() override {
    ++count;
    count.notify_all();
  }
  bool wants_time() const override { return true; }
  void let_pass(int more) {
    for (int now = count, until = now + more; now < until; now = count) count.wait(now);
  }
  std::atomic<int> count = 0;
};
TEST(WhatAlwaysRuns, HasAllTheTimeItWantsOnAWorker) {  // P7
  Pipeline pipeline("slow to tidy");
  Ticks ticks;
  auto bad = pipeline.add("bad").run([](Context&) { throw std::runtime_error("no"); });
  auto first = pipeline.add("first", after(bad)).always_run().run([&](Context&) { ticks.let_pass(5); });
  pipeline.add("second", after(first)).always_run().run([&](Context&) { ticks.let_pass(5); });
  const auto subject = transports().front().make();
  Company company(*subject, pipeline);
  company.hire(worker_options(1, {}));
  const RunReport report =
      company.run({.is_only_master = true, .observer = &ticks, .lost_after = milliseconds(1)});
  EXPECT_EQ(module(report, "first").status, ModuleStatus::succeeded);
  EXPECT_EQ(module(report, "second").status, ModuleStatus::succeeded);
}

TEST(ARunOfModulesThatNeverFallSilent, StillHasATimeout) {  // P13
  Pipeline pipeline("talks");
  pipeline.timeout(milliseconds(50));
  pipeline.add("talks").run([](Context& context) {
    while (!context.stop().stop_requested()) context.log("and another thing");
  });
  const Graph graph = *Graph::of(pipeline.definition());
  EXPECT_EQ(run(graph, {.jobs = 1}).outcome, RunOutcome::cancelled);
}

}  // namespace
}  // namespace baton::pipeline
