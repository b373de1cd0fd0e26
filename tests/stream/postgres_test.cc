// What holds on PostgreSQL only: the schema, and a server that goes away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "postgres/errors.h"
#include "postgres/maintenance.h"
#include "postgres/migrations.h"
#include "postgres/work_coordinator.h"
#include "stream/processor.h"
#include "tests/proxy.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"
#include "tests/stream/sessions.h"

namespace baton::stream {
namespace {

using postgres::Connection;
using postgres::DatabaseOptions;
using testing::HasSubstr;

// Transactions are at another isolation level than the one that is usual, unless they say so.
void stricter(const std::string& url) {
  tell(url, "alter database " + ask(url, "select current_database()::text") +
                " set default_transaction_isolation = 'repeatable read'");
}

// S20: however strict the database is
TEST(Migration, CanBeRepeatedAndRunByManyAtOnce) {
  const std::string url = empty_database();
  stricter(url);
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

// S20: each of them has a schema of its own, and so has what is made by the first.
TEST(Migration, IsOfOneSchemaForEverybody) {
  const std::string url = empty_database();
  tell(url, user("The Keeper", "superuser") + user("clerk", "superuser") +
                "create schema \"The Keeper\"; create schema clerk");
  granted(postgres::migrate(url + " user='The Keeper'"));
  const std::string arrives =
      "select active::text from \"The Keeper\".wh_heartbeat('" + to_text(instance(1).value) + "', 'orders')";
  EXPECT_EQ(ask(url + " user=clerk", arrives), "1");
  EXPECT_EQ(ask(url + " options='-c search_path=clerk'", arrives), "1");
  EXPECT_EQ(ask(url + " user='The Keeper'", "select count(*)::text from wh_service_instances"), "1");
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
  tell(url, "insert into wh_schema_versions (version, name, serves_from) values (999, 'of the future', 999)");
  EXPECT_EQ(postgres::migrate(url).error().code, Errc::unsupported_version);
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  EXPECT_EQ(coordinator.heartbeat(named(1)).error().code, Errc::unsupported_version);
}

// S20: instances are replaced one by one, after the schema.
TEST(Migration, ToANewerSchemaThatServesUsStopsNobody) {
  const std::string url = migrated_database();
  tell(url,
       "insert into wh_schema_versions (version, name, serves_from) select 999, 'of the future', "
       "max(version) from wh_schema_versions");
  EXPECT_EQ(granted(postgres::migrate(url)), 0);
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  granted(coordinator.heartbeat(named(1)));
}

TEST(ADatabase, ThatIsReadOnlySaysSo) {
  postgres::WorkCoordinator coordinator(
      DatabaseOptions{.url = migrated_database() + " options='-c default_transaction_read_only=on'"});
  EXPECT_EQ(coordinator.heartbeat(named(1)).error().code, Errc::permission_denied);
}

// S20: otherwise each call that meets another would have to be made again, and again.
TEST(ADatabase, MayBeStricterWithTheTransactionsOfOthers) {
  const std::string url = migrated_database();
  stricter(url);
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url, .tries = 1});
  granted(coordinator.heartbeat(named(1)));
  granted(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
  const auto changes = session(url, "update wh_streams set parked = false");
  std::jthread stores(
      [&] { EXPECT_EQ(granted(coordinator.store(instance(1), Lane::inbox, {in_stream(2, 1)})), all_ok(1)); });
  until_somebody_waits(url);
  ASSERT_TRUE(changes->execute("commit"));
}

// S22: as behind a pooler that gives each transaction another session.
TEST(ADatabase, WhoseSessionsAreMixedUpSaysHowToConnect) {
  auto connection = Connection::open(migrated_database(), seconds(5));
  ASSERT_TRUE(connection && (*connection)->execute("prepare ask_1 as select 1"));
  const auto rows = (*connection)->run(std::vector<postgres::Call>{{{"ask", "select 2"}, {}}}, {});
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().sqlstate, "42P05");
  EXPECT_THAT(postgres::error_of(rows.error()).message, HasSubstr("session mode"));
}

TEST(ADatabase, ThatIsNotThereIsUnavailable) {
  postgres::WorkCoordinator coordinator(
      DatabaseOptions{.url = "host=/nowhere user=baton", .give_up_after = milliseconds(100)});
  EXPECT_EQ(coordinator.heartbeat(named(1)).error().code, Errc::unavailable);
}

// S22: whoever starts a service hears at once that it cannot work, and what to do.
TEST(ADatabase, ThatCannotWorkIsNotStartedOn) {
  const auto refused = [](const std::string& url) {
    postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url, .give_up_after = milliseconds(100)});
    const auto started = Processor::start(
        coordinator, {.service = "orders", .handlers = {{"Thing", [](const Handling&) { return done(); }}}});
    return started ? Error{Errc::closed, "it was started"} : started.error();
  };
  const Error absent = refused("host=/nowhere user=baton");
  EXPECT_EQ(absent.code, Errc::unavailable);
  EXPECT_THAT(absent.message, HasSubstr("is its address right"));
  const Error empty = refused(empty_database());
  EXPECT_EQ(empty.code, Errc::not_found);
  EXPECT_THAT(empty.message, HasSubstr("baton stream migrate"));
  const std::string url = migrated_database();
  tell(url, user("stranger"));
  const Error strange = refused(url + " user=stranger");
  EXPECT_EQ(strange.code, Errc::permission_denied);
  EXPECT_THAT(strange.message, HasSubstr("grant it the rights"));
}

// S20: the rights that the document lists are enough, for all that a service does.
TEST(ADatabase, IsUsedWithTheRightsThatTheDocumentLists) {
  std::ifstream file(BATON_SOURCE_DIR "/docs/streams.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t from = text.find("grant usage on schema"), to = text.find("```", from);
  ASSERT_NE(from, std::string::npos);
  const std::string url = migrated_database();
  tell(url, "create table somebody_elses (a integer); " + user("shop") + text.substr(from, to - from));
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url + " user=shop"});
  WorkBatchRequest request{.instance = named(1)};
  request.new_inbox_messages = {in_stream(1, 1), in_stream(2, 1), loose(3)};
  request.new_inbox_messages[0].is_event = true;
  const WorkBatch batch = granted(coordinator.process_work_batch(request));
  ASSERT_EQ(batch.work.size(), 3u);
  WorkBatchRequest next{.instance = named(1)};
  next.inbox_completions = {{.held = batch.work[0].held(), .status = MessageStatus::event_stored}};
  next.inbox_failures = {{.held = batch.work[1].held(), .error = "no", .policy = FailurePolicy::park}};
  next.receptor_completions = {{.event = message(1), .receptor = "mail"}};
  next.perspective_completions = {{.stream = stream(1), .perspective = "totals", .last_event = message(1)}};
  next.flags = WorkFlags::debug_mode;
  granted(coordinator.process_work_batch(next));
  granted(postgres::maintain(url + " user=shop"));
  EXPECT_EQ(ask(url + " user=shop", "select wh_replay_dead_letters()::text"), "1");
  EXPECT_TRUE(coordinator.leave(instance(1)));
  EXPECT_EQ(ask(url + " user=shop", "select (count(*) > 0)::text from wh_metrics(), wh_inbox"), "true");
  for (const char* others : {"update wh_settings set setting_value = '1'", "delete from wh_schema_versions",
                             "select * from somebody_elses"})
    EXPECT_TRUE(ask(url + " user=shop", others).starts_with("42501")) << others;
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

// S22, S25: others may take long with what they ask.
TEST(ACall, ThatIsStoppedDoesNotWaitForItsTurn) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  auto blocker = Connection::open(url, seconds(5));
  ASSERT_TRUE(blocker && (*blocker)->execute("begin; lock wh_streams"));
  std::atomic<bool> is_stored = false;
  std::jthread stores([&] {
    EXPECT_TRUE(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
    is_stored = true;
  });
  while (ask(url, "select count(*)::text from pg_locks where not granted") == "0") std::this_thread::yield();
  std::stop_source stop;
  stop.request_stop();
  const auto stopped = coordinator.resume(instance(1), stop.get_token());
  EXPECT_FALSE(is_stored);
  EXPECT_EQ(stopped ? Errc::not_found : stopped.error().code, Errc::closed);
  ASSERT_TRUE((*blocker)->execute("commit"));
}

// S18, S25: the cancellation goes its own way, and may arrive when the call has ended. It must not meet
// another.
TEST(ACall, ThatWasStoppedIsTheLastOnItsConnection) {
  const std::string url = migrated_database();
  auto blocker = Connection::open(url, seconds(5)), connection = Connection::open(url, seconds(5));
  ASSERT_TRUE(connection && blocker && (*blocker)->execute("begin; lock wh_kept_messages"));
  const auto stop_when_it_waits = [&](std::stop_source& stop) {
    while (ask(url, "select count(*)::text from pg_locks where not granted") == "0")
      std::this_thread::yield();
    stop.request_stop();
  };
  std::stop_source stop, stop_waiter;
  std::jthread stopper([&] { stop_when_it_waits(stop); });
  const std::vector<postgres::Call> calls{{{"count", "select count(*) from wh_kept_messages"}, {}}};
  const auto stopped = (*connection)->run(calls, stop.get_token());
  stopper.join();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().sqlstate, "57014");
  EXPECT_FALSE((*connection)->is_alive());

  postgres::WorkCoordinator waiter(DatabaseOptions{.url = url, .maintain_every = milliseconds(1)});
  EXPECT_TRUE(granted(waiter.wait_for_work(minutes(1)))) << "nobody listened before";
  stopper = std::jthread([&] { stop_when_it_waits(stop_waiter); });
  (void)granted(waiter.wait_for_work(hours(1), stop_waiter.get_token()));
  stopper.join();
  ASSERT_TRUE((*blocker)->execute("rollback"));
  EXPECT_TRUE(granted(waiter.wait_for_work(milliseconds(1)))) << "it listens anew";
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

// S20: nobody listened when it was called.
TEST(AWakeUp, ComesAfterTheConnectionWasLost) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  EXPECT_TRUE(granted(coordinator.wait_for_work(minutes(1))));
  EXPECT_EQ(
      ask(url,
          "select bool_and(pg_terminate_backend(pid, 60000))::text from pg_stat_activity where query like "
          "'%listen wh_work' and datname = current_database()"),
      "true");
  ASSERT_TRUE(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
  EXPECT_TRUE(granted(coordinator.wait_for_work(milliseconds(1))));
}

// S19, S20: whatever becomes of maintenance, which is done meanwhile.
TEST(AWakeUp, ComesAlthoughMaintenanceFails) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  postgres::WorkCoordinator waiter(
      DatabaseOptions{.url = url, .call_max = seconds(1), .maintain_every = milliseconds(1)});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  const auto wakes = [&](unsigned number) {
    for (int i = 0; i < 3; ++i) (void)granted(waiter.wait_for_work(milliseconds(2)));
    ASSERT_TRUE(coordinator.store(instance(1), Lane::inbox, {in_stream(number, number)}));
    EXPECT_TRUE(granted(waiter.wait_for_work(minutes(1))));
  };
  auto blocker = Connection::open(url, seconds(5));
  ASSERT_TRUE(blocker && (*blocker)->execute("begin; lock wh_kept_messages"));
  wakes(1);  // it is not answered
  ASSERT_TRUE((*blocker)->execute("rollback; drop function wh_maintain"));
  wakes(2);  // it is refused
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
  while (!coordinator.heartbeat(named(1))) continue;  // a slow machine may need more than one call
  auto blocker = Connection::open(url, seconds(5));
  ASSERT_TRUE(blocker && (*blocker)->execute("begin; lock wh_streams"));
  EXPECT_EQ(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}).error().code,
            Errc::outcome_unknown);
  ASSERT_TRUE((*blocker)->execute("commit"));
  while (!coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)})) continue;
  EXPECT_EQ(ask(url, "select count(*)::text from wh_inbox"), "1") << "said twice, stored once";
}

// S18, S20: or each that is given up would keep a connection of the server, and what it has locked, for as
// long as others are in its way.
TEST(ACall, ThatIsNotAnsweredDoesNotGoOnWithoutItsCaller) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url, .call_max = milliseconds(200)});
  while (!coordinator.heartbeat(named(1))) continue;  // a slow machine may need more than one call
  auto blocker = Connection::open(url, seconds(5));
  ASSERT_TRUE(blocker && (*blocker)->execute("begin; lock wh_streams"));
  EXPECT_EQ(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}).error().code,
            Errc::outcome_unknown);
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto waiting = [&] { return ask(url, "select count(*)::text from pg_locks where not granted"); };
  while (waiting() != "0" && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_EQ(waiting(), "0");
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

// S18, S25: a database that stands still does not hear of the stop either.
TEST(ACall, ThatIsStoppedEndsThoughTheDatabaseStandsStill) {
  const std::string url = migrated_database();
  Proxy proxy(cluster().port());
  postgres::WorkCoordinator coordinator(
      DatabaseOptions{.url = "host=127.0.0.1 port=" + std::to_string(proxy.port()) +
                             " user=baton dbname=" + ask(url, "select current_database()::text"),
                      .call_max = hours(1)});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  proxy.set({.holds_replies = true});
  std::stop_source stop;
  std::jthread stopper([&, before = proxy.request_bytes()] {
    while (proxy.request_bytes() == before) std::this_thread::yield();
    proxy.set({.holds_requests = true, .holds_replies = true});
    stop.request_stop();
  });
  const auto stopped =
      coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}, kPartitions, stop.get_token());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::outcome_unknown) << stopped.error().message;
}

// S25: it was not the caller who stopped it.
TEST(ACall, ThatTheServerEndsIsNotCalledStopped) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url + " options='-c statement_timeout=100'"});
  while (!coordinator.heartbeat(named(1))) continue;  // a slow machine may need more than one call
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
