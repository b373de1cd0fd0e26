// Calls that other calls were in the way of: they are made again, so many times and not for ever.
#include <gtest/gtest.h>

#include <string_view>
#include <thread>

#include "postgres/work_coordinator.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"

namespace baton::stream {
namespace {

using postgres::DatabaseOptions;

constexpr std::string_view kAtOnce = "trigger in_the_way before insert on wh_messages";
constexpr std::string_view kAtCommit =
    "constraint trigger in_the_way after insert on wh_messages deferrable initially deferred";

// A database in which the first so many attempts to store fail in this way. Each is counted, whatever becomes
// of it.
std::string failing_database(const std::string& state, int times, std::string_view when = kAtOnce) {
  const std::string url = migrated_database();
  tell(url,
       "create sequence attempts; create function get_in_the_way() returns trigger language plpgsql as $$ "
       "begin "
       "if nextval('attempts') <= " +
           std::to_string(times) + " then raise exception using errcode = '" + state +
           "', message = 'in the way'; end if; return new; end $$; create " + std::string(when) +
           " for each row execute function get_in_the_way()");
  return url;
}

std::string attempts(const std::string& url) { return ask(url, "select last_value::text from attempts"); }

Result<std::vector<Verdict>> store(const std::string& url, int tries, std::stop_token stop = {}) {
  postgres::WorkCoordinator coordinator(DatabaseOptions{
      .url = url, .backoff_min = milliseconds(1), .backoff_max = milliseconds(1), .tries = tries});
  granted(coordinator.heartbeat(named(1)));
  return coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}, kPartitions, stop);
}

class ACallThatIsInTheWay : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Of, ACallThatIsInTheWay, testing::Values("40P01", "40001"));

// S20
TEST_P(ACallThatIsInTheWay, IsMadeAgain) {
  const std::string url = failing_database(GetParam(), 3);
  EXPECT_EQ(granted(store(url, 4)), all_ok(1));
  EXPECT_EQ(attempts(url), "4");
  EXPECT_EQ(ask(url, "select concat(count(*), min(seq)) from wh_inbox"), "11");
}

// S20
TEST_P(ACallThatIsInTheWay, IsGivenUpAfterSoManyTries) {
  const std::string url = failing_database(GetParam(), 1000);
  EXPECT_EQ(store(url, 4).error().code, Errc::unavailable);
  EXPECT_EQ(attempts(url), "4");
  EXPECT_EQ(ask(url, "select count(*)::text from wh_inbox"), "0");
}

// S20: the calls went well, and what they did is undone all the same.
TEST_P(ACallThatIsInTheWay, IsMadeAgainIfItsCommitFails) {
  const std::string url = failing_database(GetParam(), 3, kAtCommit);
  EXPECT_EQ(granted(store(url, 4)), all_ok(1));
  EXPECT_EQ(attempts(url), "4");
  EXPECT_EQ(ask(url, "select concat(count(*), min(seq)) from wh_inbox"), "11");
}

// S18: what was undone is not called done, and the next call gets its own answer.
TEST(ACallThatIsWrong, IsRefusedAlsoByItsCommit) {
  const std::string url = failing_database("23000", 1, kAtCommit);
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  granted(coordinator.heartbeat(named(1)));
  const auto refused = coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1), in_stream(2, 1)});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("in the way"), std::string::npos) << refused.error().message;
  EXPECT_EQ(ask(url, "select count(*)::text from wh_messages"), "0");
  tell(url, "drop trigger in_the_way on wh_messages");
  EXPECT_EQ(granted(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)})), all_ok(1));
  EXPECT_EQ(ids(granted(coordinator.claim(instance(1)))), messages({1}));
}

// S25: what would fail again is not tried again.
TEST(ACallThatIsWrong, IsMadeOnce) {
  const std::string url = failing_database("22000", 1000);
  EXPECT_EQ(store(url, 4).error().code, Errc::invalid_request);
  EXPECT_EQ(attempts(url), "1");
}

// S18: whoever is stopped between two tries has done nothing.
TEST(ACallThatIsStopped, IsNotMadeAgain) {
  const std::string url = failing_database("40001", 1000);
  std::stop_source stop;
  postgres::WorkCoordinator coordinator(
      DatabaseOptions{.url = url, .backoff_min = hours(1), .backoff_max = hours(1), .tries = 4});
  granted(coordinator.heartbeat(named(1)));
  std::jthread stopper([&] {
    while (attempts(url) != "1" || ask(url, "select is_called::text from attempts") != "true")
      std::this_thread::yield();
    stop.request_stop();
  });
  EXPECT_EQ(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}, kPartitions, stop.get_token())
                .error()
                .code,
            Errc::closed);
  EXPECT_EQ(attempts(url), "1");
}

}  // namespace
}  // namespace baton::stream
