#include "stream/in_hand.h"

#include <gtest/gtest.h>

#include "stream/fresh_uuid.h"

namespace baton::stream {
namespace {

constexpr Duration kHeld = seconds(30);
constexpr Instant kStart{1'000'000};
constexpr Instant kRenewal = kStart + seconds(10);

Uuid numbered(unsigned number) {
  Uuid uuid;
  uuid.bytes[15] = std::byte(number);
  return uuid;
}

Work work(unsigned message, unsigned stream, std::int64_t epoch = 1) {
  return {.lane = Lane::inbox,
          .message = {numbered(message)},
          .epoch = {epoch},
          .stream = StreamId{numbered(stream)},
          .sequence = message};
}

InHand having(std::vector<Work> all) {
  InHand in_hand(kHeld);
  in_hand.take(std::move(all), kStart);
  return in_hand;
}

WorkBatchRequest said(InHand& in_hand, Instant at = kStart) {
  WorkBatchRequest request;
  in_hand.speak(request, at);
  return request;
}

// S22: streams in sequence, and several at once.
TEST(InHand, BeginsOneMessageOfEachStream) {
  InHand in_hand = having({work(1, 1), work(2, 1), work(3, 2)});
  const auto first = in_hand.next(kStart), second = in_hand.next(kStart);
  EXPECT_EQ(first->work.sequence, 1);
  EXPECT_EQ(second->work.sequence, 3);
  EXPECT_FALSE(in_hand.next(kStart));
  in_hand.finish(first->work, done());
  EXPECT_EQ(in_hand.next(kStart)->work.sequence, 2);
  EXPECT_EQ(in_hand.messages(), 2u);
}

TEST(InHand, BeginsMessagesWithoutAStreamAllAtOnce) {
  std::vector<Work> loose = {work(1, 1), work(2, 1)};
  for (Work& one : loose) one.stream.reset();
  InHand in_hand = having(loose);
  EXPECT_TRUE(in_hand.next(kStart));
  EXPECT_TRUE(in_hand.next(kStart));
}

// S10, S22: a claim of the one does not mean that the other was lost.
TEST(InHand, TellsAMessageFromAStreamOfTheSameId) {
  InHand in_hand = having({work(1, 7)});
  const auto in_stream = in_hand.next(kStart);
  Work loose = work(7, 0, 2);
  loose.stream.reset();
  in_hand.take({loose}, kStart);
  EXPECT_FALSE(in_stream->lost.stop_requested());
  EXPECT_TRUE(in_hand.next(kStart)) << "neither waits for the other";
  EXPECT_EQ(said(in_hand, kRenewal).inbox_renewals.size(), 2u);
}

TEST(InHand, GivesBackWhatIsBehindAFailure) {
  InHand in_hand = having({work(1, 1), work(2, 1), work(3, 1)});
  in_hand.finish(in_hand.next(kStart)->work, failed("no"));
  EXPECT_FALSE(in_hand.next(kStart));
  const WorkBatchRequest request = said(in_hand);
  ASSERT_EQ(request.inbox_failures.size(), 1u);
  EXPECT_EQ(request.inbox_failures[0].error, "no");
  ASSERT_EQ(request.inbox_completions.size(), 2u);
  EXPECT_EQ(request.inbox_completions[0].status, MessageStatus::none);
  EXPECT_EQ(in_hand.messages(), 0u);
}

// S22: results are reported until they were heard.
TEST(InHand, SaysAResultUntilItWasHeard) {
  InHand in_hand = having({work(1, 1), work(2, 2)});
  in_hand.finish(in_hand.next(kStart)->work, done());
  EXPECT_EQ(said(in_hand).inbox_completions.size(), 1u);
  EXPECT_EQ(said(in_hand).inbox_completions.size(), 1u) << "there was no answer";
  in_hand.finish(in_hand.next(kStart)->work, done());
  in_hand.hear({.inbox_completions = {Verdict::ok}});
  EXPECT_EQ(said(in_hand).inbox_completions.size(), 1u) << "only the one that came meanwhile";
  in_hand.hear({.inbox_completions = {Verdict::ok}});
  EXPECT_FALSE(in_hand.has_results());
}

InHand having_failed(unsigned messages, const std::string& error) {
  InHand in_hand(kHeld);
  for (unsigned i = 1; i <= messages; ++i) {
    in_hand.take({work(i, i)}, kStart);
    in_hand.finish(in_hand.next(kStart)->work, failed(error));
  }
  return in_hand;
}
std::size_t failures_said(InHand& in_hand) { return said(in_hand).inbox_failures.size(); }
void hear_failures(InHand& in_hand, std::size_t count) {
  in_hand.hear({.inbox_failures = std::vector(count, Verdict::ok)});
}

// S22: what no coordinator takes is never said.
TEST(InHand, TellsAnErrorAsTextOfALimitedLength) {
  InHand odd = having_failed(1, std::string("no\0\xff", 4));
  EXPECT_EQ(said(odd).inbox_failures.at(0).error, "no??");
  for (const std::size_t bytes : {kToldErrorBytesMax, kToldErrorBytesMax + 1}) {
    InHand in_hand = having_failed(1, std::string(bytes, 'x'));
    EXPECT_EQ(said(in_hand).inbox_failures.at(0).error, std::string(kToldErrorBytesMax, 'x'));
  }
}

// S22: and in the end everything.
TEST(InHand, SaysOnlySoManyBytesAtOnce) {
  const std::size_t fit = kToldBytesMax / (kToldErrorBytesMax + 64);
  InHand all = having_failed(static_cast<unsigned>(fit), std::string(kToldErrorBytesMax, 'x'));
  EXPECT_EQ(failures_said(all), fit);
  InHand one_more = having_failed(static_cast<unsigned>(fit) + 1, std::string(kToldErrorBytesMax, 'x'));
  EXPECT_EQ(failures_said(one_more), fit);
  hear_failures(one_more, fit);
  EXPECT_EQ(failures_said(one_more), 1u);
}

// S22: a result that is refused is found, and keeps none of the others from being heard.
TEST(InHand, SaysLessWhenItWasRefused) {
  InHand in_hand = having_failed(5, "no");
  EXPECT_EQ(failures_said(in_hand), 5u);
  EXPECT_TRUE(in_hand.rephrase());
  EXPECT_EQ(failures_said(in_hand), 2u);
  EXPECT_TRUE(in_hand.rephrase());
  EXPECT_EQ(failures_said(in_hand), 1u);
  EXPECT_TRUE(in_hand.rephrase());
  EXPECT_NE(said(in_hand).inbox_failures.at(0).error, "no") << "in plain words";
  EXPECT_FALSE(in_hand.rephrase()) << "and then not at all";
  EXPECT_EQ(in_hand.counts().lost, 1u);
  EXPECT_EQ(failures_said(in_hand), 1u);
  hear_failures(in_hand, 1);
  EXPECT_EQ(failures_said(in_hand), 2u) << "more again, after it was heard";
  hear_failures(in_hand, 2);
  EXPECT_EQ(failures_said(in_hand), 1u);
  hear_failures(in_hand, 1);
  EXPECT_FALSE(in_hand.has_results());
  EXPECT_FALSE(in_hand.rephrase()) << "nothing was said";
}

TEST(InHand, DoesNotGoOnBehindAMessageThatAHandlerGaveBack) {
  InHand in_hand = having({work(1, 1), work(2, 1)});
  in_hand.finish(in_hand.next(kStart)->work, given_back());
  EXPECT_FALSE(in_hand.next(kStart));
  const WorkBatchRequest request = said(in_hand);
  ASSERT_EQ(request.inbox_completions.size(), 2u);
  for (const Completion& completion : request.inbox_completions)
    EXPECT_EQ(completion.status, MessageStatus::none);
}

TEST(InHand, SaysNothingOfWhatAHandlerHasReportedItself) {
  InHand in_hand = having({work(1, 1)});
  in_hand.finish(in_hand.next(kStart)->work, reported());
  EXPECT_FALSE(in_hand.has_results());
  EXPECT_EQ(in_hand.counts().handled, 1u);
}

TEST(InHand, RenewsALeaseWhenAThirdOfItIsOver) {
  InHand in_hand = having({work(1, 1), work(2, 1)});
  const auto begun = in_hand.next(kStart);
  EXPECT_EQ(in_hand.renewal(), kRenewal);
  EXPECT_TRUE(said(in_hand, kRenewal - milliseconds(1)).inbox_renewals.empty());
  EXPECT_EQ(said(in_hand, kRenewal).inbox_renewals.size(), 1u) << "one message for all its stream";
  in_hand.hear({.inbox_renewals = {Verdict::ok}});
  EXPECT_EQ(in_hand.renewal(), kRenewal + seconds(10));
  EXPECT_FALSE(begun->lost.stop_requested());
}

// S5, S10, S22: whichever way it is said that the message is not ours any more.
TEST(InHand, TellsAHandlerWhoseLeaseWasLost) {
  for (const Verdict verdict : {Verdict::lost_lease, Verdict::unknown, Verdict::duplicate}) {
    InHand in_hand = having({work(1, 1), work(2, 1)});
    const auto begun = in_hand.next(kStart);
    (void)said(in_hand, kRenewal);
    in_hand.hear({.inbox_renewals = {verdict}});
    EXPECT_TRUE(begun->lost.stop_requested());
    EXPECT_FALSE(in_hand.renewal());
    in_hand.finish(begun->work, done());
    EXPECT_FALSE(in_hand.next(kStart)) << "the next one is somebody else's";
    EXPECT_EQ(in_hand.messages(), 0u);
  }
}

// S22: a handler that has reported it, and not returned yet, has no lease. Asking again would be answered the
// same, at once.
TEST(InHand, DoesNotAskAgainForALeaseOfWhatIsDone) {
  InHand in_hand = having({work(1, 1)});
  const auto begun = in_hand.next(kStart);
  (void)said(in_hand, kRenewal);
  in_hand.hear({.inbox_renewals = {Verdict::unknown}});
  EXPECT_FALSE(in_hand.renewal());
  EXPECT_TRUE(said(in_hand, kRenewal).inbox_renewals.empty());
  in_hand.take({work(2, 1, 2)}, kRenewal);
  EXPECT_EQ(in_hand.renewal(), kRenewal + seconds(10)) << "another claim has a lease of its own";
  in_hand.finish(begun->work, reported());
  const auto next = in_hand.next(kRenewal);
  ASSERT_TRUE(next);
  EXPECT_FALSE(next->lost.stop_requested());
}

// S21, S22: the message by which the lease was asked for was done while the call was on its way. Those behind
// it are still ours.
TEST(InHand, KeepsWhatIsBehindAMessageThatWasDoneDuringItsRenewal) {
  for (const bool has_returned : {true, false}) {
    InHand in_hand = having({work(1, 1), work(2, 1), work(3, 1)});
    const auto first = in_hand.next(kStart);
    ASSERT_EQ(said(in_hand, kRenewal).inbox_renewals.at(0).message, MessageId{numbered(2)});
    in_hand.finish(first->work, reported());
    const auto second = in_hand.next(kRenewal);
    if (has_returned) in_hand.finish(second->work, reported());
    in_hand.hear({.inbox_renewals = {Verdict::unknown}});
    EXPECT_FALSE(second->lost.stop_requested());
    EXPECT_EQ(in_hand.counts().lost, 0u);
    EXPECT_EQ(said(in_hand, kRenewal).inbox_renewals.at(0).message, MessageId{numbered(3)});
    in_hand.hear({.inbox_renewals = {Verdict::ok}});
    if (!has_returned) in_hand.finish(second->work, reported());
    const auto third = in_hand.next(kRenewal);
    ASSERT_TRUE(third);
    EXPECT_EQ(third->work.sequence, 3);
    EXPECT_FALSE(third->lost.stop_requested());
  }
}

// S10: the stream is somebody else's, whichever of its messages was named.
TEST(InHand, LetsGoOfAStreamThatWasLostThoughTheMessageNamedWasBegunMeanwhile) {
  InHand in_hand = having({work(1, 1), work(2, 1), work(3, 1)});
  const auto first = in_hand.next(kStart);
  ASSERT_EQ(said(in_hand, kRenewal).inbox_renewals.at(0).message, MessageId{numbered(2)});
  in_hand.finish(first->work, reported());
  const auto second = in_hand.next(kRenewal);
  in_hand.hear({.inbox_renewals = {Verdict::lost_lease}});
  EXPECT_TRUE(second->lost.stop_requested());
  in_hand.finish(second->work, done());
  EXPECT_FALSE(in_hand.next(kRenewal));
}

TEST(InHand, LetsGoWhatCouldNotBeRenewed) {
  InHand in_hand = having({work(1, 1), work(2, 1), work(3, 2)});
  const auto begun = in_hand.next(kStart);
  in_hand.let_go_expired(kStart + kHeld - milliseconds(1));
  EXPECT_FALSE(begun->lost.stop_requested());
  in_hand.let_go_expired(kStart + kHeld);
  EXPECT_TRUE(begun->lost.stop_requested());
  EXPECT_FALSE(in_hand.next(kStart));
  EXPECT_EQ(in_hand.messages(), 1u);
}

// S10: also while the owner is in the middle of a call, and has let go of nothing yet.
TEST(InHand, BeginsNothingWhenTheLeaseHasEnded) {
  InHand in_hand = having({work(1, 1), work(2, 1), work(3, 2)});
  const auto begun = in_hand.next(kStart);
  EXPECT_EQ(in_hand.lease_end(), kStart + kHeld);
  EXPECT_FALSE(in_hand.next(kStart + kHeld));
  in_hand.finish(begun->work, done());
  EXPECT_FALSE(in_hand.next(kStart + kHeld)) << "nor what is behind it in its stream";
  EXPECT_EQ(in_hand.messages(), 0u);
  EXPECT_EQ(in_hand.counts().lost, 2u);
}

// S18: a claim was answered, but nobody heard it.
TEST(InHand, TakesUpWhatCameWithAClaimItHasNotHeardOf) {
  InHand in_hand = having({work(1, 1), work(2, 1)});
  in_hand.finish(in_hand.next(kStart)->work, done());
  in_hand.take_unknown({work(1, 1), work(2, 1), work(3, 2, 7)}, kStart);
  EXPECT_EQ(in_hand.messages(), 2u) << "what it has in hand, or has finished, it has not lost";
  EXPECT_EQ(in_hand.next(kStart)->work.sequence, 2);
  EXPECT_EQ(in_hand.next(kStart)->work.sequence, 3);
}

// S10: a stream that was lost and claimed again is not begun while somebody is still at it.
TEST(InHand, WaitsForWhoeverIsStillAtAStreamThatWasLost) {
  InHand in_hand = having({work(1, 1), work(2, 1)});
  const auto begun = in_hand.next(kStart);
  in_hand.let_go_expired(kStart + kHeld);
  in_hand.take({work(1, 1, 2), work(2, 1, 2)}, kStart + kHeld);
  EXPECT_FALSE(in_hand.next(kStart + kHeld));
  in_hand.finish(begun->work, failed("it was stopped"));
  const auto again = in_hand.next(kStart);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->work.epoch, Epoch{2});
  EXPECT_EQ(again->work.sequence, 1);
  EXPECT_FALSE(again->lost.stop_requested());
}

// S10: also if nobody had noticed that the lease was over.
TEST(InHand, TellsWhoeverIsStillAtAStreamThatItHasClaimedAgain) {
  InHand in_hand = having({work(1, 1), work(2, 1)});
  const auto begun = in_hand.next(kStart);
  in_hand.take({work(1, 1, 2), work(2, 1, 2)}, kStart + kHeld);
  EXPECT_TRUE(begun->lost.stop_requested());
  EXPECT_FALSE(in_hand.next(kStart));
  in_hand.finish(begun->work, done());
  const auto again = in_hand.next(kStart);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->work.epoch, Epoch{2});
  EXPECT_FALSE(again->lost.stop_requested());
}

TEST(InHand, DropsWhatItHasClaimedAgain) {
  InHand in_hand = having({work(1, 1), work(2, 1)});
  in_hand.take({work(1, 1, 2), work(2, 1, 2)}, kStart + kHeld);
  EXPECT_EQ(in_hand.messages(), 2u);
  EXPECT_EQ(in_hand.next(kStart)->work.epoch, Epoch{2});
  EXPECT_FALSE(in_hand.next(kStart));
}

TEST(InHand, GivesBackWhatWasNotBegun) {
  InHand in_hand = having({work(1, 1), work(2, 1), work(3, 2)});
  const auto begun = in_hand.next(kStart);
  in_hand.give_back_waiting();
  EXPECT_FALSE(in_hand.next(kStart));
  EXPECT_EQ(in_hand.messages(), 1u);
  EXPECT_EQ(said(in_hand).inbox_completions.size(), 2u);
  EXPECT_EQ(in_hand.counts().given_back, 2u);
}

TEST(InHand, ForgetsEverythingWhenItsInstanceWasEvicted) {
  InHand in_hand = having({work(1, 1), work(2, 1), work(3, 2)});
  const auto first = in_hand.next(kStart), second = in_hand.next(kStart);
  in_hand.finish(second->work, done());
  in_hand.let_go_all();
  EXPECT_TRUE(first->lost.stop_requested());
  EXPECT_FALSE(in_hand.has_results());
  EXPECT_EQ(in_hand.messages(), 1u) << "until its handler returns";
}

TEST(AFreshUuid, IsLargerThanThoseBefore) {
  const Uuid one = fresh_uuid(), other = fresh_uuid();
  EXPECT_NE(one, other);
  EXPECT_EQ(to_text(one)[14], '7');
  EXPECT_EQ(to_text(one).substr(0, 8), to_text(other).substr(0, 8));
}

}  // namespace
}  // namespace baton::stream
