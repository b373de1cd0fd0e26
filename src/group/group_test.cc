// What a group says to whom, and when.
#include "group/group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::group {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Instant kStart{1'000'000};

Joining joining(Rank rank, Rank world_size, std::string incarnation = "a") {
  return {.rank = rank,
          .world_size = world_size,
          .incarnation = std::move(incarnation),
          .where = "gpu" + std::to_string(rank) + ", pid 7",
          .time_to_live = kTimeToLive};
}

// Two ranks, of which each may be asked for.
class GroupOfTwo : public ::testing::Test {
 protected:
  GroupOfTwo() : group(joining(0, 2), 7, false, kStart) {
    EXPECT_EQ(*group.join(joining(1, 2), 8, kStart), 7U);
  }

  Seat seat(Rank rank) const { return {rank, "a", 7}; }
  Status arrive(Rank rank, std::uint64_t number, Instant now, Duration deadline = hours(1)) {
    return group.arrive(seat(rank), {"", number, {OperationKind::barrier, "ready", 0}, Bytes{}, deadline},
                        rank + 1, now);
  }
  std::string only_answer() {
    const auto answers = group.take_answers();
    if (answers.size() != 1) return std::to_string(answers.size()) + " answers";
    const auto& outcome = answers[0].outcome;
    return outcome ? "fine" : std::string(word(outcome.error().code)) + ": " + outcome.error().message;
  }

  Group group;
};

// C3
TEST_F(GroupOfTwo, GivesUpARankThatIsSilentForItsTimeToLive) {
  ASSERT_TRUE(arrive(0, 0, kStart));
  const Instant almost = kStart + kTimeToLive - milliseconds(1);
  ASSERT_TRUE(group.beat(seat(0), std::nullopt, almost));
  EXPECT_EQ(only_answer(), "0 answers");
  EXPECT_EQ(group.next(), kStart + kTimeToLive);
  group.pass(kStart + kTimeToLive);
  EXPECT_EQ(
      only_answer(),
      "UNAVAILABLE: barrier \"ready\": rank 1 (gpu1, pid 7) is gone: nothing was heard of it for 10.0 s");
  // The one who was stopped, and comes back.
  EXPECT_EQ(group.beat(seat(1), std::nullopt, kStart + hours(1)).error().code, Errc::lease_lost);
}

// C2: whoever was started with another number of ranks is the one that is missing
TEST(AGroup, TellsWhoWasTurnedAwayFromTheMissingPlace) {
  Group group(joining(0, 2), 7, false, kStart);
  const auto refused = group.join(joining(1, 3), 8, kStart);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("rank 1 says that there are 3 ranks, and the group has 2"));
  const Operation ready{OperationKind::barrier, "ready", 0};
  ASSERT_TRUE(group.arrive({0, "a", 7}, {"", 0, ready, Bytes{}, seconds(1)}, 1, kStart));
  group.pass(kStart + seconds(1));
  const auto answers = group.take_answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_THAT(answers[0].outcome.error().message,
              HasSubstr("rank 1 (has not joined: gpu1, pid 7 says that there are 3 ranks, not 2)"));
}

// C2: a process that ends is noticed by its connection
TEST_F(GroupOfTwo, GivesARankWhoseConnectionBrokeOneSecondToComeBack) {
  ASSERT_TRUE(arrive(0, 0, kStart));
  group.hung_up(seat(1), kStart);
  group.pass(kStart + kBackAfterHangUp - milliseconds(1));
  EXPECT_EQ(only_answer(), "0 answers");
  ASSERT_TRUE(group.beat(seat(1), std::nullopt, kStart + kBackAfterHangUp - milliseconds(1)));
  group.hung_up(seat(1), kStart + seconds(2));
  group.pass(kStart + seconds(3));
  EXPECT_THAT(
      only_answer(),
      HasSubstr("rank 1 (gpu1, pid 7) is gone: its connection broke, and it did not come back within 1.0 s"));
}

// C2
TEST_F(GroupOfTwo, TellsWhatIsKnownOfThoseWhoDoNotCome) {
  ASSERT_TRUE(group.beat(seat(1), "write 3.1 of 8.0 GiB", kStart + seconds(4)));
  ASSERT_TRUE(arrive(0, 0, kStart, seconds(5)));
  group.pass(kStart + seconds(5));
  EXPECT_THAT(only_answer(), AllOf(HasSubstr("DEADLINE_EXCEEDED"), HasSubstr("1 of 2 ranks"),
                                   HasSubstr("gpu1, pid 7, alive"), HasSubstr("heard of 1.0 s ago"),
                                   HasSubstr("doing write 3.1 of 8.0 GiB")));
}

// C2, X5: with all that is known of a thousand ranks for each of another thousand
TEST(AGroup, TellsOfTheFirstMissingInWordsAndOfTheOthersByNumber) {
  const auto heard = [](Rank missing) {
    Group group(joining(0, missing + 1), 7, false, kStart);
    const Operation ready{OperationKind::barrier, "ready", 0};
    EXPECT_TRUE(group.arrive({0, "a", 7}, {"", 0, ready, Bytes{}, seconds(1)}, 1, kStart));
    group.pass(kStart + seconds(1));
    return group.take_answers().at(0).outcome.error().message;
  };
  EXPECT_THAT(heard(kDescribedMax), ::testing::EndsWith(", rank 16 (has not joined)"));
  EXPECT_THAT(heard(kDescribedMax + 1), ::testing::EndsWith(", rank 16 (has not joined) and rank 17"));
  EXPECT_THAT(heard(1023), ::testing::EndsWith(", rank 16 (has not joined) and ranks 17-1023"));
}

// C2, X7: one of those who wait says it for all of them
TEST(AGroup, TellsTheFirstOfThoseWhoWaitLongWhoIsMissing) {
  Group group(joining(1, 3), 7, false, kStart);
  ASSERT_EQ(*group.join(joining(2, 3), 8, kStart), 7U);
  const Seat one{1, "a", 7}, two{2, "a", 7};
  const auto arrive = [&](const Seat& seat) {
    return group.arrive(seat, {"", 0, {OperationKind::barrier, "ready", 0}, Bytes{}, hours(1)}, seat.rank,
                        kStart);
  };
  ASSERT_TRUE(arrive(two) && arrive(one));
  const Instant told = kStart + kWaitToldEvery;
  EXPECT_EQ(group.waited_for(one, kStart, told - milliseconds(1)), "");
  EXPECT_EQ(group.waited_for(one, told - milliseconds(1), told),
            "barrier \"ready\": 2 of 3 ranks have come in 30.0 s; missing: rank 0 (has not joined)");
  EXPECT_EQ(group.waited_for(two, told - milliseconds(1), told), "");
  EXPECT_EQ(group.waited_for(one, told, told + kWaitToldEvery - milliseconds(1)), "");
  EXPECT_THAT(group.waited_for(one, told, told + kWaitToldEvery), HasSubstr("in 60.0 s"));
  EXPECT_EQ(group.waited_for({1, "a", 6}, told, told + kWaitToldEvery), "");
  ASSERT_EQ(*group.join(joining(0, 3), 8, kStart), 7U);
  ASSERT_TRUE(arrive({0, "a", 7}));
  EXPECT_EQ(group.waited_for(one, told, told + kWaitToldEvery), "");
}

// C14: the two words may come in either order
TEST_F(GroupOfTwo, TellsWhoWasStoppedAlsoIfItWasBeforeItCame) {
  group.stop(seat(0), "", 0, kStart);
  ASSERT_TRUE(arrive(0, 0, kStart));
  EXPECT_EQ(only_answer(), "CLOSED: barrier \"ready\": rank 0 was stopped while it waited");
  ASSERT_TRUE(arrive(1, 0, kStart));
  EXPECT_THAT(only_answer(), HasSubstr("rank 0 was stopped"));
}

// C2: whoever speaks the protocol without the library
TEST_F(GroupOfTwo, RefusesARootThatIsNoRank) {
  const Operation operation{OperationKind::broadcast, "config", 2};
  for (const Rank rank : {0U, 1U}) {
    const auto arrived = group.arrive(seat(rank), {"", 0, operation, Bytes{}, hours(1)}, rank + 1, kStart);
    ASSERT_FALSE(arrived);
    EXPECT_EQ(arrived.error().code, Errc::invalid_request);
  }
}

TEST_F(GroupOfTwo, RefusesNumbersThatDoNotFollow) {
  ASSERT_TRUE(arrive(0, 3, kStart));
  EXPECT_EQ(arrive(0, 5, kStart).error().code, Errc::invalid_request);
  EXPECT_EQ(arrive(0, 2, kStart).error().code, Errc::invalid_request);
  EXPECT_TRUE(arrive(0, 3, kStart));  // said again
}

// A rank that meant to be at two operations at once would leave the first without anybody to hear of it.
TEST_F(GroupOfTwo, RefusesTheNextNumberBeforeTheLastHasEnded) {
  ASSERT_TRUE(arrive(0, 0, kStart));
  EXPECT_THAT(arrive(0, 1, kStart).error().message, HasSubstr("which has not ended"));
  ASSERT_TRUE(arrive(1, 0, kStart));
  EXPECT_EQ(group.take_answers().size(), 2U);
  EXPECT_TRUE(arrive(0, 1, kStart));
}

// C2: also if the others never came, so that nothing else would end its wait
TEST(AGroup, TellsARankThatWasGivenUpSo) {
  Group group(joining(0, 2), 7, false, kStart);
  ASSERT_TRUE(
      group.arrive({0, "a", 7}, {"", 0, {OperationKind::barrier, "ready", 0}, Bytes{}, hours(1)}, 5, kStart));
  group.pass(kStart + kTimeToLive);
  const auto answers = group.take_answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].waiter, 5U);
  EXPECT_EQ(answers[0].outcome.error().code, Errc::lease_lost);
  EXPECT_TRUE(group.is_deserted());
  group.forget(5);
}

TEST_F(GroupOfTwo, HasSoManyStreams) {
  const auto open = [&](int number) {
    return group.arrive(seat(0),
                        {std::to_string(number), 0, {OperationKind::barrier, "ready", 0}, Bytes{}, hours(1)},
                        static_cast<Waiter>(number), kStart);
  };
  for (int number = 0; number < 64; ++number) ASSERT_TRUE(open(number));
  EXPECT_EQ(open(64).error().code, Errc::exhausted);
  EXPECT_TRUE(open(63));
}

// C2: and nobody whom it replaces is left to wait
TEST_F(GroupOfTwo, AnswersWhoAsksAgainOnce) {
  ASSERT_TRUE(arrive(0, 0, kStart));
  ASSERT_TRUE(
      group.arrive(seat(0), {"", 0, {OperationKind::barrier, "ready", 0}, Bytes{}, hours(1)}, 77, kStart));
  EXPECT_THAT(only_answer(), AllOf(HasSubstr("CONFLICT"), HasSubstr("rank 0 came to it a second time")));
  ASSERT_TRUE(arrive(1, 0, kStart));
  std::set<Waiter> answered;
  for (const Answer& answer : group.take_answers()) answered.insert(answer.waiter);
  EXPECT_EQ(answered, (std::set<Waiter>{2, 77}));
}

TEST_F(GroupOfTwo, OfAnotherSizeBeginsWhenAPlaceIsTakenAgain) {
  EXPECT_EQ(group.join(joining(2, 3, "b"), 8, kStart).error().code, Errc::conflict);
  EXPECT_EQ(*group.join(joining(0, 3, "b"), 8, kStart), 8U);
  EXPECT_EQ(group.world_size(), 3U);
  EXPECT_EQ(*group.join(joining(2, 3, "b"), 9, kStart), 8U);
  EXPECT_EQ(arrive(1, 0, kStart).error().code, Errc::lease_lost);
}

// C2: what was lost before it came is no reason to wait
TEST(AGroup, ThatAllHaveLeftTellsWhoComesLate) {
  Group group(joining(0, 2), 7, false, kStart);
  group.leave({0, "a", 7}, kStart);
  ASSERT_EQ(*group.join(joining(1, 2), 8, kStart), 7U);
  ASSERT_TRUE(
      group.arrive({1, "a", 7}, {"", 0, {OperationKind::barrier, "ready", 0}, Bytes{}, hours(1)}, 2, kStart));
  const auto answers = group.take_answers();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_THAT(answers[0].outcome.error().message, HasSubstr("rank 0"));
}

// C3: whether it is late or the job was started again shows when one of the others joins, or none does
TEST(AGroup, ThatAllHaveLeftSeatsWhoComesThenWithThoseOfTheNextStart) {
  Joining patient = joining(2, 3, "b");
  patient.patience = seconds(10);
  Group group(joining(0, 3), 7, false, kStart);
  group.hung_up({0, "a", 7}, kStart);  // though it may come back
  EXPECT_EQ(group.join(patient, 8, kStart).error().code, Errc::conflict);
  EXPECT_EQ(group.join(patient, 8, kStart + seconds(9)).error().code, Errc::conflict);
  EXPECT_EQ(*group.join(joining(0, 3, "b"), 8, kStart + seconds(9)), 8U);
  EXPECT_EQ(*group.join(patient, 9, kStart + seconds(9)), 8U);
}

// C2: those of another start have a patience of their own
TEST(AGroup, ThatAllHaveLeftLetsWhoComesLateInWhenItsPatienceIsOver) {
  Joining patient = joining(1, 2, "b");
  patient.patience = seconds(10);
  Group left(joining(0, 2), 7, false, kStart);
  left.leave({0, "a", 7}, kStart);
  const Instant knocks = kStart + seconds(30);
  Joining before = patient;
  before.incarnation = "a";
  EXPECT_EQ(left.join(before, 8, kStart).error().code, Errc::conflict);
  EXPECT_EQ(left.join(patient, 8, knocks).error().code, Errc::conflict);
  EXPECT_EQ(left.join(patient, 8, knocks + seconds(10) - milliseconds(1)).error().code, Errc::conflict);
  EXPECT_EQ(*left.join(patient, 8, knocks + seconds(10)), 7U);
}

// C3: of ranks that come back after a restart the newest generation counts
TEST(AResumedGroup, IsThatOfTheNewestGeneration) {
  Group group(joining(0, 2, "old"), 7, true, kStart);
  EXPECT_TRUE(group.resume(joining(0, 2, "old"), 7, {}, kStart));
  EXPECT_TRUE(group.resume(joining(1, 2, "new"), 8, {}, kStart));
  EXPECT_EQ(group.resume(joining(0, 2, "old"), 7, {}, kStart).error().code, Errc::lease_lost);
  EXPECT_TRUE(group.resume(joining(0, 2, "new"), 8, {}, kStart));
}

// E3, C3
TEST(AResumedGroup, GivesAllRanksAFullTimeToLiveToComeBack) {
  Group group(joining(0, 2), 7, true, kStart);
  EXPECT_TRUE(group.resume(joining(0, 2), 7, {}, kStart));
  const Seat zero{0, "a", 7};
  ASSERT_TRUE(group.arrive(zero, {"", 4, {OperationKind::barrier, "b", 0}, Bytes{}, hours(1)}, 1, kStart));
  ASSERT_TRUE(group.beat(zero, std::nullopt, kStart + kTimeToLive - milliseconds(1)));
  group.pass(kStart + kTimeToLive - milliseconds(1));
  EXPECT_TRUE(group.take_answers().empty());
  group.pass(kStart + kTimeToLive);
  EXPECT_EQ(group.take_answers().size(), 1U);
}

// C3: a gathering that is too large to be told again is made of what each rank says it brought.
TEST(AResumedGroup, GathersAgain) {
  const Bytes mine[] = {Bytes(3, std::byte{1}), Bytes(3, std::byte{2})};
  const Operation operation{OperationKind::all_gather, "plan", 0};
  Group group(joining(0, 2), 7, true, kStart);
  const Kept heard{"", 4, operation, std::make_shared<const std::vector<Bytes>>(), mine[0]};
  ASSERT_TRUE(group.resume(joining(0, 2), 7, {&heard, 1}, kStart));
  ASSERT_TRUE(group.resume(joining(1, 2), 7, {}, kStart));
  ASSERT_TRUE(group.arrive({1, "a", 7}, {"", 4, operation, mine[1], hours(1)}, 9, kStart));
  const auto answers = group.take_answers();
  ASSERT_EQ(answers.size(), 1U);
  ASSERT_TRUE(answers[0].outcome);
  EXPECT_THAT(**answers[0].outcome, ::testing::ElementsAre(mine[0], mine[1]));
}

// C3: a deadline that was of interest before the end was told from memory
TEST(AResumedGroup, IsNotWokenForAnOperationThatHasEnded) {
  const Operation operation{OperationKind::broadcast, "config", 0};
  const Kept heard{"", 0, operation, std::make_shared<const std::vector<Bytes>>(1), {}};
  Group group(joining(1, 3), 7, true, kStart);
  ASSERT_TRUE(group.resume(joining(1, 3), 7, {}, kStart));
  ASSERT_TRUE(group.arrive({1, "a", 7}, {"", 0, operation, Bytes{}, seconds(2)}, 1, kStart));
  for (const Rank rank : {0U, 2U}) ASSERT_TRUE(group.resume(joining(rank, 3), 7, {&heard, 1}, kStart));
  EXPECT_EQ(group.take_answers().size(), 1U);
  group.pass(kStart + seconds(2));
  EXPECT_EQ(group.next(), kStart + kTimeToLive);
}

// X5: whatever a rank says that it has been through
TEST(AResumedGroup, KeepsOneOperationThatEndedWell) {
  const Operation operation{OperationKind::all_gather, "plan", 0};
  Group group(joining(0, 2), 7, true, kStart);
  const auto held_after = [&](std::uint64_t number) {
    const Kept heard{"", number, operation, std::make_shared<const std::vector<Bytes>>(), Bytes(1000)};
    EXPECT_TRUE(group.resume(joining(0, 2), 7, {&heard, 1}, kStart));
    return group.held_bytes();
  };
  const std::size_t held = held_after(0);
  EXPECT_GT(held, 1000U);
  for (std::uint64_t number = 1; number < 100; ++number) EXPECT_EQ(held_after(number), held);
}

// X5: rank 0 waits at the first, so all behind it are kept for it
TEST_F(GroupOfTwo, TakesSoManyOperationsBehindOneThatHasNotEnded) {
  ASSERT_TRUE(arrive(0, 0, kStart));
  const Operation vote{OperationKind::vote, "fine", 0};
  const auto fail = [&](std::uint64_t number) {
    return group.arrive(seat(1), {"", number, vote, failure(Errc::io_failed, "no"), hours(1)}, 99, kStart);
  };
  for (std::uint64_t number = 1; number <= 1024; ++number) ASSERT_TRUE(fail(number));
  EXPECT_EQ(fail(1025).error().code, Errc::exhausted);
  ASSERT_TRUE(fail(1024));  // said again
}

TEST(RanksAsPeopleReadThem, AreRanges) {
  EXPECT_EQ(rank_list({3}), "rank 3");
  EXPECT_EQ(rank_list({0, 1, 2, 4, 7}), "ranks 0-2, 4 and 7");
}

}  // namespace
}  // namespace baton::group
