// The loop of a service, on each implementation.
#include "stream/processor.h"

#include <mutex>
#include <stdexcept>
#include <thread>

#include "tests/stream/overheard.h"
#include "tests/stream/seen.h"

namespace baton::stream {
namespace {

class AProcessor : public Streams {};

// S22: streams in sequence, many of them at once, shared by instances.
TEST_P(AProcessor, HandlesStreamsInSequence) {
  constexpr unsigned kStreams = 20, kEach = 10;
  Person teller = person(1);
  std::vector<NewMessage> all;
  for (unsigned i = 0; i < kStreams * kEach; ++i) all.push_back(in_stream(i + 1, i % kStreams));
  teller.store(Lane::inbox, all);
  teller.coordinator->leave(teller.me.id).value();

  Seen seen;
  const ProcessorOptions options{.service = "orders",
                                 .handlers = {{"Thing",
                                               [&](const Handling& handling) {
                                                 seen.add(handling.work);
                                                 return done();
                                               }}},
                                 .poll = milliseconds(200)};
  const auto one = backend_->connect(), other = backend_->connect();
  auto first = granted(Processor::start(*one, options)), second = granted(Processor::start(*other, options));
  let_time_pass(minutes(1));  // nothing is offered to the other only
  seen.wait_for(all.size());
  first->drain();
  second->drain();
  std::vector<std::int64_t> in_order(kEach);
  for (unsigned i = 0; i < kEach; ++i) in_order[i] = i + 1;
  EXPECT_EQ(seen.order().size(), kStreams);
  for (const auto& [stream, order] : seen.order()) EXPECT_EQ(order, in_order) << to_text(stream);
  EXPECT_EQ(first->counts().handled + second->counts().handled, all.size());
  teller.arrive();
  let_time_pass(minutes(10));
  EXPECT_TRUE(teller.claim().empty()) << "all was reported before they left";
}

TEST_P(AProcessor, PublishesTheOutbox) {
  Person teller = person(1);
  NewMessage nowhere = in_stream(3, 1);
  nowhere.target.clear();
  nowhere.is_event = true;
  Broker broker;
  const auto mine = backend_->connect();
  auto processor =
      granted(Processor::start(*mine, {.service = "orders", .sink = &broker, .poll = milliseconds(200)}));
  teller.store(Lane::outbox, {in_stream(1, 1), in_stream(2, 1), nowhere, in_stream(4, 1)});
  let_time_pass(minutes(1));
  broker.published.wait_for(3);
  processor->drain();
  EXPECT_EQ(broker.published.order().at(stream(1).value), (std::vector<std::int64_t>{1, 2, 4}))
      << "an event without a destination is for the event store only";
}

// S15, S22: after a failure nothing of the stream is handled before the message is tried again.
TEST_P(AProcessor, LeavesAStreamAloneAfterAFailure) {
  Person teller = person(1);
  Seen seen;
  bool broken = true;
  const auto mine = backend_->connect();
  auto processor = granted(Processor::start(*mine, {.service = "orders",
                                                    .handlers = {{"Thing",
                                                                  [&](const Handling& handling) {
                                                                    seen.add(handling.work);
                                                                    if (std::exchange(broken, false))
                                                                      throw std::runtime_error("it broke");
                                                                    return done();
                                                                  }}},
                                                    .threads = 1,
                                                    .poll = milliseconds(100)}));
  teller.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1)});
  let_time_pass(minutes(1));
  seen.wait_for(1);
  while (!seen.comes_to(3, std::chrono::milliseconds(300))) let_time_pass(minutes(1));
  processor->drain();
  EXPECT_EQ(seen.order().at(stream(1).value), (std::vector<std::int64_t>{1, 1, 2}));
}

// S22: drains on shutdown: what runs is finished and reported, the rest is given back, unharmed.
TEST_P(AProcessor, FinishesWhatItHasBegunAndGivesBackTheRest) {
  Person teller = person(1);
  teller.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1), in_stream(3, 2)});
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
                                                    .threads = 1,
                                                    .poll = milliseconds(200)}));
  seen.wait_for(1);
  std::jthread drains([&] { processor->drain(); });
  while (processor->counts().given_back < 2) std::this_thread::yield();
  closed.unlock();
  drains.join();
  EXPECT_EQ(processor->counts().handled, 1u);
  let_time_pass(minutes(1));
  const auto rest = teller.claim();
  EXPECT_EQ(rest.size(), 2u);
  for (const Work& work : rest) EXPECT_EQ(work.deliveries, 1);
}

// S16: after an eviction, as when the machine was suspended, it goes on under another id.
TEST_P(AProcessor, BeginsAnewWhenItWasEvicted) {
  Person teller = person(1);
  Seen seen;
  const auto mine = backend_->connect();
  Overheard overheard(*mine);
  auto processor = granted(Processor::start(overheard, {.service = "orders",
                                                        .handlers = {{"Thing",
                                                                      [&](const Handling& handling) {
                                                                        seen.add(handling.work);
                                                                        return done();
                                                                      }}},
                                                        .poll = milliseconds(100)}));
  const InstanceId before = processor->instance();
  while (teller.arrive().active < 2) std::this_thread::yield();
  overheard.hold_up();
  overheard.wait_until_one_is_held_up();
  let_time_pass(hours(1));
  teller.arrive();
  teller.store(Lane::inbox, {in_stream(1, 1)});
  const auto refused = teller.coordinator->heartbeat({.id = before, .service = "orders"});
  EXPECT_EQ(refused ? Errc::closed : refused.error().code, Errc::lease_lost);
  let_time_pass(minutes(1));
  overheard.let_through();
  seen.wait_for(1);
  EXPECT_NE(processor->instance(), before);
}

TEST_P(AProcessor, IsRefusedWithoutAnythingToDo) {
  const auto mine = backend_->connect();
  EXPECT_EQ(Processor::start(*mine, {.service = "orders"}).error().code, Errc::invalid_request);
  Broker broker;
  EXPECT_EQ(Processor::start(*mine, {.service = "", .sink = &broker}).error().code, Errc::invalid_request);
  EXPECT_EQ(Processor::start(*mine, {.service = "orders", .sink = &broker, .threads = 0}).error().code,
            Errc::invalid_request);
}

// S23: an operator who looks for it knows where to look.
TEST_P(AProcessor, SaysOnWhichMachineItRuns) {
  Broker broker;
  const auto mine = backend_->connect();
  Overheard overheard(*mine);
  auto processor = granted(Processor::start(overheard, {.service = "orders", .sink = &broker}));
  EXPECT_NE(overheard.host, "");
}

INSTANTIATE_TEST_SUITE_P(On, AProcessor,
                         testing::Values(embedded_backend(), served_backend(), postgres_backend()), name_of);

}  // namespace
}  // namespace baton::stream
