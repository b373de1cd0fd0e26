// The loop of a service when things go wrong around it: full hands, lost answers, calls that hang, results
// that are refused.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "stream/processor.h"
#include "tests/stream/overheard.h"
#include "tests/stream/seen.h"

namespace baton::stream {
namespace {

class AProcessorInTrouble : public Streams {};
INSTANTIATE_TEST_SUITE_P(On, AProcessorInTrouble,
                         testing::Values(embedded_backend(), served_backend(), postgres_backend()), name_of);

constexpr std::chrono::seconds kSoon(20);  // long before a lease ends, or a poll is due

// S22: news stay news until they are asked for; meanwhile nobody asks again and again.
TEST_P(AProcessorInTrouble, ThatHasItsHandsFullWaitsQuietly) {
  Person teller = person(1);
  teller.store(Lane::inbox, {in_stream(1, 1)});
  let_time_pass(minutes(1));
  Seen seen;
  std::mutex gate;
  std::unique_lock closed(gate);
  const auto mine = backend_->connect();
  Overheard overheard(*mine);
  auto processor = granted(Processor::start(overheard, {.service = "orders",
                                                        .handlers = {{"Thing",
                                                                      [&](const Handling& handling) {
                                                                        seen.add(handling.work);
                                                                        const std::scoped_lock wait(gate);
                                                                        return done();
                                                                      }}},
                                                        .in_hand_max = 1,
                                                        .poll = hours(1)}));
  ASSERT_TRUE(seen.comes_to(1, kSoon));
  teller.store(Lane::inbox, {in_stream(2, 2)});
  for (int i = 0; i < 50; ++i) teller.arrive();
  EXPECT_LE(overheard.waits, 3);
  closed.unlock();
  let_time_pass(minutes(1));
  EXPECT_TRUE(seen.comes_to(2, kSoon)) << "and takes it when it has a hand free";
}

// S18: what a claim gave is held by an instance that does not know it, and is not left there until the lease
// ends.
TEST_P(AProcessorInTrouble, TakesUpWorkWhoseAnswerWasLost) {
  Person teller = person(1);
  teller.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1), loose(3)});
  let_time_pass(minutes(1));
  Seen seen;
  const auto mine = backend_->connect();
  Overheard overheard(*mine);
  overheard.lose_next_work();
  auto processor = granted(Processor::start(overheard, {.service = "orders",
                                                        .handlers = {{"Thing",
                                                                      [&](const Handling& handling) {
                                                                        seen.add(handling.work);
                                                                        return done();
                                                                      }}},
                                                        .poll = milliseconds(200)}));
  ASSERT_TRUE(seen.comes_to(3, kSoon));
  EXPECT_TRUE(overheard.has_lost_work());
  processor->drain();
  EXPECT_EQ(seen.order().at(stream(1).value), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(processor->counts().handled, 3u) << "each once";
}

// S10: nobody says so while a call hangs, and yet the handler is told when its lease ends.
TEST_P(AProcessorInTrouble, TellsAHandlerWhoseLeaseEndsDuringACall) {
  Person teller = person(1);
  teller.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1)});
  let_time_pass(minutes(1));
  Seen begun, told;
  std::atomic<bool> again = false;  // when calls get through, it claims the stream once more
  const auto mine = backend_->connect();
  Overheard overheard(*mine);
  auto processor = granted(
      Processor::start(overheard, {.service = "orders",
                                   .handlers = {{"Thing",
                                                 [&](const Handling& handling) {
                                                   const bool is_first = !again.exchange(true);
                                                   if (is_first) overheard.hold_up();
                                                   begun.add(handling.work);
                                                   if (!is_first) return given_back();
                                                   std::mutex mutex;
                                                   std::unique_lock lock(mutex);
                                                   std::condition_variable_any never;
                                                   never.wait(lock, handling.lost, [] { return false; });
                                                   told.add(handling.work);
                                                   return given_back();
                                                 }}},
                                   .threads = 1,
                                   .lease = seconds(1),
                                   .poll = milliseconds(100)}));
  EXPECT_TRUE(told.comes_to(1, kSoon));
  EXPECT_FALSE(begun.comes_to(2, std::chrono::milliseconds(0)))
      << "the next of its stream is somebody else's";
  overheard.let_through();
}

// S22: whatever a handler says of its failure, it is told as far as it can be, and nothing is held up.
TEST_P(AProcessorInTrouble, TellsOfFailuresThatSayTooMuch) {
  constexpr unsigned kMessages = 300;
  Person teller = person(1);
  std::vector<NewMessage> all;
  for (unsigned i = 0; i < kMessages; ++i) all.push_back(loose(i + 1));
  teller.store(Lane::inbox, all);
  ASSERT_TRUE(teller.coordinator->leave(teller.me.id));
  Seen seen;
  std::atomic<int> troubles = 0;
  const auto mine = backend_->connect();
  auto processor = granted(Processor::start(*mine, {.service = "orders",
                                                    .handlers = {{"Thing",
                                                                  [&](const Handling& handling) {
                                                                    seen.add(handling.work);
                                                                    return failed(std::string("\0\xff", 2) +
                                                                                  std::string(66'000, 'x'));
                                                                  }}},
                                                    .drain_max = milliseconds(1),
                                                    .trouble = [&](const Error&) { ++troubles; }}));
  EXPECT_TRUE(seen.comes_to(kMessages, kSoon));
  processor->drain();
  EXPECT_EQ(troubles, 0);
  EXPECT_EQ(processor->counts().failed, kMessages);
  teller.arrive();
  let_time_pass(minutes(4));
  const auto again = teller.claim({.limits = {.messages = 10}});
  ASSERT_EQ(again.size(), 10u);
  for (const Work& work : again) {
    EXPECT_EQ(work.failures, 1);
    EXPECT_TRUE(work.error.starts_with("??xxx"));
  }
}

// S22: a result that the coordinator refuses, for whatever reason, holds up none of the others.
TEST_P(AProcessorInTrouble, FindsTheResultThatIsRefused) {
  constexpr unsigned kMessages = 40;
  Person teller = person(1);
  std::vector<NewMessage> all;
  for (unsigned i = 0; i < kMessages; ++i) all.push_back(loose(i + 1));
  teller.store(Lane::inbox, all);
  ASSERT_TRUE(teller.coordinator->leave(teller.me.id));
  Seen seen;
  const auto mine = backend_->connect();
  Overheard overheard(*mine);
  overheard.refuses = [](const WorkBatchRequest& request) {
    return std::ranges::any_of(request.inbox_failures,
                               [](const Failure& failed) { return failed.error == "unspeakable"; });
  };
  auto processor =
      granted(Processor::start(overheard, {.service = "orders",
                                           .handlers = {{"Thing",
                                                         [&](const Handling& handling) {
                                                           seen.add(handling.work);
                                                           const bool odd =
                                                               handling.work.message == message(17);
                                                           return failed(odd ? "unspeakable" : "it broke");
                                                         }}},
                                           .drain_max = milliseconds(1)}));
  EXPECT_TRUE(seen.comes_to(kMessages, kSoon));
  processor->drain();
  EXPECT_EQ(processor->counts().lost, 0u);
  teller.arrive();
  let_time_pass(minutes(4));
  const auto again = teller.claim();
  ASSERT_EQ(again.size(), kMessages);
  for (const Work& work : again) {
    EXPECT_EQ(work.failures, 1);
    EXPECT_EQ(work.error == "it broke", work.message != message(17)) << work.error;
  }
}

// S22: long before a poll is due, and long before the lease ends.
TEST(AProcessorAtWork, RenewsItsLeaseWhenAThirdIsOver) {
  const auto backend = embedded_backend().make();
  Person teller(*backend, 1);
  teller.arrive();
  teller.store(Lane::inbox, {in_stream(1, 1)});
  ASSERT_TRUE(teller.coordinator->leave(teller.me.id));
  const auto mine = backend->connect();
  Overheard overheard(*mine);
  Seen seen;
  std::atomic<bool> lost = false;
  auto processor = granted(Processor::start(
      overheard, {.service = "orders",
                  .handlers = {{"Thing",
                                [&](const Handling& handling) {
                                  while (overheard.renewals == 0 && !handling.lost.stop_requested())
                                    std::this_thread::yield();
                                  lost = overheard.renewals == 0;
                                  seen.add(handling.work);
                                  return done();
                                }}},
                  .lease = seconds(6),
                  .poll = hours(1)}));
  ASSERT_TRUE(seen.comes_to(1, kSoon));
  EXPECT_FALSE(lost);
}

// S16, S22: however seldom it asks for work.
TEST(AProcessorAtWork, IsHeardOfBeforeItCountsAsSilent) {
  const auto backend = embedded_backend().make();
  const auto mine = backend->connect();
  Overheard overheard(*mine);
  auto processor =
      granted(Processor::start(overheard, {.service = "orders",
                                           .handlers = {{"Thing", [](const Handling&) { return done(); }}},
                                           .stale = seconds(1),
                                           .poll = hours(1)}));
  const auto give_up = std::chrono::steady_clock::now() + kSoon;
  while (overheard.turns < 3 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_GE(overheard.turns, 3);
}

// S22: threads that have nothing to do while others are slow get the next stream.
TEST_P(AProcessorInTrouble, LeavesRoomBesideAFewDeepStreams) {
  Person teller = person(1);
  std::vector<NewMessage> deep;
  for (unsigned i = 0; i < 30; ++i) deep.push_back(in_stream(i + 1, 1 + i / 10));
  teller.store(Lane::inbox, deep);
  let_time_pass(minutes(1));
  teller.store(Lane::inbox, {in_stream(100, 9)});
  let_time_pass(minutes(1));
  Seen seen;
  std::mutex gate;
  std::unique_lock closed(gate);
  const auto mine = backend_->connect();
  auto processor = granted(Processor::start(*mine, {.service = "orders",
                                                    .handlers = {{"Thing",
                                                                  [&](const Handling& handling) {
                                                                    seen.add(handling.work);
                                                                    const std::scoped_lock wait(gate);
                                                                    return done();
                                                                  }}},
                                                    .threads = 4,
                                                    .in_hand_max = 12,
                                                    .poll = milliseconds(100)}));
  EXPECT_TRUE(seen.comes_to(4, kSoon));
  EXPECT_TRUE(seen.order().contains(stream(9).value));
  closed.unlock();
}

}  // namespace
}  // namespace baton::stream
