// Who runs what, where workers differ: the same on every coordinator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "pipeline/context.h"
#include "tests/pipeline/company.h"
#include "tests/pipeline/subjects.h"

namespace baton::pipeline {
namespace {

using ::testing::SizeIs;

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
