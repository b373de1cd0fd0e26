#include "engine/work_coordinator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/stream/streams.h"
#include "engine/verify.h"
#include "engine/work_news.h"
#include "log/posix_disk.h"
#include "tests/damage.h"
#include "tests/life.h"
#include "tests/temporary_directory.h"

namespace baton::engine {
namespace {

using namespace stream;
using ::testing::HasSubstr;

template <class Id>
Id numbered(char kind, int number) {
  return {*parse_uuid(fmt::format("01930000-0000-7000-8000-00000000{}{:03}", kind, number))};
}

// S15: what was recorded is answered, and the message is treated as one whose handler fails.
TEST(Work, GoesOnBesideAMessageWhoseBodyIsDamaged) {
  const TemporaryDirectory data;
  CoordinatorOptions options;
  options.engine.cache_bytes = 0;  // everything is read from the disk
  const auto coordinator = Coordinator::open(data.path(), options);
  ASSERT_TRUE(coordinator);
  WorkCoordinator work(**coordinator, "n");
  const auto me = numbered<InstanceId>('a', 1);
  ASSERT_TRUE(work.heartbeat({.id = me, .service = "orders", .host = "h"}));
  std::vector<NewMessage> messages;
  for (const auto& [number, of] : {std::pair(1, 1), {2, 1}, {3, 2}})
    messages.push_back({.id = numbered<MessageId>('b', number),
                        .stream = numbered<StreamId>('c', of),
                        .type = "T",
                        .data = fmt::format(R"("body-{}")", number)});
  ASSERT_TRUE(work.store(me, Lane::inbox, messages));
  damage(data.path() + "/wal", "body-1");

  const auto claimed = work.claim(me);
  ASSERT_TRUE(claimed) << claimed.error().message;
  ASSERT_EQ(claimed->size(), 1u) << "the second of the first stream is behind the one that failed";
  EXPECT_EQ(claimed->front().data, R"("body-3")");
  core::BlobRef said;
  ASSERT_TRUE((*coordinator)->inspect([&](const core::State& state) {
    const auto& all = state.streams;
    const auto service = core::streams::find_service(all, "n", "orders");
    const auto slot = core::streams::find_message(all, service, Lane::inbox, messages[0].id);
    ASSERT_NE(slot, 0u);
    EXPECT_EQ(all.messages[slot].failures, 1u);
    said = all.messages[slot].error;
  }));
  EXPECT_THAT(std::string(text_of(*(*coordinator)->read(said))), HasSubstr("cannot be read"));
}

// Bodies of one call are read together, as many as fit, with those of other calls between them.
TEST(Work, BringsEveryBodyFromTheDisk) {
  const TemporaryDirectory data;
  CoordinatorOptions options;
  options.engine.cache_bytes = 0;
  const auto coordinator = Coordinator::open(data.path(), options);
  ASSERT_TRUE(coordinator);
  WorkCoordinator work(**coordinator, "n");
  const auto me = numbered<InstanceId>('a', 1);
  ASSERT_TRUE(work.heartbeat({.id = me, .service = "orders", .host = "h"}));
  const auto body = [](int number) {
    return '"' + std::string(static_cast<std::size_t>(number) * 97, static_cast<char>('a' + number % 26)) +
           '"';
  };
  constexpr int kCalls = 4, kEach = 60, kStreams = 7;
  for (int call = 0; call < kCalls; ++call) {
    std::vector<NewMessage> messages;
    for (int i = 0; i < kEach; ++i) {
      const int number = call * kEach + i;
      messages.push_back({.id = numbered<MessageId>('b', number),
                          .stream = numbered<StreamId>('c', number % kStreams),
                          .type = "T",
                          .data = body(number)});
    }
    ASSERT_TRUE(work.store(me, Lane::inbox, messages));
  }
  const auto claimed = work.claim(me);
  ASSERT_TRUE(claimed) << claimed.error().message;
  ASSERT_EQ(claimed->size(), std::size_t{kCalls * kEach});
  std::map<MessageId, std::string> brought;
  for (const Work& one : *claimed) brought[one.message] = one.data;
  for (int number = 0; number < kCalls * kEach; ++number)
    EXPECT_EQ(brought[numbered<MessageId>('b', number)], body(number)) << number;
}

// X2: bytes of messages are checked too, wherever they lie.
TEST(Verify, MissesTheBodiesOfMessages) {
  const TemporaryDirectory data;
  CoordinatorOptions options;
  options.log.segment_bytes = 64 * 1024;
  options.log.batch_bytes = 16 * 1024;
  {
    const auto coordinator = Coordinator::open(data.path(), options);
    ASSERT_TRUE(coordinator);
    WorkCoordinator work(**coordinator, "n");
    const auto me = numbered<InstanceId>('a', 1);
    ASSERT_TRUE(work.heartbeat({.id = me, .service = "orders", .host = "h"}));
    for (int number = 1; number <= 20; ++number)
      ASSERT_TRUE(work.store(me, Lane::inbox,
                             {{.id = numbered<MessageId>('b', number),
                               .type = "T",
                               .data = '"' + std::string(10'000, 'x') + '"'}}));
    ASSERT_TRUE((*coordinator)->make_snapshot());
    ASSERT_TRUE((*coordinator)->close());
  }
  const auto disk = log::PosixDisk::open_read_only(data.path());
  EXPECT_EQ(verify(**disk, false)->finding, Finding::intact) << verify(**disk, false)->message;
  EXPECT_EQ(verify(**disk, false)->blobs, 20u);
  std::filesystem::remove(data.path() + "/wal/0000000000000001.seg");
  const auto report = verify(**disk, false);
  EXPECT_EQ(report->finding, Finding::damaged);
  EXPECT_THAT(report->message, HasSubstr("message 01930000-"));
}

// S22: while entries come faster than they become durable, what is durable is told all the same.
TEST(NewsOfWork, IsToldWhileMoreIsOnItsWay) {
  WorkNews news;
  const core::State state;
  const auto saw = [&](core::Lsn lsn) { news.saw(state, core::InstanceLeft{}, {.lsn = lsn}); };
  saw(5), saw(7);
  news.durable(4);
  EXPECT_EQ(news.count(), 0u);
  news.durable(6);
  EXPECT_EQ(news.count(), 1u) << "of the first";
  saw(8);
  news.durable(8);
  EXPECT_EQ(news.count(), 2u) << "of the others";
  news.durable(9);
  EXPECT_EQ(news.count(), 2u) << "there was nothing new";
}

// S16: though no other instance of its service is there to notice the silence.
TEST(AnInstance, IsForgottenWhenItIsSilentForLongerThanAnybodyWaits) {
  sim::SimDisk disk;
  testing::HandClock clock;
  testing::Life life(disk, clock);
  life.expect<core::WorkProcessed>(
      core::ProcessWork{.ns = "n",
                        .instance = numbered<InstanceId>('a', 1),
                        .heartbeat = Instance{.id = numbered<InstanceId>('a', 1), .service = "once"}});
  clock.pass(days(8));
  life.ask(core::PauseQueue{.ns = "n", .queue = "q"});
  EXPECT_EQ(life.state().streams.instances.used(), 1u);
  clock.pass(minutes(11));
  life.ask(core::PauseQueue{.ns = "n", .queue = "q"});
  EXPECT_EQ(life.state().streams.instances.used(), 0u);
}

}  // namespace
}  // namespace baton::engine
