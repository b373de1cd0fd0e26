// What operators are told about streams.
#include "core/stream/stream_query.h"

#include <gmock/gmock.h>

#include "core/stream/span.h"
#include "core/stream/testing.h"
#include "core/stream/why.h"

namespace baton::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class AnOperator : public testing::Test {
 protected:
  AnOperator() { ask(a_heartbeat(1)); }

  Answer ask(const Request& request) { return authority_.ask(request, now_); }
  std::vector<GivenMessage> claim(Duration lease = minutes(1)) {
    return ask(a_claim(1, {.lease = lease})).as<WorkProcessed>().work;
  }
  void fail(unsigned message, stream::FailurePolicy policy = stream::FailurePolicy::block) {
    ProcessWork call = a_call(1);
    call.failures.inbox = {{.held = {message_id(message)}, .error = Blob("it broke"), .policy = policy}};
    ask(call);
  }
  StreamLook look() const { return {.ns = "n", .now = now_}; }
  const State& state() const { return authority_.state(); }
  const Presence& presence() const { return authority_.workers.instances; }
  LaneView inbox() const { return lanes(state(), look()).rows.at(1); }
  // Question and answer, a line each; what a failure said is in the log.
  std::string why(unsigned message) const {
    std::string all;
    for (const WhyAnswer& one : core::why(state(), presence(), look(), authority_.rules, message_id(message)))
      all +=
          std::string(one.question) + " " + one.answer + (one.said.length > 0 ? "…" : "") + one.rest + "\n";
    return all;
  }

  Authority authority_;
  Instant now_ = kStart;
};

// S23
TEST_F(AnOperator, SeesWhatWaitsIsHeldAndIsDead) {
  EXPECT_FALSE(inbox().oldest_claimable);
  ask(a_store(1, {a_message(1, 1), a_message(2, 1), a_message(3, 2), a_message(4, 0)}));
  now_ = now_ + seconds(5);
  EXPECT_EQ(inbox().waiting, 4u);
  EXPECT_EQ(inbox().streams, 2u);
  EXPECT_EQ(inbox().oldest_claimable, seconds(5));
  EXPECT_EQ(claim().size(), 4u);
  EXPECT_EQ(inbox().waiting, 0u);
  EXPECT_EQ(inbox().held, 4u);
  EXPECT_EQ(inbox().held_streams, 2u);
  EXPECT_FALSE(inbox().oldest_claimable);
  fail(1, stream::FailurePolicy::park_stream);
  EXPECT_EQ(inbox().dead, 1u);
  EXPECT_EQ(inbox().parked_streams, 1u);
  EXPECT_TRUE(lanes(state(), {.ns = "other"}).rows.empty());
}

TEST_F(AnOperator, SeesServicesInPages) {
  for (unsigned i = 2; i <= 4; ++i) {
    ProcessWork call = a_heartbeat(i);
    call.heartbeat->service = "service " + std::to_string(i);
    ask(call);
  }
  StreamLook page = look();
  page.count_max = 2;
  std::vector<std::string> seen;
  do {
    const auto found = lanes(state(), page);
    for (const LaneView& row : found.rows) seen.push_back(row.service);
    page.from = found.next;
  } while (page.from != 0);
  EXPECT_EQ(seen.size(), 8u);
}

// S23
TEST_F(AnOperator, SeesWhoWorks) {
  ask(a_store(1, {a_message(1, 1), a_message(2, 0)}));
  claim();
  now_ = now_ + minutes(11);
  ask(a_heartbeat(3, days(1)));
  ask(a_heartbeat(4, days(1)));
  ask(a_claim(4, {.inbox = false}));
  const auto rows = instances(state(), presence(), look()).rows;
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].id, instance_id(1));
  EXPECT_TRUE(rows[0].is_stale);
  EXPECT_FALSE(rows[0].rank);
  EXPECT_EQ(rows[0].silent, minutes(11));
  EXPECT_EQ(rows[0].held_streams, 1u);
  EXPECT_EQ(rows[0].held_messages, 2u);
  EXPECT_FALSE(rows[1].is_stale);
  EXPECT_FALSE(rows[1].rank) << "it has not asked for work";
  EXPECT_EQ(rows[2].rank, 0);
}

// S23
TEST_F(AnOperator, SeesTheStreamsThatHaveWaitedForLongest) {
  ask(a_store(1, {a_message(1, 1)}));
  claim();
  fail(1);
  now_ = now_ + seconds(10);
  ask(a_store(1, {a_message(2, 2), a_message(3, 2)}));
  const auto rows = lag(state(), look()).rows;
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].id, stream_id(1));
  EXPECT_EQ(rows[0].waits, seconds(10));
  EXPECT_THAT(rows[0].state, HasSubstr("to be tried again in"));
  EXPECT_EQ(rows[1].messages, 2u);
  EXPECT_EQ(rows[1].state, "can be claimed");
}

// S23: as people say it.
TEST_F(AnOperator, ReadsTimesAtAGlance) {
  EXPECT_EQ(span(0), "0 s");
  EXPECT_EQ(span(59), "59 s");
  EXPECT_EQ(span(60), "1 min");
  EXPECT_EQ(span(413), "6 min 53 s");
  EXPECT_EQ(span(7'800), "2 h 10 min");
  EXPECT_EQ(span(4 * 86'400 + 59), "4 d");
  EXPECT_EQ(span(4 * 86'400 + 3 * 3'600), "4 d 3 h");
}

// S6, S7, S23
TEST_F(AnOperator, SeesWhosePartitionsAre) {
  claim();
  ask(a_store(1, {a_message(1, 1), a_message(2, 1), a_message(3, 2)}));
  const auto rows = partitions(state(), presence(), look()).rows;
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].messages, 2u);
  EXPECT_EQ(rows[0].offered_to, instance_id(1));
  now_ = now_ + hours(1);
  EXPECT_FALSE(partitions(state(), presence(), look()).rows[0].offered_to) << "nobody is at work any more";
}

// S23: no more is looked at than may be, and nobody takes that for all there is.
TEST_F(AnOperator, IsToldWhenNotAllWasLookedAt) {
  ProcessWork of_others = a_heartbeat(2);
  of_others.ns = "others";
  const auto is_complete = [&] {
    return std::pair(lag(state(), look()).is_complete, partitions(state(), presence(), look()).is_complete);
  };
  ask(a_store(1, {a_message(1, 1)}));
  for (unsigned number = 0; number < kStreamsExaminedMax;) {
    of_others.messages.inbox.clear();
    for (int i = 0; i < 5'000; ++i) of_others.messages.inbox.push_back(a_message(++number, 0));
    ASSERT_TRUE(ask(of_others).appended);
  }
  EXPECT_EQ(is_complete(), std::pair(true, true)) << "all of the namespace was";
  ask(a_store(1, {a_message(2, 2)}));
  EXPECT_EQ(is_complete(), std::pair(false, false));
  EXPECT_EQ(lag(state(), look()).rows.size(), 1u);
  StreamLook one = look();
  one.count_max = 1;
  EXPECT_TRUE(lag(state(), one).is_complete) << "no more was asked for";
}

// S15
TEST_F(AnOperator, SeesDeadLettersInPages) {
  for (unsigned i = 1; i <= 3; ++i) {
    ask(a_store(1, {a_message(i, i == 3 ? 0 : 1)}));
    claim();
    fail(i, stream::FailurePolicy::park);
  }
  StreamLook page = look();
  page.count_max = 2;
  const auto first = letters(state(), page, {});
  EXPECT_EQ(first.rows.size(), 2u);
  EXPECT_EQ(first.rows[0].stream, stream_id(1));
  page.from = first.next;
  const auto last = letters(state(), page, {});
  ASSERT_EQ(last.rows.size(), 1u);
  EXPECT_FALSE(last.rows[0].stream);
  EXPECT_EQ(last.next, 0u);
  EXPECT_EQ(letters(state(), look(), {2, 9}).rows.size(), 1u);
  EXPECT_TRUE(letters(state(), {.ns = "other"}, {2}).rows.empty());
  page.from = 0;
  const auto named = letters(state(), page, {9, 3, 2, 1});
  EXPECT_EQ(named.rows.size(), 2u);
  page.from = named.next;
  const auto rest = letters(state(), page, {9, 3, 2, 1});
  ASSERT_EQ(rest.rows.size(), 1u) << "none of those that were named is passed over";
  EXPECT_EQ(rest.rows[0].number, 1u);
  EXPECT_EQ(rest.next, 0u);
}

// S23: each item of the troubleshooting list.
TEST_F(AnOperator, IsToldThatNobodyIsAtWork) {
  ask(a_store(1, {a_message(1, 1)}));
  EXPECT_THAT(why(1), HasSubstr("is anybody at work? no: 1 active, but none has asked for work"));
  ask(a_claim(1, {.outbox = true, .inbox = false}));
  EXPECT_THAT(why(1), HasSubstr("is anybody at work? yes: 1 active"));
  EXPECT_THAT(why(1), HasSubstr("is offered to " + stream::to_text(instance_id(1).value) + " first"));
  EXPECT_THAT(why(1), HasSubstr("does somebody hold it? no"));
  EXPECT_THAT(why(1), HasSubstr("is another message in its way? no: it is the first"));
  now_ = now_ + minutes(20);
  EXPECT_THAT(why(1), HasSubstr("no: the last one was heard of 20 min ago"));
  EXPECT_THAT(why(1), HasSubstr("is nobody's"));
  EXPECT_THAT(why(9), HasSubstr("nowhere"));
}

// S23
TEST_F(AnOperator, IsToldWhoHoldsAMessage) {
  ask(a_store(1, {a_message(1, 1), a_message(2, 0)}));
  claim();
  EXPECT_THAT(why(1), HasSubstr("yes: by " + stream::to_text(instance_id(1).value) +
                                " (process 1 on here), for 1 min more"));
  EXPECT_THAT(why(2), HasSubstr("it belongs to no stream"));
  now_ = now_ + minutes(20);
  EXPECT_THAT(why(1), HasSubstr("whoever asks next has it"));
  EXPECT_THAT(why(1), HasSubstr("is evicted by the next call"));
  claim();
  EXPECT_THAT(why(1), HasSubstr("some were never heard of again: 1"));
}

// S23
TEST_F(AnOperator, IsToldWhatIsInTheWay) {
  ask(a_store(1, {a_message(1, 1), a_message(2, 1), a_message(3, 2), a_message(4, 2)}));
  claim();
  fail(1);
  fail(3, stream::FailurePolicy::park_stream);
  EXPECT_THAT(why(1), HasSubstr("may it be tried? in 1 min: it failed (1 so far), and said: …"));
  EXPECT_THAT(why(2), HasSubstr("yes: message " + stream::to_text(message_id(1).value)));
  EXPECT_THAT(why(3), HasSubstr("it became dead letter 1 of orders 0 s ago"));
  EXPECT_THAT(why(4), HasSubstr("its stream is parked behind dead letter 1"));
}

// S10, S23: a letter that comes back while others of its stream are worked on waits, as the status says.
TEST_F(AnOperator, IsToldThatAStreamIsHeldAndAMessageOfItIsNot) {
  ask(a_store(1, {a_message(1, 1), a_message(2, 1)}));
  claim();
  fail(1, stream::FailurePolicy::park);
  ask(ReplayLetters{.ns = "n", .letters = {1}});
  ASSERT_EQ(inbox().waiting, 1u);
  ASSERT_EQ(inbox().held, 1u);
  const std::string holder = stream::to_text(instance_id(1).value);
  EXPECT_THAT(why(1), HasSubstr("does somebody hold it? no, but its stream is held: by " + holder +
                                " (process 1 on here), for 1 min more"));
  EXPECT_THAT(why(1), HasSubstr("is another message in its way? no: it is the first of its stream"));
  EXPECT_THAT(why(2), HasSubstr("does somebody hold it? yes: by " + holder));
  EXPECT_THAT(why(2), HasSubstr("is another message in its way? no: it was handed out"));
  now_ = now_ + minutes(2);
  EXPECT_THAT(why(1), HasSubstr("whoever asks next has it"));
  EXPECT_THAT(why(2), HasSubstr("yes: message " + stream::to_text(message_id(1).value)));
}

// S19, S23: one question does not look at a million letters.
TEST_F(AnOperator, IsToldOfOlderDeadLettersThatWereNotLookedAt) {
  constexpr unsigned kPerCall = 500;
  for (unsigned first = 1; first <= kStreamsExaminedMax; first += kPerCall) {
    std::vector<StoreMessage> messages;
    ProcessWork failure = a_call(1);
    for (unsigned number = first; number < first + kPerCall; ++number) {
      messages.push_back(a_message(number, 0));
      failure.failures.inbox.push_back(
          {.held = {message_id(number)}, .error = Blob("it broke"), .policy = stream::FailurePolicy::park});
    }
    ask(a_store(1, std::move(messages)));
    ask(a_claim(1, {.lease = minutes(1), .limits = {.messages = kPerCall}}));
    ask(failure);
  }
  EXPECT_EQ(inbox().dead, kStreamsExaminedMax);
  EXPECT_THAT(why(1), HasSubstr("it became dead letter 1 of"));
  EXPECT_THAT(why(0), Not(HasSubstr("is it a dead letter?")));
  const unsigned last = kStreamsExaminedMax + 1;
  ask(a_store(1, {a_message(last, 0)}));
  ask(a_claim(1));
  fail(last, stream::FailurePolicy::park);
  EXPECT_THAT(why(1), HasSubstr("is it a dead letter? not one of the newest 100000; list the older ones, of "
                                "which there are 1"));
  EXPECT_THAT(why(last), HasSubstr("it became dead letter 100001 of"));
}

// S23
TEST_F(AnOperator, IsToldThatAMessageIsDone) {
  ask(a_store(1, {a_message(1, 1), a_message(2, 1)}));
  const auto work = claim();
  ask(a_completion(1, {work[0]}));
  ProcessWork kept = a_completion(1, {work[1]});
  kept.keep_done = true;
  ask(kept);
  EXPECT_THAT(why(1), HasSubstr("the inbox of orders has seen it 0 s ago, and it is done"));
  EXPECT_THAT(why(2), HasSubstr("it is kept for people to look at"));
}

}  // namespace
}  // namespace baton::core
