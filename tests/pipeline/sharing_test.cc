// What several workers of one run share: locks, and places that are waited for.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "pipeline/context.h"
#include "tests/pipeline/company.h"
#include "tests/pipeline/subjects.h"

namespace baton::pipeline {
namespace {

class WorkersOfOneRun : public ::testing::TestWithParam<Transport> {
 protected:
  const std::unique_ptr<contract::Subject> subject_ = GetParam().make();
};
INSTANTIATE_TEST_SUITE_P(On, WorkersOfOneRun, ::testing::ValuesIn(transports()),
                         [](const auto& one) { return one.param.name; });

TEST_P(WorkersOfOneRun, HoldALockOneAtATime) {  // P13
  Pipeline pipeline("locks");
  std::atomic<int> inside = 0, most = 0;
  for (int i = 0; i < 8; ++i) {
    pipeline.add("m" + std::to_string(i)).exclusive("db").run([&](Context& context) {
      most = std::max(most.load(), ++inside);
      context.exec({"true"});
      --inside;
    });
  }
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {}, 2));
  company.hire(worker_options(2, {}, 2));
  EXPECT_EQ(company.run().outcome, RunOutcome::succeeded);
  EXPECT_EQ(most, 1);
}

// The first has the only place until the second has waited for longer than it may run.
TEST_P(WorkersOfOneRun, AreNotLateForWhatOnlyWaited) {  // P13
  class Gate : public RunObserver {
   public:
    void changed(const ModuleReport& report, const std::shared_ptr<const void>&) override {
      is_queued |= report.id == "second" && report.status == ModuleStatus::queued;
    }
    void time_passed() override {
      if (is_queued && ++ticks == 3) opened.test_and_set(), opened.notify_all();
    }
    bool wants_time() const override { return true; }
    bool is_queued = false;
    int ticks = 0;
    std::atomic_flag opened;
  } gate;
  Pipeline pipeline("queue");
  pipeline.add("first").priority(Priority::high).run([&](Context&) { gate.opened.wait(false); });
  pipeline.add("second").timeout(milliseconds(150)).run([](Context&) {});
  Company company(*subject_, pipeline);
  company.hire(worker_options(1, {}));
  const RunReport report = company.run({.is_only_master = true, .observer = &gate});
  EXPECT_EQ(module(report, "second").status, ModuleStatus::succeeded);
}

}  // namespace
}  // namespace baton::pipeline
