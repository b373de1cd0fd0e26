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

}  // namespace
}  // namespace baton::group
