// In which order messages are handed out, and to whom.
#include <algorithm>
#include <set>

#include "stream/partition.h"
#include "tests/stream/people.h"

namespace baton::stream {
namespace {

INSTANTIATE_TEST_SUITE_P(On, Stream,
                         testing::Values(embedded_backend(), served_backend(), postgres_backend()), name_of);

// S9: also within one call, where nothing but the place in the list tells them apart.
TEST_P(Stream, IsHandedOutInTheOrderInWhichItWasStored) {
  Person a = person(1);
  a.store(Lane::inbox, {in_stream(3, 1), in_stream(1, 1), in_stream(2, 1)});
  a.store(Lane::inbox, {in_stream(9, 1), in_stream(4, 1)});

  const std::vector<Work> work = a.claim();
  EXPECT_EQ(ids(work), messages({3, 1, 2, 9, 4}));
  for (std::size_t i = 0; i < work.size(); ++i) EXPECT_EQ(work[i].sequence, static_cast<std::int64_t>(i) + 1);
}

// S8, S10
TEST_P(Stream, IsHeldByOneInstanceUntilItHasReportedOnEverything) {
  Person a = person(1), b = person(2);
  a.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1)});
  let_time_pass(minutes(1));  // from here on everybody may have it
  const std::vector<Work> work = a.claim();
  ASSERT_EQ(ids(work), messages({1, 2}));
  b.store(Lane::inbox, {in_stream(3, 1)});
  let_time_pass(minutes(1));
  EXPECT_TRUE(b.claim().empty());
  EXPECT_TRUE(a.claim().empty());  // what it holds is not given to it twice

  a.done({work[0]});
  EXPECT_TRUE(b.claim().empty());
  a.done({work[1]});
  let_time_pass(minutes(1));
  EXPECT_EQ(ids(b.claim()), messages({3}));
}

// S4: the earlier of lease and silence counts, and the client's clock not at all: it is never asked.
TEST_P(Stream, IsLostWithItsLease) {
  Person a = person(1), b = person(2);
  a.store(Lane::outbox, {in_stream(1, 1), in_stream(2, 1)});
  let_time_pass(seconds(20));
  const std::vector<Work> first = a.claim({.lease = seconds(2)});
  ASSERT_EQ(ids(first), messages({1, 2}));
  EXPECT_TRUE(b.claim().empty());

  let_time_pass(seconds(30));
  const std::vector<Work> second = b.claim({.lease = seconds(2)});
  EXPECT_EQ(ids(second), messages({1, 2}));
  EXPECT_EQ(second[0].deliveries, 2);
  EXPECT_TRUE(has(second[0].flags, WorkFlags::orphaned));
  EXPECT_GT(second[0].epoch, first[0].epoch);
}

// S11
TEST_P(Stream, WaitsBehindAMessageThatIsToBeTriedAgain) {
  Person a = person(1);
  a.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1), in_stream(3, 1), in_stream(4, 2)});
  std::vector<Work> work = a.claim();
  ASSERT_EQ(ids(work), messages({1, 2, 3, 4}));
  EXPECT_EQ(a.fail(work[0]), Verdict::ok);
  EXPECT_TRUE(a.claim().empty()) << "the siblings are still held";
  a.release({work[1], work[2]});
  EXPECT_TRUE(a.claim().empty()) << "the siblings wait behind it";
  EXPECT_EQ(a.done({work[3]}), all_ok(1)) << "other streams do not";

  let_time_pass(seconds(61));
  work = a.claim();
  EXPECT_EQ(ids(work), messages({1, 2, 3}));
  EXPECT_EQ(work[0].failures, 1);
  EXPECT_EQ(work[0].error, "it broke");
  EXPECT_EQ(work[1].failures, 0);
}

// S11: what is before it does not wait.
TEST_P(Stream, IsHandedOutUpToAMessageThatIsToBeTriedAgain) {
  Person a = person(1);
  a.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1), in_stream(3, 1)});
  const std::vector<Work> work = a.claim();
  ASSERT_EQ(work.size(), 3u);
  a.fail(work[1]);
  a.release({work[0], work[2]});
  const std::vector<Work> first = a.claim();
  ASSERT_EQ(ids(first), messages({1}));
  a.done(first);
  EXPECT_TRUE(a.claim().empty());
  let_time_pass(seconds(61));
  EXPECT_EQ(ids(a.claim()), messages({2, 3}));
}

// S11: also when the one who held it is gone.
TEST_P(Stream, WaitsForARetryEvenWhenItsLeaseEnds) {
  Person a = person(1), b = person(2);
  a.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1)});
  let_time_pass(seconds(20));
  const std::vector<Work> work = a.claim({.lease = seconds(2)});
  ASSERT_EQ(work.size(), 2u);
  a.fail(work[0]);
  let_time_pass(seconds(30));
  EXPECT_TRUE(b.claim().empty());
  let_time_pass(seconds(60));
  EXPECT_EQ(ids(b.claim()), messages({1, 2}));
}

// S11, S19: a stream that can give nothing yet, since what is first in it now is to be tried later, does not
// take the place of one that can.
TEST_P(Stream, WhoseRetryIsNotDueStandsInNobodysWay) {
  Person a = person(1), b = person(2);
  a.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1), in_stream(3, 1)});
  let_time_pass(seconds(20));
  const std::vector<Work> work = a.claim({.lease = seconds(20)});
  ASSERT_EQ(work.size(), 3u);
  EXPECT_EQ(a.fail(work[1]), Verdict::ok);
  EXPECT_EQ(a.done({work[0]}), all_ok(1));
  let_time_pass(seconds(25));
  a.store(Lane::inbox, {in_stream(4, 2)});
  let_time_pass(seconds(15));
  EXPECT_EQ(ids(b.claim({.limits = {.streams = 1}})), messages({4}));
  let_time_pass(seconds(25));
  EXPECT_EQ(ids(b.claim({.limits = {.streams = 1}})), messages({2, 3}));
}

// S19: nothing is counted of a stream that was lost and does not fit any more.
TEST_P(Stream, ThatIsLostIsCountedOnceHoweverOftenItDoesNotFit) {
  Person a = person(1);
  a.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1), in_stream(3, 2), in_stream(4, 2)});
  ASSERT_EQ(a.claim({.lease = minutes(1)}).size(), 4u);
  let_time_pass(minutes(2));
  for (int turn = 0; turn < 3; ++turn) {
    const std::vector<Work> few = a.claim({.lease = minutes(10), .limits = {.bytes = 1}});
    EXPECT_EQ(few.size(), 1u);
    a.release(few);
  }
  for (const Work& one : a.claim()) EXPECT_EQ(one.deliveries, 2) << to_text(one.message.value);
}

// S15: 1, 2, 4 and then 5 minutes, and after the tenth failure it is a dead letter.
TEST_P(Stream, LosesAMessageThatHasFailedTooOften) {
  Person a = person(1);
  a.store(Lane::outbox, {in_stream(1, 1), in_stream(2, 1)});
  for (int failures = 0; failures < 10; ++failures) {
    const Duration wait = std::min(minutes(5), minutes(1 << std::min(failures, 3)));
    std::vector<Work> work = a.claim();
    ASSERT_EQ(work.size(), 2u) << failures;
    EXPECT_EQ(work[0].failures, failures);
    a.fail(work[0]);
    a.release({work[1]});
    if (failures == 9) break;
    let_time_pass(wait - seconds(1));
    ASSERT_TRUE(a.claim().empty()) << failures;
    let_time_pass(seconds(1));
  }
  EXPECT_EQ(ids(a.claim()), messages({2}));
  EXPECT_EQ(backend_->replay_dead_letters(), 1);
}

// S9: the number of partitions says who is asked first, and has no part in the order.
TEST_P(Stream, KeepsItsOrderWhenTheNumberOfPartitionsChanges) {
  Person a = person(1);
  granted(a.coordinator->store(a.me.id, Lane::inbox, {in_stream(1, 1)}, 10'000));
  granted(a.coordinator->store(a.me.id, Lane::inbox, {in_stream(2, 1)}, 7));
  EXPECT_EQ(ids(a.claim()), messages({1, 2}));
}

// S12
TEST_P(Stream, IsNotNeeded) {
  Person a = person(1), b = person(2);
  a.store(Lane::inbox, {loose(1), loose(2), loose(3)});
  const std::vector<Work> first = a.claim({.limits = {.messages = 2}});
  const std::vector<Work> second = b.claim();
  EXPECT_EQ(first.size(), 2u);
  EXPECT_EQ(second.size(), 1u);
  EXPECT_FALSE(second[0].stream);
  EXPECT_EQ(a.fail(first[0]), Verdict::ok);
  EXPECT_EQ(a.done({first[1]}), all_ok(1));
  EXPECT_EQ(a.done(second), std::vector{Verdict::lost_lease});
  let_time_pass(seconds(61));
  const std::vector<Work> again = a.claim();
  ASSERT_EQ(ids(again), ids({first[0]}));
  EXPECT_EQ(again[0].deliveries, 2);
}

// S6, S7
TEST_P(Stream, IsOfferedToTheInstanceWithItsRank) {
  Person a = person(1), b = person(2), c = person(3);
  for (Person* one : {&a, &b, &c}) one->claim();
  std::vector<NewMessage> all;
  for (unsigned i = 1; i <= 30; ++i) all.push_back(in_stream(i, i));
  a.store(Lane::inbox, all);
  std::set<MessageId> seen;
  std::int32_t rank = 0;
  for (Person* one : {&a, &b, &c}) {
    EXPECT_EQ(one->arrive().rank, rank);
    EXPECT_EQ(one->arrive().active, 3);
    const std::vector<Work> work = one->claim();
    EXPECT_FALSE(work.empty());
    for (const Work& item : work) {
      EXPECT_EQ(item.partition, partition_of(*item.stream, kPartitions));
      EXPECT_EQ(item.partition % 3, rank);
      EXPECT_TRUE(seen.insert(item.message).second);
    }
    ++rank;
  }
  EXPECT_EQ(seen.size(), 30u);
}

// S7: it would only wait there.
TEST_P(Stream, IsNotOfferedToAnInstanceThatOnlyStores) {
  Person a = person(1), b = person(2), c = person(3);
  b.claim();
  std::vector<NewMessage> all;
  for (unsigned i = 1; i <= 20; ++i) all.push_back(in_stream(i, i));
  a.store(Lane::inbox, all);
  EXPECT_EQ(b.arrive().active, 1);
  EXPECT_EQ(b.claim().size(), 20u);
}

// S19: limits are about what is handed out, not about what waits behind a message that is tried again later.
TEST_P(Stream, ThatIsHeldUpLeavesRoomForOthers) {
  Person a = person(1);
  std::vector<NewMessage> all = {in_stream(1, 1), in_stream(2, 1), in_stream(3, 1), in_stream(4, 2)};
  for (NewMessage& one : all) one.data = '"' + std::string(98, 'd') + '"';
  a.store(Lane::inbox, all);
  const std::vector<Work> work = a.claim();
  ASSERT_EQ(work.size(), 4u);
  EXPECT_EQ(a.fail(work[1]), Verdict::ok);
  a.release({work[0], work[2], work[3]});
  EXPECT_EQ(ids(a.claim({.limits = {.bytes = 250}})), messages({1, 4}));
}

// S8: somebody who is alive and no longer asks holds nothing up for long.
TEST_P(Stream, IsOfferedToEverybodyAfterAGrace) {
  Person a = person(1), b = person(2);
  b.claim();
  std::vector<NewMessage> all;
  for (unsigned i = 1; i <= 20; ++i) all.push_back(in_stream(i, i));
  a.store(Lane::inbox, all);
  const std::size_t own = a.claim().size();
  EXPECT_LT(own, 20u);
  let_time_pass(seconds(11));
  EXPECT_EQ(a.claim().size(), 20 - own);
}

// S7: two services share a database and nothing else.
TEST_P(Stream, BelongsToTheServiceThatStoredIt) {
  Person a = person(1, "orders"), b = person(2, "payments");
  a.store(Lane::inbox, {in_stream(1, 1)});
  EXPECT_EQ(b.store(Lane::inbox, {in_stream(1, 1)}), all_ok(1)) << "the same message reaches both";
  EXPECT_EQ(a.arrive().active, 1);
  const std::vector<Work> work = a.claim();
  ASSERT_EQ(work.size(), 1u);
  EXPECT_EQ(b.done(work), std::vector{Verdict::lost_lease}) << "its own of that id is not claimed yet";
  EXPECT_EQ(a.done(work), all_ok(1));
  EXPECT_EQ(ids(b.claim()), messages({1}));
}

// S3: no more partitions than it asked for, and the rest is left to others.
TEST_P(Stream, IsLeftToOthersByAnInstanceThatHoldsEnoughPartitions) {
  Person a = person(1), b = person(2);
  std::vector<NewMessage> all;
  for (unsigned i = 1; i <= 20; ++i) all.push_back(in_stream(i, i));
  a.store(Lane::inbox, all);
  let_time_pass(seconds(11));
  EXPECT_EQ(a.claim({.partitions_max = 3}).size(), 3u);
  EXPECT_TRUE(a.claim({.partitions_max = 3}).empty());
  EXPECT_EQ(b.claim().size(), 17u);
}

// S3: one that did not fit into the answer is not held, and leaves room for another of the other lane.
TEST_P(Stream, ThatWasNotHandedOutDoesNotCountAsHeld) {
  Person a = person(1);
  a.store(Lane::outbox, {in_stream(1, 1), in_stream(2, 2)});
  a.store(Lane::inbox, {in_stream(3, 3)});
  let_time_pass(seconds(11));
  const std::vector<Work> work = a.claim({.partitions_max = 2, .limits = {.bytes = 1}});
  EXPECT_EQ(ids(work), messages({1, 3}));
}

// S19
TEST_P(Stream, IsHandedOutNoFurtherThanTheLimits) {
  Person a = person(1);
  std::vector<NewMessage> all;
  for (unsigned i = 1; i <= 40; ++i) all.push_back(in_stream(i, 1 + i % 4));
  a.store(Lane::inbox, all);
  EXPECT_EQ(a.claim({.limits = {.streams = 1}}).size(), 10u);
  EXPECT_EQ(a.claim({.limits = {.messages = 3}}).size(), 3u);
  const std::vector<Work> few = a.claim({.limits = {.messages_per_stream = 2}});
  EXPECT_EQ(few.size(), 4u);
  a.release(few);
  EXPECT_EQ(a.claim({.limits = {.bytes = 1}}).size(), 1u) << "never nothing";
}

}  // namespace
}  // namespace baton::stream
