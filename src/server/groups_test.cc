// When the server takes a rank for dead.
#include "server/groups.h"

#include <gtest/gtest.h>

#include "server/operation.h"

namespace baton::server {
namespace {

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

}  // namespace
}  // namespace baton::server
