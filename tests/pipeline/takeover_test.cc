// A master that was thought to be gone, and the one that has taken over from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "pipeline/context.h"
#include "pipeline/directory_coordinator.h"
#include "pipeline/role_guard.h"
#include "tests/pipeline/company.h"
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

}  // namespace
}  // namespace baton::pipeline
