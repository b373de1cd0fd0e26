#include "core/worker/roster.h"

#include "core/testing.h"

namespace baton::core {
namespace {

std::vector<std::string> names_of(const WorkerPage& page) {
  std::vector<std::string> names;
  for (const WorkerView& worker : page.workers) names.push_back(worker.name);
  return names;
}

TEST(Roster, ListsWhoHoldsTasksThenWhoElseWasHeardOf) {
  Authority authority;
  authority.submit(a_task(), kStart);
  authority.grant(a_worker("busy"), kStart);
  authority.workers.heartbeat("n", "idle", 3, capabilities({"gpu"}), kStart);
  authority.workers.heartbeat("n", "busy", 2, {}, kStart);
  authority.workers.heartbeat("m", "elsewhere", 2, {}, kStart);
  const WorkerPage page = workers(authority.state(), authority.workers, {.ns = "n"}, kStart + seconds(5));
  ASSERT_EQ(names_of(page), (std::vector<std::string>{"busy", "idle"}));
  EXPECT_EQ(page.next, 0u);
  EXPECT_EQ(page.workers[0].leases, 1u);
  EXPECT_EQ(page.workers[0].capacity, 2u);
  EXPECT_EQ(page.workers[1].leases, 0u);
  EXPECT_EQ(page.workers[1].capabilities, "gpu");
  EXPECT_EQ(page.workers[1].silent_for, seconds(5));
}

TEST(Roster, ListsWhoHoldsATaskAndWasNotHeardOfSinceTheStart) {
  const Leased leased = a_leased_task();
  const WorkerPage page = workers(leased.authority.state(), {}, {.ns = "n"}, kStart);
  ASSERT_EQ(names_of(page), std::vector<std::string>{"w"});
  EXPECT_EQ(page.workers[0].leases, 1u);
  EXPECT_FALSE(page.workers[0].silent_for);
}

TEST(Roster, GoesOnWhereTheLastPageEnded) {
  Authority authority;
  std::vector<std::string> expected;
  for (int i = 0; i < 3; ++i) {
    authority.submit(a_task(), kStart);
    expected.push_back("busy" + std::to_string(i));
    authority.grant(a_worker(expected.back()), kStart);
  }
  for (int i = 0; i < 4; ++i) {
    expected.push_back("idle" + std::to_string(i));
    authority.workers.heartbeat("n", expected.back(), 0, {}, kStart);
  }
  std::vector<std::string> seen;
  ListWorkers query{.ns = "n", .count_max = 2};
  do {
    const WorkerPage page = workers(authority.state(), authority.workers, query, kStart);
    for (const std::string& name : names_of(page)) seen.push_back(name);
    query.from = page.next;
  } while (query.from != 0);
  EXPECT_EQ(seen, expected);
}

// X3
TEST(Roster, LooksAtNoMoreThanItsLimitForOnePage) {
  Authority authority;
  for (std::size_t i = 0; i < kListWorkersExaminedMax; ++i)
    authority.workers.heartbeat("m", std::to_string(i), 0, {}, kStart);
  authority.workers.heartbeat("n", "w", 0, {}, kStart);
  WorkerPage page = workers(authority.state(), authority.workers, {.ns = "n"}, kStart);
  EXPECT_TRUE(page.workers.empty());
  ASSERT_NE(page.next, 0u);
  page = workers(authority.state(), authority.workers, {.ns = "n", .from = page.next}, kStart);
  EXPECT_EQ(names_of(page), std::vector<std::string>{"w"});
  EXPECT_EQ(page.next, 0u);
}

TEST(Roster, TakesACursorThatLeadsNowhereForTheEnd) {
  const Leased leased = a_leased_task();
  EXPECT_TRUE(workers(leased.authority.state(), {}, {.ns = "n", .from = 999'999}, kStart).workers.empty());
}

}  // namespace
}  // namespace baton::core
