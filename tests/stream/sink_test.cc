// The loop of a service whose sink is away, is told to stop, or does not take everything.
#include <condition_variable>
#include <mutex>
#include <thread>

#include "stream/processor.h"
#include "tests/stream/overheard.h"
#include "tests/stream/seen.h"

namespace baton::stream {
namespace {

class AProcessorWithASink : public Streams {};
INSTANTIATE_TEST_SUITE_P(On, AProcessorWithASink,
                         testing::Values(embedded_backend(), served_backend(), postgres_backend()), name_of);

constexpr std::chrono::seconds kSoon(20);  // long before a lease ends

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
TEST_P(AProcessorWithASink, PublishesInOrderWhenTheBrokerIsBack) {
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

// S22: while the outbox rests nothing can be claimed, and nobody asks again and again.
TEST_P(AProcessorWithASink, RestsWhileTheBrokerIsAway) {
  Person teller = person(1);
  teller.store(Lane::outbox, {in_stream(1, 1), in_stream(2, 2)});
  let_time_pass(minutes(1));
  AbsentBroker broker;
  const auto mine = backend_->connect();
  Overheard overheard(*mine);
  auto processor = granted(Processor::start(overheard, {.service = "orders",
                                                        .sink = &broker,
                                                        .threads = 1,
                                                        .poll = hours(1),
                                                        .backoff_min = hours(1),
                                                        .backoff_max = hours(1)}));
  while (processor->counts().given_back < 2) std::this_thread::yield();
  for (unsigned i = 0; i < 50; ++i) teller.store(Lane::outbox, {in_stream(i + 3, i + 3)});
  EXPECT_LE(overheard.turns, 5);
}

// Waits until it is told to stop.
class SlowBroker final : public Sink {
 public:
  explicit SlowBroker(Errc says) : code(says) {}

  Status publish(const Work& work, std::stop_token lost) override {
    begun.add(work);
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any never;
    never.wait(lock, lost, [] { return false; });
    return failure(code, "stopped");
  }
  const Errc code;
  Seen begun;
};

// S22: a sink that stops when it is told to has not failed.
TEST_P(AProcessorWithASink, GivesBackWhatItsSinkWasToldToStop) {
  Person teller = person(1);
  for (const Errc code : {Errc::closed, Errc::invalid_request}) {
    teller.store(Lane::outbox, {in_stream(code == Errc::closed ? 1 : 2, 1)});
    let_time_pass(minutes(1));
    SlowBroker broker(code);
    const auto mine = backend_->connect();
    auto processor = granted(Processor::start(
        *mine,
        {.service = "orders", .sink = &broker, .poll = milliseconds(100), .drain_max = milliseconds(1)}));
    ASSERT_TRUE(broker.begun.comes_to(1, kSoon));
    processor->drain();
    EXPECT_EQ(processor->counts().failed, 0u);
    EXPECT_GE(processor->counts().given_back, 1u);
  }
  let_time_pass(minutes(1));
  const auto again = teller.claim();
  ASSERT_EQ(again.size(), 2u);
  for (const Work& work : again) EXPECT_EQ(work.failures, 0);
}

class NarrowBroker final : public Sink {
 public:
  Status publish(const Work& work, std::stop_token) override {
    if (work.message != message(1)) return published.add(work), Status{};
    tried.add(work);
    return failure(Errc::too_large, "at most 256 KiB");
  }
  Seen tried, published;
};

// S15: what is too large now is so later. It is not tried ten times while its stream waits.
TEST_P(AProcessorWithASink, DoesNotTryForLongWhatIsTooLarge) {
  Person teller = person(1);
  teller.store(Lane::outbox, {in_stream(1, 1), in_stream(2, 1)});
  ASSERT_TRUE(teller.coordinator->leave(teller.me.id));
  NarrowBroker broker;
  const auto mine = backend_->connect();
  auto processor =
      granted(Processor::start(*mine, {.service = "orders", .sink = &broker, .poll = milliseconds(100)}));
  ASSERT_TRUE(broker.tried.comes_to(1, kSoon));
  while (!broker.published.comes_to(1, std::chrono::milliseconds(300))) let_time_pass(minutes(1));
  EXPECT_EQ(broker.tried.order().at(stream(1).value).size(), 2u);
  EXPECT_EQ(broker.published.order().at(stream(1).value), (std::vector<std::int64_t>{2}));
  processor->drain();
  EXPECT_EQ(backend_->replay_dead_letters(), 1);
}

}  // namespace
}  // namespace baton::stream
