// The master of a run at Redis: it acts only while the run is its own, and Redis still knows what it has told
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <latch>
#include <map>

#include "pipeline/context.h"
#include "pipeline/redis_coordinator.h"
#include "pipeline/redis_lines.h"
#include "tests/pipeline/company.h"
#include "tests/pipeline/redis_server.h"

namespace baton::pipeline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

RunOpening opening(const std::string& session) {
  return {.session = session, .name = "masters", .fingerprint = 7};
}

// Whoever is the master is taken to be gone as soon as another comes.
RedisCoordinatorOptions hasty(const RedisServer& server) {
  return {.host = server.path(), .run = "run", .lease = milliseconds(-1)};
}

TEST(AMasterAtRedis, DoesNothingOnceAnotherHasTakenOver) {  // P17
  RedisServer server;
  RedisCoordinator first(hasty(server)), second(hasty(server));
  ASSERT_TRUE(first.open_run(opening("first"), {}));
  ASSERT_TRUE(second.open_run(opening("second"), {}));
  const auto error_of = [](const auto& answer) { return answer ? Error{} : answer.error(); };
  const std::map<std::string, std::function<Error()>> deeds = {
      {"enqueued_modules", [&] { return error_of(first.enqueued_modules({})); }},
      {"own_results", [&] { return error_of(first.own_results({})); }},
      {"enqueue_module", [&] { return error_of(first.enqueue_module({.module = "m"}, {})); }},
      {"wait_for_result", [&] { return error_of(first.wait_for_result("m", {})); }},
      {"next_results", [&] { return error_of(first.next_results({})); }},
      {"get_registered_workers", [&] { return error_of(first.get_registered_workers({})); }},
      {"publish_result", [&] { return error_of(first.publish_result({.module = "own"}, {})); }},
      {"broadcast_cancellation", [&] { return error_of(first.broadcast_cancellation("no", {})); }},
      {"close_run", [&] { return error_of(first.close_run("over", {})); }},
  };
  for (const auto& [name, deed] : deeds) {
    const Error refused = deed();
    EXPECT_EQ(refused.code, Errc::conflict) << name;
    EXPECT_THAT(refused.message, HasSubstr("another master has taken over run run")) << name;
  }
  EXPECT_THAT(*second.enqueued_modules({}), IsEmpty());
  EXPECT_THAT(*second.own_results({}), IsEmpty());
  EXPECT_FALSE(*second.is_cancellation_requested({}));
  EXPECT_TRUE(second.open_run(opening("second"), {})) << "it was closed by the one before";
}

TEST(AMasterAtRedis, DoesNotSayThatAllWentWellInARunThatIsAnothersByThen) {  // P17
  RedisServer server;
  RedisCoordinator first(hasty(server)), second(hasty(server));
  Pipeline pipeline("masters");
  const Graph* whole = nullptr;
  pipeline.add("last").run([&](Context&) {
    EXPECT_TRUE(second.open_run({.session = "second",
                                 .name = "masters",
                                 .fingerprint = whole->fingerprint(),
                                 .parts = whole->parts()},
                                {}));
  });
  const Graph graph = *Graph::of(pipeline.definition());
  whole = &graph;
  const RunReport report = run(graph, {.jobs = 1, .coordinator = &first, .worker_poll = hours(1)});
  EXPECT_EQ(report.outcome, RunOutcome::coordination_lost);
  EXPECT_THAT(report.reason, HasSubstr("another master has taken over"));
}

class AtARedis : public contract::Subject {
 public:
  explicit AtARedis(const RedisServer& server) : server_(server) {}
  std::unique_ptr<DistributedCoordinator> connect() override {
    return std::make_unique<RedisCoordinator>(RedisCoordinatorOptions{.host = server_.path(), .run = "run"});
  }
  Duration lease() const override { return kLostAfter; }
  void let_pass(Duration) override {}

 private:
  const RedisServer& server_;
};

// A run whose modules may have Redis killed, which then comes back as it was when it was last kept.
class ARunAtRedis : public ::testing::Test {
 protected:
  void keep() { ASSERT_TRUE(RedisLines({.host = server_.path()}).say({"SAVE"}, {})); }
  void kill() {
    is_to_be_killed_.count_down();
    is_back_.wait();
  }
  RunReport run(const Pipeline& pipeline) {
    AtARedis subject(server_);
    Company company(subject, pipeline);
    company.hire(worker_options(1, {}));
    auto report = std::async(std::launch::async, [&] { return company.run(); });
    is_to_be_killed_.wait();
    server_.restart();  // by this thread: it ends with the one that started it
    is_back_.count_down();
    return report.get();
  }

 private:
  RedisServer server_{{"--appendonly", "no"}};
  std::latch is_to_be_killed_{1}, is_back_{1};
};

TEST_F(ARunAtRedis, EndsWhenRedisHasForgottenSomeOfIt) {  // P17
  Pipeline pipeline("forgotten");
  pipeline.timeout(seconds(20));
  const auto first = pipeline.add("first").run([&](Context&) { keep(); });
  pipeline.add("second", after(first)).run([&](Context&) { kill(); });
  const RunReport report = run(pipeline);
  EXPECT_EQ(report.outcome, RunOutcome::coordination_lost) << report.reason;
  EXPECT_THAT(report.reason, HasSubstr("appendonly yes"));
}

TEST_F(ARunAtRedis, GoesOnWhenRedisHasForgottenNothingThatTheMasterHeard) {  // P4
  Pipeline pipeline("remembered");
  pipeline.timeout(seconds(20));
  const auto first = pipeline.add("first").run([&](Context&) {
    keep();
    kill();
  });
  pipeline.add("second", after(first)).run([](Context&) {});
  const RunReport report = run(pipeline);
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << report.reason;
}

}  // namespace
}  // namespace baton::pipeline
