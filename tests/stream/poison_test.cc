// A message that kills whoever handles it, again and again.
#include <gtest/gtest.h>

#include "postgres/work_coordinator.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"

namespace baton::stream {
namespace {

constexpr unsigned kPoison = 2;

struct Shop {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator{{.url = url}};

  Shop() { granted(coordinator.heartbeat(named(1))); }
  // Somebody takes what there is, reports what is harmless, and dies at the poison; how many it was given.
  std::size_t live_and_die() {
    age(url, minutes(6));
    const auto work = granted(coordinator.claim(instance(1)));
    for (const Work& one : work) {
      if (one.message == message(kPoison)) break;
      granted(coordinator.complete(instance(1), one.lane,
                                   {{.held = one.held(), .status = MessageStatus::event_stored}}));
    }
    return work.size();
  }
  std::string dead() {
    return ask(
        url,
        "select string_agg(concat(right(message_id::text, 1), ' ', deliveries, ' ', failure_reason), ', ') "
        "from wh_dead_letters");
  }
};

// S15: a dead letter by deliveries that were lost, not only by failures that were reported.
TEST(AMessageThatKillsItsHandler, BecomesADeadLetterAndItsStreamGoesOn) {
  Shop shop;
  granted(shop.coordinator.store(instance(1), Lane::inbox,
                                 {in_stream(1, 1), in_stream(kPoison, 1), in_stream(3, 1), in_stream(4, 1)}));
  EXPECT_EQ(shop.live_and_die(), 4u);
  for (int death = 2; death <= 3; ++death) EXPECT_EQ(shop.live_and_die(), 3u);
  for (int death = 4; death <= 10; ++death)
    EXPECT_EQ(shop.live_and_die(), 1u) << "it is suspected, and alone";
  EXPECT_EQ(shop.dead(), "");
  while (shop.live_and_die() > 0) continue;
  EXPECT_EQ(shop.dead(), "2 10 5");
  EXPECT_EQ(ask(shop.url, "select count(*)::text from wh_messages"), "0") << "those behind it were handled";
}

TEST(AMessageThatKillsItsHandler, ParksItsStreamIfItsPolicySaysSo) {
  Shop shop;
  NewMessage poison = in_stream(kPoison, 1);
  poison.policy = FailurePolicy::park_stream;
  granted(shop.coordinator.store(instance(1), Lane::inbox, {poison, in_stream(3, 1)}));
  for (int death = 1; death <= 10; ++death) EXPECT_GE(shop.live_and_die(), 1u);
  EXPECT_EQ(shop.live_and_die(), 0u);
  EXPECT_EQ(shop.dead(), "2 10 5");
  EXPECT_EQ(ask(shop.url, "select count(*)::text from wh_streams where parked and pending = 1"), "1");
  tell(shop.url, "select wh_replay_dead_letter(dead_letter_id) from wh_dead_letters");
  EXPECT_EQ(shop.live_and_die(), 1u) << "replayed, it begins anew; the one behind it is still suspected";
  EXPECT_EQ(shop.dead(), "");
}

TEST(AMessageThatKillsItsHandler, IsBuriedWithoutAStreamToo) {
  Shop shop;
  granted(shop.coordinator.store(instance(1), Lane::inbox, {loose(kPoison), loose(3)}));
  while (shop.live_and_die() > 0) continue;
  EXPECT_TRUE(shop.dead().starts_with("2 10 5")) << shop.dead();
}

TEST(AMessageThatKillsItsHandler, IsTriedForEverIfSomebodyWantsThat) {
  Shop shop;
  tell(shop.url, "update wh_settings set setting_value = 0 where setting_key = 'max_lost_deliveries'");
  granted(shop.coordinator.store(instance(1), Lane::inbox, {in_stream(kPoison, 1)}));
  for (int death = 1; death <= 15; ++death) EXPECT_EQ(shop.live_and_die(), 1u);
}

// Whoever leaves, or is evicted while its machine is suspended, is not to blame for long: a message that was
// given back does not count.
TEST(AMessageThatWasGivenBack, IsNotSuspected) {
  Shop shop;
  granted(shop.coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1), in_stream(2, 1)}));
  for (int turn = 0; turn < 15; ++turn) {
    granted(shop.coordinator.heartbeat(named(1)));
    age(shop.url, minutes(1));
    EXPECT_EQ(granted(shop.coordinator.claim(instance(1))).size(), 2u);
    EXPECT_TRUE(shop.coordinator.leave(instance(1)));
  }
}

}  // namespace
}  // namespace baton::stream
