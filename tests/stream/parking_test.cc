// Messages that nobody tries any more, and streams that stop behind them.
#include "tests/stream/people.h"

namespace baton::stream {
namespace {

// S11
TEST_P(Stream, GoesOnWithoutAMessageThatIsParked) {
  Person a = person(1);
  a.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1)});
  const std::vector<Work> work = a.claim();
  ASSERT_EQ(work.size(), 2u);
  a.fail(work[0], "never", FailurePolicy::park);
  a.release({work[1]});
  EXPECT_EQ(ids(a.claim()), messages({2}));
}

// S11, S15: and a letter that is replayed has its old place.
TEST_P(Stream, StopsBehindAMessageThatParksIt) {
  Person a = person(1);
  NewMessage strict = in_stream(1, 1);
  strict.policy = FailurePolicy::park_stream;
  a.store(Lane::inbox, {strict, in_stream(2, 1)});
  const std::vector<Work> work = a.claim();
  ASSERT_EQ(work.size(), 2u);
  a.fail(work[0]);
  a.release({work[1]});
  a.store(Lane::inbox, {in_stream(3, 1)});
  let_time_pass(hours(1));
  EXPECT_TRUE(a.claim().empty());

  EXPECT_EQ(backend_->replay_dead_letters(), 1);
  EXPECT_EQ(ids(a.claim()), messages({1, 2, 3}));
}

// S15: what a failure asks for holds for that failure; the message has its own policy again.
TEST_P(Stream, TriesALetterThatWasReplayedAsItWouldAnyMessage) {
  Person a = person(1);
  a.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1)});
  std::vector<Work> work = a.claim();
  a.fail(work.at(0), "never", FailurePolicy::park_stream);
  a.release({work.at(1)});
  EXPECT_EQ(backend_->replay_dead_letters(), 1);
  work = a.claim();
  ASSERT_EQ(ids(work), messages({1, 2}));
  a.fail(work[0]);
  a.release({work[1]});
  EXPECT_EQ(backend_->replay_dead_letters(), 0) << "it is to be tried again, and no dead letter";
  let_time_pass(seconds(61));
  EXPECT_EQ(ids(a.claim()), messages({1, 2}));
}

// S11: not even for a moment, when whoever holds the rest of it loses it; and meanwhile nothing is counted.
TEST_P(Stream, ThatIsParkedAndLostStandsInNobodysWay) {
  Person a = person(1);
  a.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1)});
  const std::vector<Work> work = a.claim();
  ASSERT_EQ(work.size(), 2u);
  a.fail(work[0], "it broke", FailurePolicy::park_stream);
  let_time_pass(minutes(6));
  a.store(Lane::inbox, {in_stream(3, 3)});
  EXPECT_EQ(ids(a.claim({.limits = {.streams = 1}})), messages({3}));
  EXPECT_TRUE(a.claim().empty());

  EXPECT_EQ(backend_->replay_dead_letters(), 1);
  const std::vector<Work> again = a.claim();
  ASSERT_EQ(ids(again), messages({1, 2}));
  EXPECT_EQ(again[0].deliveries, 1) << "it begins anew";
  EXPECT_EQ(again[1].deliveries, 2) << "it was lost once";
}

// S9, S15: from then on, and not from when it was given back the last time
TEST_P(Stream, IsRememberedForADayAfterItsMessageWasLostTooOften) {
  Person a = person(1);
  a.store(Lane::inbox, {in_stream(1, 1)});
  for (int loss = 1; loss <= 10; ++loss) {
    EXPECT_EQ(ids(a.claim()), messages({1}));
    let_time_pass(hours(3));
  }
  EXPECT_TRUE(a.claim().empty());
  EXPECT_EQ(backend_->purge_dead_letters(), 1);
  let_time_pass(hours(23));
  backend_->forget_what_is_past_its_time();
  a.store(Lane::inbox, {in_stream(2, 1)});
  const std::vector<Work> work = a.claim();
  ASSERT_EQ(ids(work), messages({2}));
  EXPECT_EQ(work[0].sequence, 2);
}

// S11
TEST_P(Stream, ThatIsParkedIsStillReportedOnByWhoeverHoldsTheRestOfIt) {
  Person a = person(1);
  a.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1)});
  const std::vector<Work> work = a.claim();
  a.fail(work.at(0), "it broke", FailurePolicy::park_stream);
  EXPECT_EQ(granted(a.coordinator->renew(a.me.id, Lane::inbox, {work[1].held()})), all_ok(1));
  EXPECT_EQ(backend_->replay_dead_letters(), 1);
  EXPECT_TRUE(a.claim().empty()) << "it holds the stream";
  EXPECT_EQ(a.done({work[1]}), all_ok(1));
  EXPECT_EQ(ids(a.claim()), messages({1}));
}

}  // namespace
}  // namespace baton::stream
