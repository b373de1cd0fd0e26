// Many sessions of PostgreSQL at once that say nothing but that they are there.
#include <gtest/gtest.h>

#include <thread>

#include "postgres/work_coordinator.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"

namespace baton::stream {
namespace {

using postgres::DatabaseOptions;

// S16: they are not in each other's way, none is taken for gone, and whoever is gone is gone for all.
TEST(ManySessions, SayThatTheyAreAliveWhileOneIsEvicted) {
  constexpr unsigned kSessions = 8;
  const std::string url = migrated_database();
  postgres::WorkCoordinator silent(DatabaseOptions{.url = url});
  ASSERT_TRUE(silent.heartbeat(named(100)));
  ASSERT_TRUE(silent.store(instance(100), Lane::inbox, {in_stream(1, 1)}));
  ASSERT_EQ(granted(silent.claim(instance(100))).size(), 1u);
  age(url, minutes(11));
  {
    std::vector<std::jthread> sessions;
    for (unsigned i = 1; i <= kSessions; ++i) {
      sessions.emplace_back([&, i] {
        postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url, .tries = 1});
        for (int beat = 0; beat < 20; ++beat) {
          const auto standing = coordinator.heartbeat(named(i));
          EXPECT_TRUE(standing) << standing.error().message;
        }
      });
    }
  }
  EXPECT_EQ(ask(url, "select count(*)::text from wh_service_instances"), std::to_string(kSessions));
  EXPECT_EQ(silent.heartbeat(named(100)).error().code, Errc::lease_lost);
  EXPECT_EQ(ask(url, "select count(*)::text from wh_service_instances"), std::to_string(kSessions))
      << "nothing of a refused call is kept";
  EXPECT_EQ(ids(granted(silent.claim(instance(1)))), messages({1})) << "what it held is free";
}

}  // namespace
}  // namespace baton::stream
