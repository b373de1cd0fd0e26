// What holds on PostgreSQL only: the schema, and a server that goes away.
#include <gtest/gtest.h>

#include <thread>

#include "postgres/migrations.h"
#include "postgres/work_coordinator.h"
#include "tests/proxy.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"

namespace baton::stream {
namespace {

using postgres::Connection;
using postgres::DatabaseOptions;

// S20
TEST(Migration, CanBeRepeatedAndRunByManyAtOnce) {
  const std::string url = empty_database();
  const int files = postgres::migrations().back().version;
  std::atomic<int> added = 0, failed = 0;
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < 4; ++i) {
      all.emplace_back([&] {
        const auto done = postgres::migrate(url);
        done ? added += *done : ++failed;
      });
    }
  }
  EXPECT_EQ(added, files);
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(postgres::migrate(url).value(), 0);
  EXPECT_EQ(ask(url, "select count(*)::text from wh_schema_versions"), std::to_string(files));
}

TEST(Migration, IsAskedForWhereItIsMissing) {
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = empty_database()});
  const auto refused = coordinator.heartbeat(named(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::not_found);
  EXPECT_NE(refused.error().message.find("migrate"), std::string::npos);
}

TEST(Migration, LeavesANewerSchemaAlone) {
  const std::string url = migrated_database();
  tell(url, "insert into wh_schema_versions values (999, 'of the future')");
  EXPECT_EQ(postgres::migrate(url).error().code, Errc::unsupported_version);
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  EXPECT_EQ(coordinator.heartbeat(named(1)).error().code, Errc::unsupported_version);
}

TEST(ADatabase, ThatIsReadOnlySaysSo) {
  postgres::WorkCoordinator coordinator(
      DatabaseOptions{.url = migrated_database() + " options='-c default_transaction_read_only=on'"});
  EXPECT_EQ(coordinator.heartbeat(named(1)).error().code, Errc::permission_denied);
}

TEST(ADatabase, ThatIsNotThereIsUnavailable) {
  postgres::WorkCoordinator coordinator(
      DatabaseOptions{.url = "host=/nowhere user=baton", .give_up_after = milliseconds(100)});
  EXPECT_EQ(coordinator.heartbeat(named(1)).error().code, Errc::unavailable);
}

// S18: the next call finds the server again, and nothing of the one that was cut off is half there.
TEST(ADatabase, ThatWentAwayIsFoundAgain) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  ASSERT_TRUE(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
  cluster().stop();
  cluster().start();
  const auto work = coordinator.claim(instance(1));
  ASSERT_TRUE(work) << work.error().message;
  EXPECT_EQ(ids(*work), messages({1}));
}

// S18, S25: a call that waits for a lock is cut off in the middle, once by its caller and once by the server.
TEST(ACall, ThatIsCutOffInTheMiddleHasNotHappened) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url, .tries = 1});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  ASSERT_TRUE(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
  auto blocker = Connection::open(url, seconds(5));
  ASSERT_TRUE(blocker && (*blocker)->execute("begin; lock wh_streams"));
  const auto until_it_waits = [&] {
    while (ask(url, "select count(*)::text from pg_locks where not granted") == "0")
      std::this_thread::yield();
  };

  std::stop_source stop;
  std::jthread stopper([&] { until_it_waits(), stop.request_stop(); });
  const auto stopped =
      coordinator.store(instance(1), Lane::inbox, {in_stream(2, 1)}, kPartitions, stop.get_token());
  stopper.join();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::closed);

  std::jthread killer([&] {
    until_it_waits();
    ask(url, "select count(pg_terminate_backend(pid))::text from pg_locks where not granted");
  });
  const auto killed = coordinator.store(instance(1), Lane::inbox, {in_stream(2, 1)});
  killer.join();
  ASSERT_FALSE(killed);
  EXPECT_EQ(killed.error().code, Errc::unavailable) << killed.error().message;

  ASSERT_TRUE((*blocker)->execute("commit"));
  EXPECT_EQ(ask(url, "select count(*)::text from wh_messages"), "1");
  EXPECT_EQ(granted(coordinator.store(instance(1), Lane::inbox, {in_stream(2, 1)})), all_ok(1));
}

// S20: only a stream that had nothing to do rings.
TEST(AWakeUp, ComesWhenThereIsWorkWhereNoneWas) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  EXPECT_TRUE(granted(coordinator.wait_for_work(minutes(1)))) << "nobody listened before";
  EXPECT_FALSE(granted(coordinator.wait_for_work(milliseconds(1))));
  ASSERT_TRUE(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
  EXPECT_TRUE(granted(coordinator.wait_for_work(minutes(1))));
  ASSERT_TRUE(coordinator.store(instance(1), Lane::inbox, {in_stream(2, 1)}));
  EXPECT_FALSE(granted(coordinator.wait_for_work(milliseconds(1))));
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_FALSE(granted(coordinator.wait_for_work(minutes(10), stop.get_token())));
}

// S20: neither is another service's work, but what an instance leaves behind is.
TEST(AWakeUp, IsForWhoeverCanDoTheWork) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url}), other(DatabaseOptions{.url = url});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  ASSERT_TRUE(coordinator.heartbeat(named(2)));
  ASSERT_TRUE(other.heartbeat({.id = instance(3), .service = "mail"}));
  ASSERT_TRUE(granted(coordinator.wait_for_work(milliseconds(1))));
  ASSERT_TRUE(other.store(instance(3), Lane::inbox, {in_stream(1, 1)}));
  EXPECT_FALSE(granted(coordinator.wait_for_work(milliseconds(1))));
  ASSERT_TRUE(coordinator.leave(instance(2)));
  EXPECT_TRUE(granted(coordinator.wait_for_work(minutes(1))));
}

// S18: a call that gets no answer ends all the same, and the next one is made.
TEST(ACall, ThatIsNotAnsweredHasAnUnknownOutcome) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url, .call_max = milliseconds(200)});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  auto blocker = Connection::open(url, seconds(5));
  ASSERT_TRUE(blocker && (*blocker)->execute("begin; lock wh_streams"));
  EXPECT_EQ(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}).error().code,
            Errc::outcome_unknown);
  ASSERT_TRUE((*blocker)->execute("commit"));
  EXPECT_TRUE(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
  EXPECT_EQ(ask(url, "select count(*)::text from wh_inbox"), "1") << "said twice, stored once";
}

// S18: the answer is on its way when the line is cut. It has happened, and may be said again.
TEST(ACall, WhoseConnectionIsCutMayBeRepeated) {
  const std::string url = migrated_database();
  Proxy proxy(cluster().port());
  postgres::WorkCoordinator coordinator(
      DatabaseOptions{.url = "host=127.0.0.1 port=" + std::to_string(proxy.port()) +
                             " user=baton dbname=" + ask(url, "select current_database()::text")});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  proxy.set({.cut_replies_after = 0});
  const auto cut = coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)});
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Errc::outcome_unknown) << cut.error().message;
  proxy.set({});
  EXPECT_EQ(granted(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)})),
            std::vector{Verdict::duplicate});
}

// S25: it was not the caller who stopped it.
TEST(ACall, ThatTheServerEndsIsNotCalledStopped) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url + " options='-c statement_timeout=100'"});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  auto blocker = Connection::open(url, seconds(5));
  ASSERT_TRUE(blocker && (*blocker)->execute("begin; lock wh_streams"));
  EXPECT_EQ(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}).error().code, Errc::unavailable);
}

// Two statements of one name, which need not outlive the call either.
TEST(AConnection, PreparesStatementsByWhatTheySay) {
  auto connection = Connection::open(migrated_database(), seconds(5));
  ASSERT_TRUE(connection);
  const auto answer = [&](const std::string& sql) {
    const std::string name = "store";
    const std::vector<postgres::Call> calls{{{name.c_str(), sql.c_str()}, {}}};
    auto rows = (*connection)->run(calls, {});
    return rows ? std::string(rows->front().text(0, 0)) : rows.error().message;
  };
  EXPECT_EQ(answer("select 'one'::text"), "one");
  EXPECT_EQ(answer("select 'two'::text"), "two");
  EXPECT_EQ(answer("select 'one'::text"), "one");
}

}  // namespace
}  // namespace baton::stream
