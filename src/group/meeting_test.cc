// How much an operation carries.
#include "group/meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::group {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Rank kRanks = 1024;
constexpr std::size_t kHeardByAllMax = kHeardBytesMax / kRanks;
const Operation kAllGather{OperationKind::all_gather, "plan"};
const Operation kBroadcast{OperationKind::broadcast, "config", 3};
const Operation kBarrier{OperationKind::barrier, "ready"};

// X5: what everybody hears is held once for each of them
TEST(AMeeting, CarriesSoManyBytesTimesThoseWhoHearThem) {
  Meeting meeting(kAllGather, kRanks, {});
  meeting.arrive(0, kAllGather, Bytes(kHeardByAllMax - 1), {});
  meeting.arrive(1, kAllGather, Bytes(1), {});
  EXPECT_FALSE(meeting.has_ended());
  meeting.arrive(2, kAllGather, Bytes(1), {});
  const auto outcome = meeting.outcome_for(0);
  ASSERT_TRUE(outcome && !*outcome);
  EXPECT_EQ(outcome->error().code, Errc::too_large);
  EXPECT_THAT(outcome->error().message,
              AllOf(HasSubstr("3 of 1024 ranks have brought 524289 bytes"),
                    HasSubstr("536870912 is the most"), HasSubstr("Put what is large into storage")));
}

TEST(AMeeting, CountsWhatARankBringsAgainOnce) {
  Meeting meeting(kAllGather, kRanks, {});
  for (int times = 0; times < 3; ++times) meeting.arrive(0, kAllGather, Bytes(kHeardByAllMax), {});
  EXPECT_FALSE(meeting.has_ended());
}

// X5: whatever somebody sends along
TEST(AMeeting, HoldsNothingThatNobodyHears) {
  Meeting broadcast(kBroadcast, kRanks, {});
  broadcast.arrive(3, kBroadcast, Bytes(kHeardByAllMax), {});
  broadcast.arrive(4, kBroadcast, Bytes(kHeardByAllMax), {});
  EXPECT_FALSE(broadcast.has_ended());

  Meeting barrier(kBarrier, kRanks, {});
  barrier.arrive(0, kBarrier, Bytes(kHeardByAllMax), {});
  barrier.arrive(1, kBarrier, Bytes(kHeardByAllMax), {});
  EXPECT_FALSE(barrier.has_ended());
}

Kept kept(const Operation& operation, std::vector<Bytes> share) {
  return {"", 0, operation, std::make_shared<const std::vector<Bytes>>(std::move(share)), Bytes(5)};
}

// C3: or whoever passes time for it would be woken at once, again and again
TEST(AMeeting, ThatHasEndedHasNoDeadline) {
  constexpr Instant kDeadline{7};
  Meeting recalled(kBroadcast, kRanks, {});
  recalled.arrive(1, kBroadcast, Bytes{}, kDeadline);
  ASSERT_TRUE(recalled.first_deadline());
  recalled.recall(0, kept(kBroadcast, {Bytes(3)}));
  EXPECT_FALSE(recalled.first_deadline());
  recalled.arrive(2, kBroadcast, Bytes{}, kDeadline);
  EXPECT_FALSE(recalled.first_deadline());
  EXPECT_TRUE(recalled.outcome_for(2));
}

// C2: whoever speaks the protocol without the library
TEST(AMeeting, IsNotEndedByWhatItCannotHaveTold) {
  for (const std::size_t shares : {0, 2}) {
    Meeting broadcast(kBroadcast, kRanks, {});
    broadcast.recall(0, kept(kBroadcast, std::vector<Bytes>(shares)));
    EXPECT_FALSE(broadcast.is_over());
  }
  Meeting barrier(kBarrier, kRanks, {});
  barrier.recall(0, kept(kBarrier, {Bytes(3)}));
  EXPECT_FALSE(barrier.is_over());
  barrier.recall(0, kept(kBarrier, {}));
  EXPECT_TRUE(barrier.is_over());
}

// X5
TEST(AMeeting, SaysHowManyBytesItHolds) {
  const std::size_t bare = Meeting(kAllGather, 2, {}).held_bytes();
  const auto more_than_bare = [&](const Meeting& meeting) { return meeting.held_bytes() - bare; };

  Meeting gathered(kAllGather, 2, {});
  gathered.arrive(0, kAllGather, Bytes(10), {});
  gathered.arrive(0, kAllGather, Bytes(30), {});
  EXPECT_EQ(more_than_bare(gathered), 30U + kAroundHeld);
  gathered.arrive(1, kAllGather, Bytes(4), {});
  EXPECT_EQ(more_than_bare(gathered), 34U + 2 * kAroundHeld);
  gathered.arrive(1, kAllGather, Bytes(4), {});
  EXPECT_EQ(more_than_bare(gathered), 34U + 2 * kAroundHeld);

  Meeting recalled(kAllGather, 2, {});
  recalled.recall(0, kept(kAllGather, {}));  // known to all of them together
  EXPECT_EQ(more_than_bare(recalled), 5U + kAroundHeld);
  recalled.recall(1, kept(kAllGather, {Bytes(5), Bytes(6)}));
  EXPECT_EQ(more_than_bare(recalled), 11U + 2 * kAroundHeld);

  Meeting failed(kAllGather, 2, {});
  failed.arrive(0, kAllGather, Bytes(10), {});
  failed.fail({Errc::closed, "why"});
  EXPECT_EQ(more_than_bare(failed), 3U);
}

}  // namespace
}  // namespace baton::group
