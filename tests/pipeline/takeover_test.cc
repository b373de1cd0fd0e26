// A master that was thought to be gone, and the one that has taken over from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "pipeline/context.h"
#include "pipeline/directory_coordinator.h"
#include "pipeline/memory_coordinator.h"
#include "pipeline/redis_coordinator.h"
#include "pipeline/reservation.h"
#include "pipeline/role_guard.h"
#include "pipeline/server_coordinator.h"
#include "tests/pipeline/company.h"
#include "tests/pipeline/redis_server.h"
#include "tests/pipeline/subjects.h"
#include "tests/served.h"
#include "tests/temporary_directory.h"

namespace baton::pipeline {
namespace {

class AMasterThatWasSuspended : public ::testing::TestWithParam<Transport> {
 protected:
  const std::unique_ptr<contract::Subject> subject_ = GetParam().make();
};
INSTANTIATE_TEST_SUITE_P(On, AMasterThatWasSuspended, ::testing::ValuesIn(transports()),
                         [](const auto& one) { return one.param.name; });

// Its process does not run while it is about to publish its first word.
class Suspended : public RoleGuard {
 public:
  Suspended(DistributedCoordinator& behind, std::function<void()> meanwhile)
      : RoleGuard(behind, Role::master), meanwhile_(std::move(meanwhile)) {}
  Result<Accepted> publish_result(const SerializedModuleResult& result, std::stop_token stop) override {
    if (meanwhile_) std::exchange(meanwhile_, nullptr)();
    return RoleGuard::publish_result(result, stop);
  }

 private:
  std::function<void()> meanwhile_;
};

TEST_P(AMasterThatWasSuspended, BeginsNothingThatTheNextOneHasBegun) {  // P17
  std::atomic<int> begun = 0;
  Pipeline pipeline("suspended");
  pipeline.add("publish").not_idempotent().run([&](Context&) { ++begun; });
  const Graph graph = *Graph::of(pipeline.definition());
  const auto first = subject_->connect();
  Suspended suspended(*first, [&] {
    subject_->let_pass(subject_->lease() + milliseconds(10));
    const auto second = subject_->connect();
    EXPECT_EQ(run(graph, {.jobs = 1, .coordinator = second.get()}).outcome, RunOutcome::succeeded);
  });
  const RunReport report = run(graph, {.jobs = 1, .coordinator = &suspended, .worker_poll = hours(1)});
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(report.outcome, RunOutcome::coordination_lost);
  EXPECT_THAT(report.reason, ::testing::HasSubstr("another master"));
}

// Its process does not run for a while before it begins anything.
class SuspendedAtFirst : public RoleGuard {
 public:
  SuspendedAtFirst(DistributedCoordinator& behind, std::function<void()> meanwhile)
      : RoleGuard(behind, Role::master), meanwhile_(std::move(meanwhile)) {}
  Result<std::optional<CancellationSignal>> is_cancellation_requested(std::stop_token stop) override {
    auto signal = RoleGuard::is_cancellation_requested(stop);
    if (meanwhile_) std::exchange(meanwhile_, nullptr)();
    return signal;
  }

 private:
  std::function<void()> meanwhile_;
};

TEST_P(AMasterThatWasSuspended, BeginsNothingIfTheRunIsAnothersByThen) {  // P17
  std::atomic<int> begun = 0;
  Pipeline pipeline("suspended");
  auto build = pipeline.add("build").run([&](Context&) { ++begun; });
  pipeline.add("tidy", after(build)).always_run().run([&](Context&) { ++begun; });
  const Graph graph = *Graph::of(pipeline.definition());
  const auto first = subject_->connect(), second = subject_->connect();
  const RunOpening opening{
      .session = "second", .name = "suspended", .fingerprint = graph.fingerprint(), .parts = graph.parts()};
  SuspendedAtFirst suspended(*first, [&] {
    subject_->let_pass(subject_->lease() + milliseconds(10));
    const auto opened = second->open_run(opening, {});
    EXPECT_TRUE(opened) << opened.error().message;
  });
  const RunReport report = run(graph, {.jobs = 1, .coordinator = &suspended, .worker_poll = hours(1)});
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(report.outcome, RunOutcome::coordination_lost);
  EXPECT_THAT(report.reason, ::testing::HasSubstr("another master"));
}

class ARunThatWasCancelled : public ::testing::TestWithParam<Transport> {
 protected:
  // By the next master: its first was killed before it could end it.
  RunReport ended(const std::string& reason) {
    std::atomic<int> begun = 0, tidied = 0;
    Pipeline pipeline("cancelled");
    pipeline.add("handed").run([&](Context&) { ++begun; });
    auto kept = pipeline.add("kept").run([&](Context&) { ++begun; });
    pipeline.add("tidy", after(kept)).always_run().run([&](Context&) { ++tidied; });
    const Graph graph = *Graph::of(pipeline.definition());
    const auto first = subject_->connect(), second = subject_->connect();
    const RunOpening opening{
        .session = "first", .name = "cancelled", .fingerprint = graph.fingerprint(), .parts = graph.parts()};
    EXPECT_TRUE(first->open_run(opening, {}));
    EXPECT_TRUE(first->enqueue_module({.module = "handed"}, {}));
    EXPECT_TRUE(first->broadcast_cancellation(reason, {}));
    subject_->let_pass(subject_->lease() + milliseconds(10));
    const RunReport report = run(graph, {.jobs = 1, .coordinator = second.get()});
    EXPECT_EQ(report.reason, reason);
    EXPECT_EQ(module(report, "handed").status, ModuleStatus::cancelled);
    EXPECT_EQ(begun, 0);
    EXPECT_EQ(tidied, 1);
    return report;
  }

  const std::unique_ptr<contract::Subject> subject_ = GetParam().make();
};
INSTANTIATE_TEST_SUITE_P(On, ARunThatWasCancelled, ::testing::ValuesIn(transports()),
                         [](const auto& one) { return one.param.name; });

TEST_P(ARunThatWasCancelled, StaysSoUnderTheNextMaster) {  // P7 P17
  EXPECT_EQ(ended("enough").outcome, RunOutcome::cancelled);
}
TEST_P(ARunThatWasCancelled, HasFailedUnderTheNextMasterIfAModuleDid) {  // P13 P17
  EXPECT_EQ(ended("kept failed").outcome, RunOutcome::failed);
}

class AModuleThatPreferredSomebody : public ::testing::TestWithParam<Transport> {
 protected:
  AModuleThatPreferredSomebody() {
    pipeline_.timeout(minutes(1));
    pipeline_.add("likes").prefers_capability("ssd").run([](Context&) {});
  }
  // By a master that was killed, to whoever has what it prefers.
  void hand_out() {
    const Graph graph = *Graph::of(pipeline_.definition());
    ASSERT_TRUE(first_->open_run(
        {.session = "first", .name = "prefers", .fingerprint = graph.fingerprint(), .parts = graph.parts()},
        {}));
    ASSERT_TRUE(
        first_->enqueue_module({.module = "likes", .required_capabilities = with_unreserved({"ssd"})}, {}));
  }
  // By the next one, which finds a worker with these capabilities.
  void expect_to_run_at_the_next(const std::vector<std::string>& capabilities) {
    const Graph graph = *Graph::of(pipeline_.definition());
    const auto worker = subject_->connect(), next = subject_->connect();
    subject_->let_pass(subject_->lease() + milliseconds(10));
    ASSERT_TRUE(worker->register_worker({.index = 1,
                                         .session = "idle",
                                         .name = "idle",
                                         .capabilities = with_unreserved(capabilities),
                                         .fingerprint = graph.fingerprint(),
                                         .parts = graph.parts()},
                                        {}));
    const RunReport report = run(graph, {.jobs = 1, .coordinator = next.get()});
    EXPECT_EQ(report.outcome, RunOutcome::succeeded) << report.reason;
    EXPECT_EQ(module(report, "likes").worker, "master");
  }

  Pipeline pipeline_{"prefers"};
  const std::unique_ptr<contract::Subject> subject_ = GetParam().make();
  const std::unique_ptr<DistributedCoordinator> first_ = subject_->connect();
};
INSTANTIATE_TEST_SUITE_P(On, AModuleThatPreferredSomebody, ::testing::ValuesIn(transports()),
                         [](const auto& one) { return one.param.name; });

TEST_P(AModuleThatPreferredSomebody, RunsWhereTheNextMasterIsIfHeIsGone) {  // P8 P17
  hand_out();
  expect_to_run_at_the_next({});
}
TEST_P(AModuleThatPreferredSomebody, RunsWhereTheNextMasterIsIfTheFirstHadTakenItBack) {  // P8 P17
  hand_out();
  const auto taken = first_->publish_result({.module = "likes",
                                             .attempt = 0,
                                             .status = ModuleStatus::cancelled,
                                             .skipped_because = "the master took it back, to run it itself"},
                                            {});
  ASSERT_TRUE(taken && *taken == Accepted::first);
  expect_to_run_at_the_next({"ssd"});
}

// Keeps what it is told.
class Notices : public RunObserver {
 public:
  void noticed(const std::string& text) override { all += text + "\n"; }
  std::string all;
};
// However long it would take others to be lost to it.
void waits_for_the_first(DistributedCoordinator& first, DistributedCoordinator& second) {
  Pipeline pipeline("taken over");
  pipeline.add("a").run([](Context&) {});
  const Graph graph = *Graph::of(pipeline.definition());
  ASSERT_TRUE(first.open_run(
      {.session = "first", .name = "taken over", .fingerprint = graph.fingerprint(), .parts = graph.parts()},
      {}));
  Notices notices;
  const RunReport report =
      run(graph, {.jobs = 1, .observer = &notices, .coordinator = &second, .lost_after = milliseconds(1)});
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << report.reason;
  EXPECT_THAT(notices.all, ::testing::HasSubstr("waiting for up to 2 s"));
}
TEST(AMasterThatGoesOn, CountsByTheLeaseOfTheFirst) {  // P17
  const TemporaryDirectory folder;
  const auto lasting = [&](Duration lease) {
    return DirectoryCoordinatorOptions{.directory = folder.path() + "/run", .lease = lease};
  };
  DirectoryCoordinator first(lasting(seconds(2))), second(lasting(kLostAfter));
  waits_for_the_first(first, second);
  Served server(BATON_PROGRAM);
  const auto at_server = [&](Duration lease) {
    ServerCoordinatorOptions options{.run = "run", .lease = lease};
    options.client.addresses = {server.address()};
    return options;
  };
  ServerCoordinator there(at_server(seconds(2))), next(at_server(kLostAfter));
  waits_for_the_first(there, next);
}

// Workers have heard of no other.
void keeps_the_first_lease(DistributedCoordinator& first, DistributedCoordinator& second) {
  ASSERT_TRUE(first.open_run({.session = "first", .name = "leases", .fingerprint = 7}, {}));
  ASSERT_TRUE(eventually([&] {
    return second.open_run({.session = "second", .name = "leases", .fingerprint = 7}, {}).has_value();
  }));
  const auto told = first.run_opening({});
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->lease, milliseconds(50));
  EXPECT_TRUE(eventually([&] {  // and it counts by that itself
    return first.open_run({.session = "third", .name = "leases", .fingerprint = 7}, {}).has_value();
  }));
}
TEST(ARunThatIsTakenOver, KeepsTheLeaseThatItWasBegunWithInAFolder) {  // P4 P6 P17
  const TemporaryDirectory folder;
  const auto lasting = [&](Duration lease) {
    return DirectoryCoordinatorOptions{.directory = folder.path() + "/run", .lease = lease};
  };
  DirectoryCoordinator first(lasting(milliseconds(50))), second(lasting(hours(1)));
  keeps_the_first_lease(first, second);
}
TEST(ARunThatIsTakenOver, KeepsTheLeaseThatItWasBegunWithAtRedis) {  // P4 P6 P17
  RedisServer server;
  const auto lasting = [&](Duration lease) {
    return RedisCoordinatorOptions{.host = server.path(), .run = "run", .lease = lease};
  };
  RedisCoordinator first(lasting(milliseconds(50))), second(lasting(hours(1)));
  keeps_the_first_lease(first, second);
}

TEST(AMasterOfAFolder, HandsOutNothingOnceAnotherHasTakenOver) {  // P17
  const TemporaryDirectory folder;
  const DirectoryCoordinatorOptions there{.directory = folder.path() + "/run", .lease = milliseconds(1)};
  DirectoryCoordinator first(there), second(there);
  ASSERT_TRUE(first.open_run({.session = "first"}, {}));
  ASSERT_TRUE(eventually([&] { return second.open_run({.session = "second"}, {}).has_value(); }));
  const Status late = first.enqueue_module({.module = "a"}, {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::conflict);
  EXPECT_THAT(*second.enqueued_modules({}), ::testing::IsEmpty());
}

TEST(AMasterInMemory, DoesNothingOnceAnotherHasTakenOver) {  // P17
  MemoryExchange exchange({.lease = milliseconds(-1)});      // whoever is the master is taken to be gone
  MemoryCoordinator first(exchange), second(exchange);
  ASSERT_TRUE(first.open_run({.session = "first"}, {}));
  ASSERT_TRUE(second.open_run({.session = "second"}, {}));
  EXPECT_EQ(first.enqueue_module({.module = "a"}, {}).error().code, Errc::conflict);
  EXPECT_EQ(first.publish_result({.module = "b"}, {}).error().code, Errc::conflict);
  EXPECT_THAT(*second.enqueued_modules({}), ::testing::IsEmpty());
  EXPECT_THAT(*second.own_results({}), ::testing::IsEmpty());
}

}  // namespace
}  // namespace baton::pipeline
