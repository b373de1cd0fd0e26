// Coordinators between whom and their workers something gets lost or was damaged: a question is as good as
// never asked, or answered as it was the first time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <thread>
#include <utility>

#include "pipeline/context.h"
#include "pipeline/pipeline.h"
#include "pipeline/redis_coordinator.h"
#include "pipeline/role_guard.h"
#include "pipeline/server_coordinator.h"
#include "pipeline/worker.h"
#include "tests/pipeline/redis_server.h"
#include "tests/proxy.h"
#include "tests/served.h"

namespace baton::pipeline {
namespace {

using ::testing::HasSubstr;

const WorkerRegistration kWorker{.index = 1, .session = "session", .name = "worker", .fingerprint = 7};

RunOpening opening() { return {.session = "master", .name = "lost answers", .fingerprint = 7}; }
ServerCoordinatorOptions at(const std::string& address) {
  ServerCoordinatorOptions options{.run = "run"};
  options.client.addresses = {address};
  return options;
}

TEST(AQuestionForWork, IsAnsweredTheSameIfTheAnswerWasLost) {  // P3 P4
  RedisServer server;
  Proxy proxy(server.port());
  RedisCoordinator master({.host = server.path(), .run = "run"});
  RedisCoordinator worker({.port = proxy.port(), .run = "run"});
  ASSERT_TRUE(master.open_run(opening(), {}));
  ASSERT_TRUE(worker.register_worker(kWorker, {}));
  for (const char* module : {"first", "second"}) ASSERT_TRUE(master.enqueue_module({.module = module}, {}));
  proxy.set({.cut_replies_after = 0});
  for (const char* module : {"first", "second"}) {
    const auto dequeued = worker.dequeue_module(kWorker, {});
    ASSERT_TRUE(dequeued) << dequeued.error().message;
    ASSERT_TRUE(std::holds_alternative<Assigned>(*dequeued));
    EXPECT_EQ(std::get<Assigned>(*dequeued).assignment.module, module);
  }
  EXPECT_EQ(proxy.cuts(), 1U);
}

TEST(ARunThatEnds, DoesNotWaitForEachTaskAtAServerThatIsGone) {  // P5 P17
  Served server(BATON_PROGRAM);
  Proxy proxy(server.port());
  ServerCoordinatorOptions behind_proxy = at(proxy.address());
  behind_proxy.client.deadline = milliseconds(500);
  ServerCoordinator master(behind_proxy), other(at(server.address()));
  ASSERT_TRUE(master.open_run(opening(), {}));
  std::vector<ModuleAssignment> left;
  for (int i = 0; i < 200; ++i) left.push_back({.module = "m" + std::to_string(i)});
  ASSERT_TRUE(other.enqueue_modules(left, {}));
  // It is gone when some of them are cancelled.
  proxy.set({.refuses = true, .cut_requests_after = 5000});
  const auto began = std::chrono::steady_clock::now();
  const Status closed = master.close_run("succeeded", {});
  EXPECT_FALSE(closed);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
  EXPECT_EQ(proxy.cuts(), 1U) << "it had ended before";
}

// Something happens before a worker asks for work for the second time.
class Interrupted : public RoleGuard {
 public:
  Interrupted(DistributedCoordinator& behind, std::function<void()> happens)
      : RoleGuard(behind, Role::worker), happens_(std::move(happens)) {}
  Result<Dequeued> dequeue_module(const WorkerRegistration& worker, std::stop_token stop) override {
    if (++questions_ == 2) happens_();
    return RoleGuard::dequeue_module(worker, stop);
  }

 private:
  const std::function<void()> happens_;
  int questions_ = 0;
};
TEST(AnAssignment, IsNotBegunIfItIsHeardOfAfterItsLease) {  // P4 P6
  std::atomic<int> begun = 0;
  std::latch has_gone_on(1);
  Pipeline pipeline("late");
  pipeline.add("late").not_idempotent().run([&](Context&) { ++begun; });
  pipeline.add("next").run([&](Context&) { has_gone_on.count_down(); });
  const Graph graph = *Graph::of(pipeline.definition());
  Served server(BATON_PROGRAM);
  Proxy proxy(server.port());
  ServerCoordinatorOptions options = at(server.address()), behind_proxy = at(proxy.address());
  options.lease = behind_proxy.lease = milliseconds(500);
  ServerCoordinator master(options), behind(behind_proxy);
  ASSERT_TRUE(master.open_run({.session = "m", .name = "late", .fingerprint = graph.fingerprint()}, {}));
  std::latch is_enqueued(1);
  std::stop_source over;
  std::jthread worker([&] {
    Interrupted coordinator(behind, [&] {
      EXPECT_TRUE(master.enqueue_module({.module = "late", .attempts_max = 1}, {}));
      proxy.set({.holds_replies = true});
      is_enqueued.count_down();
    });
    WorkerOptions own{.index = 1, .heartbeat = milliseconds(150), .lease = options.lease};
    own.site.name = "worker-1";
    run_worker(graph, coordinator, own, over.get_token());
  });
  is_enqueued.wait();
  const auto lost = master.wait_for_result("late", {});
  ASSERT_TRUE(lost) << lost.error().message;
  EXPECT_EQ(lost->failure->kind, FailureKind::worker_lost);
  proxy.set({});
  ASSERT_TRUE(master.enqueue_module({.module = "next"}, {}));
  has_gone_on.wait();
  EXPECT_EQ(begun, 0) << "it was begun after it had been reported as lost";
  over.request_stop();
}

class AWorkerThatIsCutOff : public ::testing::TestWithParam<ProxyFaults> {};
INSTANTIATE_TEST_SUITE_P(Behind, AWorkerThatIsCutOff,
                         ::testing::Values(ProxyFaults{.holds_requests = true},
                                           ProxyFaults{.holds_replies = true}),
                         [](const auto& given) {
                           return given.param.holds_requests ? "ARequest" : "AReply";
                         });

// After each of the requests that the first heartbeat is made of, or of their replies.
TEST_P(AWorkerThatIsCutOff, IsStillItselfWhenItIsBack) {  // P6
  Served server(BATON_PROGRAM);
  ServerCoordinator master(at(server.address()));
  ASSERT_TRUE(master.open_run(opening(), {}));
  for (std::int32_t pieces = 1; pieces <= 4; ++pieces) {
    Proxy proxy(server.port());
    ServerCoordinatorOptions options = at(proxy.address());
    options.client.deadline = milliseconds(500);
    ServerCoordinator worker(options);
    WorkerRegistration self = kWorker;
    self.index = pieces;
    self.session += std::to_string(pieces);
    self.name = self.session;
    ASSERT_TRUE(worker.register_worker(self, {}));
    const auto beat = [&] {
      return worker.send_heartbeat({.index = self.index, .session = self.session}, {});
    };
    const auto passed = [&] {
      return GetParam().holds_requests ? proxy.request_bytes() : proxy.reply_bytes();
    };
    proxy.set({.delay_ms = 100});
    std::jthread network([&] {
      std::uint64_t before = passed();
      for (std::int32_t i = 0; i < pieces; ++i) {
        while (passed() == before) std::this_thread::yield();
        before = passed();
      }
      proxy.set(GetParam());
    });
    const auto lost = beat();
    EXPECT_FALSE(lost) << "after " << pieces;
    network.join();
    proxy.reset();
    proxy.set({});
    const auto back = beat();
    EXPECT_TRUE(back) << "after " << pieces << ": " << back.error().message;
  }
}

TEST(AnAssignmentThatCannotBeRead, FailsAndHarmsNobodyElse) {  // P4 P7
  Served server(BATON_PROGRAM);
  client::Client somebody({.addresses = {server.address()}});
  ServerCoordinator master(at(server.address())), worker(at(server.address()));
  ASSERT_TRUE(master.open_run(opening(), {}));
  ASSERT_TRUE(worker.register_worker(kWorker, {}));
  // A module's, and one that is nobody's.
  ASSERT_TRUE(somebody.submit({.queue = "pipeline:run", .payload = "garbage", .key = "run/broken"}));
  ASSERT_TRUE(somebody.submit({.queue = "pipeline:run", .payload = "garbage", .key = {}}));
  ASSERT_TRUE(somebody.lease({.worker = "somebody", .queues = {"pipeline:run"}, .count = 2}));
  const auto workers = master.get_registered_workers({});
  ASSERT_TRUE(workers) << workers.error().message;
  ASSERT_TRUE(somebody.submit({.queue = "pipeline:run", .payload = "garbage", .key = {}}));
  ASSERT_TRUE(somebody.submit({.queue = "pipeline:run", .payload = "garbage", .key = "run/bad"}));
  for (int i = 0; i < 2; ++i) {
    const auto nothing = worker.dequeue_module(kWorker, {});
    ASSERT_TRUE(nothing) << nothing.error().message;
    EXPECT_TRUE(std::holds_alternative<Empty>(*nothing));
  }
  const auto result = master.wait_for_result("bad", {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->module, "bad");
  EXPECT_EQ(result->failure->kind, FailureKind::decode);
  EXPECT_THAT(result->failure->message, HasSubstr("worker 1 cannot read its assignment"));
  ASSERT_TRUE(master.enqueue_module({.module = "good"}, {}));
  const auto next = worker.dequeue_module(kWorker, {});
  ASSERT_TRUE(next && std::holds_alternative<Assigned>(*next));
}

}  // namespace
}  // namespace baton::pipeline
