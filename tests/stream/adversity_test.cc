// The loop of a service when things go wrong around it: full hands, lost answers, calls that hang, a broker
// that is away.
#include <condition_variable>
#include <mutex>

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

// Says that it is away so many times, and only then publishes.
class AbsentBroker final : public Sink {
 public:
  Status publish(const Work& work, std::stop_token) override {
    if (absences.fetch_sub(1) > 0) return failure(Errc::unavailable, "the broker is away");
    published.add(work);
    failures += work.failures;
    return {};
  }
  std::atomic<int> absences = 30;
  std::atomic<int> failures = 0;
  Seen published;
};

// S15: a broker that is away is nobody's failure, so nothing dies and nothing overtakes.
TEST_P(AProcessorInTrouble, PublishesInOrderWhenTheBrokerIsBack) {
  Person teller = person(1);
  teller.store(Lane::outbox, {in_stream(1, 1), in_stream(2, 1), in_stream(3, 1)});
  ASSERT_TRUE(teller.coordinator->leave(teller.me.id)) << "what goes back is offered to nobody else first";
  AbsentBroker broker;
  const auto mine = backend_->connect();
  auto processor = granted(Processor::start(*mine, {.service = "orders",
                                                    .sink = &broker,
                                                    .poll = milliseconds(20),
                                                    .backoff_min = milliseconds(1),
                                                    .backoff_max = milliseconds(20)}));
  ASSERT_TRUE(broker.published.comes_to(3, kSoon));
  processor->drain();
  EXPECT_EQ(broker.published.order().at(stream(1).value), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(broker.failures, 0);
  EXPECT_EQ(processor->counts().failed, 0u);
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
