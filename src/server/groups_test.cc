// When the server takes a rank for dead.
#include "server/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/group_operation.h"
#include "server/json_reply.h"
#include "server/operation.h"
#include "tests/backstage.h"

namespace baton::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Instant kStart{1'000'000};

struct Question final : Operation {
  void begin(Desk&) override {}
  void write(ReplyWriter&) override {}
};

// C2, C3: the connection of a process that is suspended stands
TEST(ARank, ThatDoesNotAskAgainIsGivenUpAfterItsTimeToLive) {
  Groups groups(1);
  const Groups::Name name{"", "job"};
  const auto generation = groups.join(
      name,
      {.rank = 0, .world_size = 2, .incarnation = "a", .where = "gpu0, pid 7", .time_to_live = seconds(9)},
      kStart);
  ASSERT_TRUE(generation);
  Question watch;
  ASSERT_TRUE(groups.watch(watch, name, {0, "a", *generation}, std::nullopt, kStart + seconds(3), kStart));
  EXPECT_EQ(groups.take(kStart + seconds(3)).size(), 1U);
  const auto state_at = [&](Instant now) {
    groups.take(now);
    return groups.find(name)->members(now)[0].state;
  };
  EXPECT_EQ(state_at(kStart + seconds(9) - milliseconds(1)), "here");
  EXPECT_EQ(state_at(kStart + seconds(9)), "lost");
}

// C3: the end of a connection may be heard of late, when its rank has long been back on another
TEST(ARank, IsNotTakenForDeadByTheEndOfAnOlderConnection) {
  Groups groups(1);
  const Groups::Name name{"", "job"};
  const auto generation = groups.join(
      name, {.rank = 0, .world_size = 2, .incarnation = "a", .where = {}, .time_to_live = seconds(9)},
      kStart);
  ASSERT_TRUE(generation);
  const group::Seat seat{0, "a", *generation};
  Question older, newer;
  ASSERT_TRUE(groups.watch(older, name, seat, std::nullopt, kStart + seconds(3), kStart));
  ASSERT_TRUE(groups.watch(newer, name, seat, std::nullopt, kStart + seconds(3), kStart));
  const auto state_after = [&](Operation& gone) {
    EXPECT_TRUE(groups.forget(gone, kStart));
    groups.take(kStart + seconds(2));
    return groups.find(name)->members(kStart + seconds(2))[0].state;
  };
  EXPECT_EQ(state_after(older), "here");
  EXPECT_EQ(state_after(newer), "lost");
}

// C2, X7: nobody looks at an operation that does not end for ten minutes and wonders
TEST(ARank, HearsFromItsWatchForWhomItHasWaitedLong) {
  Groups groups(1);
  const Groups::Name name{"", "job"};
  const auto generation =
      groups.join(name, {.rank = 0, .world_size = 2, .incarnation = "a", .time_to_live = hours(1)}, kStart);
  ASSERT_TRUE(generation);
  const group::Seat seat{0, "a", *generation};
  const group::Operation ready{group::OperationKind::barrier, "ready", 0};
  Question meets, watch;
  ASSERT_TRUE(groups.arrive(meets, name, seat, {"", 0, ready, Bytes{}, hours(1)}, kStart));
  const Instant told = kStart + group::kWaitToldEvery;
  ASSERT_TRUE(groups.watch(watch, name, seat, std::nullopt, told - milliseconds(1), kStart));
  const auto early = groups.take(told - milliseconds(1));
  ASSERT_EQ(early.size(), 1U);
  EXPECT_EQ(*early[0].outcome, nullptr);
  ASSERT_TRUE(groups.watch(watch, name, seat, std::nullopt, told, told - milliseconds(1)));
  const auto late = groups.take(told);
  ASSERT_EQ(late.size(), 1U);
  ASSERT_TRUE(late[0].outcome && *late[0].outcome);
  EXPECT_EQ(text_of((*late[0].outcome)->front()),
            "barrier \"ready\": 1 of 2 ranks have come in 30.0 s; missing: rank 1 (has not joined)");
}

// X7: and so does whoever asked for it
TEST(AWatch, RepliesForWhomItsRankHasWaitedLong) {
  Backstage stage;
  const auto replied = [&](group::Share outcome) {
    WatchOperation watch({"", "job"}, {0, "a", 1}, std::nullopt, {});
    watch.met(stage.desk(), std::move(outcome));
    JsonReply reply;
    watch.write(reply);
    return reply.json();
  };
  EXPECT_THAT(replied({}), Not(HasSubstr("waited_for")));
  const ByteView text = bytes_of("rank 1 is missing");
  EXPECT_THAT(replied(std::make_shared<std::vector<Bytes>>(1, Bytes(text.begin(), text.end()))),
              HasSubstr(R"("waited_for":"rank 1 is missing")"));
}

// C2: by time alone, whichever of them that is.
TEST(Groups, AreLookedAtWhenTheFirstOfThemIsDue) {
  Groups groups(1);
  EXPECT_EQ(groups.next(), Instant{INT64_MAX});
  const auto join = [&](const char* name, Duration time_to_live) {
    const group::Joining joining{
        .rank = 0, .world_size = 2, .incarnation = "a", .time_to_live = time_to_live};
    return groups.join({"", name}, joining, kStart).value();
  };
  const auto state_of = [&](const char* name, Instant now) {
    groups.take(now);
    return groups.find({"", name})->members(now)[0].state;
  };
  join("slow", seconds(90));
  const group::Generation quick = join("quick", seconds(9));
  EXPECT_EQ(groups.next(), kStart + seconds(9));
  EXPECT_EQ(state_of("quick", kStart + seconds(9)), "lost");
  EXPECT_EQ(state_of("slow", kStart + seconds(9)), "here");
  groups.leave({"", "quick"}, {0, "a", quick}, kStart + seconds(9));
  const Instant forgotten = groups.next();
  EXPECT_GT(forgotten, kStart + seconds(9));
  EXPECT_LT(forgotten, kStart + seconds(90));
  groups.take(forgotten);
  EXPECT_EQ(groups.find({"", "quick"}), nullptr);
  EXPECT_EQ(groups.next(), kStart + seconds(90));
  groups.take_all(Error{Errc::closed, "it stops"});
  EXPECT_EQ(groups.next(), Instant{INT64_MAX});
}

// X5: what ranks bring is held until the others come
TEST(Groups, TakeNoMoreThanTheyMayHold) {
  Groups groups(1, 10'000);
  const Groups::Name name{"", "job"}, other{"", "other"};
  const group::Joining joining{.rank = 0, .world_size = 2, .incarnation = "a"};
  const group::Seat seat{0, "a", *groups.join(name, joining, kStart)};
  const group::Seat beside{0, "a", *groups.join(other, joining, kStart)};
  const group::Operation gather{group::OperationKind::all_gather, "plan", 0};
  Question first, second, third;
  ASSERT_TRUE(groups.arrive(first, name, seat, {"", 0, gather, Bytes(10'000), hours(1)}, kStart));
  const auto refused = groups.arrive(second, other, beside, {"", 0, gather, Bytes{}, hours(1)}, kStart);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::exhausted);
  EXPECT_GT(refused.error().retry_after, Duration{});
  const group::Kept kept{"", 0, gather, std::make_shared<const std::vector<Bytes>>(), {}};
  EXPECT_EQ(groups.resume(other, joining, beside.generation, {&kept, 1}, kStart).error().code,
            Errc::exhausted);

  groups.stop(name, seat, "", 0, kStart);  // which ends it
  EXPECT_TRUE(groups.arrive(third, other, beside, {"", 0, gather, Bytes(10'000), hours(1)}, kStart));

  groups.leave(other, beside, kStart);  // one that all have left is forgotten, with what it held
  groups.take(kStart + minutes(1));
  EXPECT_EQ(groups.find(other), nullptr);
  const group::Seat again{0, "a", *groups.join(other, joining, kStart + minutes(1))};
  EXPECT_TRUE(groups.arrive(third, other, again, {"", 0, gather, Bytes{}, hours(1)}, kStart + minutes(1)));
}

}  // namespace
}  // namespace baton::server
