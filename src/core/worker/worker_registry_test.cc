#include "core/worker/worker_registry.h"

#include "core/testing.h"

namespace baton::core {
namespace {

// T18
TEST(WorkerRegistry, KnowsTheLastHeartbeatAndCapacity) {
  WorkerRegistry workers;
  workers.heartbeat("n", "w", 2, capabilities({"gpu"}), kStart);
  workers.heartbeat("n", "w", 3, capabilities({"disk"}), kStart + seconds(1));
  EXPECT_EQ(workers.size(), 1u);
  const Worker* worker = workers.find("n", "w");
  ASSERT_NE(worker, nullptr);
  EXPECT_EQ(worker->last_seen, kStart + seconds(1));
  EXPECT_EQ(worker->capacity, 3u);
  EXPECT_EQ(worker->capabilities, capabilities({"disk"}));
  EXPECT_EQ(workers.spare_capacity("n", "w", 1), 2u);
  EXPECT_EQ(workers.spare_capacity("n", "w", 3), 0u);
  EXPECT_EQ(workers.spare_capacity("n", "w", 4), 0u);
  EXPECT_EQ(workers.find("m", "w"), nullptr);
}

// T19, T20, T6: it starts empty, and whoever it does not know may take work.
TEST(WorkerRegistry, HoldsNobodyBackWhomItDoesNotKnow) {
  Authority authority;
  EXPECT_EQ(authority.workers.size(), 0u);
  authority.submit(a_task(), kStart);
  authority.workers.heartbeat("n", "w", 1, {}, kStart);
  const auto held = authority.grant(a_worker(), kStart);
  authority.submit(a_task(), kStart);
  EXPECT_TRUE(authority.ask(a_worker(), kStart).is<Nothing>());
  authority.workers = {};
  EXPECT_TRUE(authority.ask(a_worker(), kStart).is<Granted>());
  EXPECT_EQ(authority.ask(complete(held), kStart).as<Committed>().outcome, Ended::completed);
}

TEST(WorkerRegistry, TreatsNoCapacityAsNoLimit) {
  WorkerRegistry workers;
  workers.heartbeat("n", "w", 0, {}, kStart);
  EXPECT_EQ(workers.spare_capacity("n", "w", 1'000'000), UINT32_MAX);
}

// T21: a worker that is forgotten loses nothing it holds.
TEST(WorkerRegistry, ForgetsTheSilentAndNothingElse) {
  Authority authority;
  authority.workers.heartbeat("n", "quiet", 1, {}, kStart);
  authority.workers.heartbeat("n", "alive", 1, {}, kStart + milliseconds(1));
  authority.submit(a_task(), kStart);
  const auto held = authority.grant(a_worker("quiet"), kStart);
  const std::uint64_t digest = authority.state().digest;
  authority.workers.forget_silent_since(kStart);
  EXPECT_EQ(authority.workers.find("n", "quiet"), nullptr);
  EXPECT_NE(authority.workers.find("n", "alive"), nullptr);
  EXPECT_EQ(authority.state().digest, digest);
  EXPECT_EQ(authority.ask(complete(held), kStart).as<Committed>().outcome, Ended::completed);
  authority.workers.heartbeat("n", "quiet", 5, {}, kStart);
  EXPECT_EQ(authority.workers.find("n", "quiet")->capacity, 5u);
}

// X3
TEST(WorkerRegistry, RemembersNoMoreThanItsLimit) {
  WorkerRegistry workers;
  for (std::size_t i = 0; i <= kWorkersMax; ++i) workers.heartbeat("n", std::to_string(i), 1, {}, kStart);
  EXPECT_EQ(workers.size(), kWorkersMax);
  EXPECT_NE(workers.find("n", std::to_string(kWorkersMax - 1)), nullptr);
  EXPECT_EQ(workers.find("n", std::to_string(kWorkersMax)), nullptr);
  workers.heartbeat("n", "0", 9, {}, kStart);
  EXPECT_EQ(workers.find("n", "0")->capacity, 9u);
}

// X3
TEST(WorkerRegistry, DoesNotRememberWhoHasNoProperName) {
  WorkerRegistry workers;
  workers.heartbeat("n", std::string(1000, 'x'), 1, {}, kStart);
  workers.heartbeat("n", "", 1, {}, kStart);
  workers.heartbeat("n n", "w", 1, {}, kStart);
  EXPECT_EQ(workers.size(), 0u);
}

}  // namespace
}  // namespace baton::core
