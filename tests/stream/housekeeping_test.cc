// What is past its time, and what nobody tries any more.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "postgres/maintenance.h"
#include "postgres/work_coordinator.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"

namespace baton::stream {
namespace {

using postgres::DatabaseOptions;

// S13, S19
TEST(Maintenance, ForgetsWhatIsPastItsTime) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  WorkBatchRequest request{.instance = named(1)};
  request.new_inbox_messages = {in_stream(1, 1)};
  const WorkBatch batch = granted(coordinator.process_work_batch(request));
  granted(coordinator.complete(instance(1), Lane::inbox,
                               {{.held = batch.work.at(0).held(), .status = MessageStatus::event_stored}},
                               WorkFlags::debug_mode));
  const std::string tidy =
      "select string_agg(concat(task, ' ', affected), ', ' order by task) from wh_maintain()";
  EXPECT_EQ(ask(url, tidy), "deduplication 0, idle streams 0, kept messages 0, tombstones 0");
  age(url, days(31));
  EXPECT_EQ(ask(url, tidy), "deduplication 1, idle streams 1, kept messages 1, tombstones 0");
}

// S19: a bounded amount at a time, and all of it in the end; also by itself, while a service waits for work.
TEST(Maintenance, GoesOnUntilNothingIsLeft) {
  const std::string url = migrated_database();
  const auto fill = [&] {
    tell(url,
         "insert into wh_message_deduplication select 1, gen_random_uuid(), now() - interval '31 days' from "
         "generate_series(1, 10005)");
  };
  const std::string left = "select count(*)::text from wh_message_deduplication";
  fill();
  EXPECT_EQ(ask(url, "select affected::text from wh_maintain(2) where task = 'deduplication'"), "2");
  EXPECT_EQ(granted(postgres::maintain(url)), 10003u);
  EXPECT_EQ(ask(url, left), "0");
  fill();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url, .maintain_every = milliseconds(1)});
  while (ask(url, left) != "0") granted(coordinator.wait_for_work(milliseconds(10)));
}

// S19, S20: whoever waits for work came for that, and hears of none meanwhile.
TEST(Maintenance, DoesABoundedAmountEachTimeSomebodyWaitsForWork) {
  const std::string url = migrated_database();
  tell(url,
       "insert into wh_message_deduplication select 1, gen_random_uuid(), now() - interval '31 days' from "
       "generate_series(1, 25000)");
  const auto left = [&] { return ask(url, "select count(*)::text from wh_message_deduplication"); };
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url, .maintain_every = milliseconds(500)});
  while (left() == "25000") granted(coordinator.wait_for_work(milliseconds(1)));
  EXPECT_EQ(left(), "15000");
  granted(coordinator.wait_for_work(milliseconds(1)));
  EXPECT_EQ(left(), "5000") << "what is left is not put off";
  granted(coordinator.wait_for_work(milliseconds(1)));
  EXPECT_EQ(left(), "0");
}

// S13, S19: nobody comes to disturb whoever waits, and yet what is left is not put off until then.
TEST(Maintenance, GoesOnWhileSomebodyWaitsForLong) {
  const std::string url = migrated_database();
  tell(url,
       "insert into wh_message_deduplication select 1, gen_random_uuid(), now() - interval '31 days' from "
       "generate_series(1, 25000)");
  const auto left = [&] { return ask(url, "select count(*)::text from wh_message_deduplication"); };
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url, .maintain_every = milliseconds(1)});
  granted(coordinator.wait_for_work(milliseconds(1)));
  std::stop_source stop;
  std::jthread waits([&] { granted(coordinator.wait_for_work(hours(1), stop.get_token())); });
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (left() != "0" && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_EQ(left(), "0");
  stop.request_stop();
}

// S19: eight instances that each do it every minute are not to do it eight times.
TEST(Maintenance, IsDoneOnceForAllInstances) {
  const std::string url = migrated_database();
  auto connection = postgres::Connection::open(url, seconds(5));
  ASSERT_TRUE(connection);
  const auto forgotten = [&] {
    const auto done = postgres::maintain(**connection, seconds(30));
    return done ? std::to_string(done->forgotten) : done.error().message;
  };
  const auto fill = [&] {
    tell(url, "insert into wh_message_deduplication select 1, gen_random_uuid(), now() - interval '31 days'");
  };
  fill();
  EXPECT_EQ(forgotten(), "1");
  fill();
  EXPECT_EQ(forgotten(), "0") << "somebody has just done it";
  age(url, seconds(31));
  EXPECT_EQ(forgotten(), "1");
}

std::string asked_within(const std::string& url, const std::string& begun, const std::string& question) {
  auto connection = postgres::Connection::open(url, seconds(5));
  if (!connection || !(*connection)->execute("begin; " + begun)) return "it cannot be done";
  const auto rows = (*connection)->run(std::vector<postgres::Call>{{{"question", question.c_str()}, {}}}, {});
  return rows ? std::string(rows->front().text(0, 0)) : rows.error().message;
}

// S19: what it costs depends on what is past its time, and not on what is there.
TEST(Maintenance, ReadsNoTableFromEndToEnd) {
  EXPECT_EQ(asked_within(migrated_database(), "select wh_maintain()",
                         "select string_agg(relname || ' ' || seq_scan, ', ') from pg_stat_xact_user_tables "
                         "where seq_scan > 0 and relname in ('wh_message_deduplication', 'wh_kept_messages', "
                         "'wh_streams', 'wh_messages', 'wh_dead_letters')"),
            "");
}

// S20: nearly every report is of this kind, and each index would have to be told.
TEST(AReportOnAPartOfAStream, ChangesNoIndexOfStreams) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  WorkBatchRequest request{.instance = named(1)};
  request.new_inbox_messages = {in_stream(1, 1), in_stream(2, 1)};
  ASSERT_EQ(granted(coordinator.process_work_batch(request)).work.size(), 2u);
  EXPECT_EQ(asked_within(url,
                         "select wh_complete('" + to_text(instance(1).value) + "', 2::smallint, array['" +
                             to_text(message(1).value) + "'::uuid], array[2], array[null::bigint])",
                         "select concat(n_tup_upd, ' ', n_tup_hot_upd) from pg_stat_xact_user_tables where "
                         "relname = 'wh_streams'"),
            "1 1");
}

// S13: the window is a setting, and 0 means for ever.
TEST(Maintenance, KeepsToTheWindowThatIsSet) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  const auto stored_after = [&](const std::string& window, Duration age_of_it, unsigned number) {
    tell(url, "update wh_settings set setting_value = '" + window +
                  "' where setting_key = 'dedup_retention_days'; delete from wh_messages");
    granted(coordinator.heartbeat(named(number)));
    granted(coordinator.store(instance(number), Lane::inbox, {loose(number)}));
    tell(url, "delete from wh_messages");  // as if it were done
    age(url, age_of_it);
    granted(postgres::maintain(url));
    granted(coordinator.heartbeat(named(number + 10)));
    return granted(coordinator.store(instance(number + 10), Lane::inbox, {loose(number)})).at(0);
  };
  EXPECT_EQ(stored_after("2", hours(47), 1), Verdict::duplicate);
  EXPECT_EQ(stored_after("2", hours(49), 2), Verdict::ok);
  EXPECT_EQ(stored_after("0", days(4000), 3), Verdict::duplicate);
}

// S15
TEST(DeadLetters, CanBeListedReplayedAndPurged) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  WorkBatchRequest request{.instance = named(1)};
  request.new_inbox_messages = {in_stream(1, 1), in_stream(2, 1)};
  const WorkBatch batch = granted(coordinator.process_work_batch(request));
  granted(coordinator.fail(
      instance(1), Lane::inbox,
      {{.held = batch.work.at(0).held(), .error = "no", .policy = FailurePolicy::park_stream}}));
  EXPECT_EQ(
      ask(url,
          "select concat_ws(',', error, seq, failures, parks_stream, message_type) from wh_dead_letters"),
      "no,1,1,t,Thing");
  EXPECT_EQ(ask(url, "select wh_purge_dead_letters('1 day')::text"), "0");
  EXPECT_EQ(ask(url, "select wh_purge_dead_letters()::text"), "1");
  granted(coordinator.release(instance(1), Lane::inbox, {batch.work.at(1).held()}));
  EXPECT_EQ(ids(granted(coordinator.claim(instance(1)))), messages({2})) << "the stream goes on";
  EXPECT_EQ(ask(url, "select wh_replay_dead_letter(1)::text"), "false");
}

// S15: a letter of a message that was stored once more stays where it is.
TEST(DeadLetters, AreNotReplayedOntoAMessageThatWaits) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  WorkBatchRequest request{.instance = named(1)};
  request.new_outbox_messages = {in_stream(1, 1)};
  for (int letter = 1; letter <= 2; ++letter) {
    const WorkBatch batch = granted(coordinator.process_work_batch(request));
    granted(
        coordinator.fail(instance(1), Lane::outbox,
                         {{.held = batch.work.at(0).held(), .error = "no", .policy = FailurePolicy::park}}));
  }
  EXPECT_EQ(ask(url, "select wh_replay_dead_letters()::text"), "1") << "the older of the two";
  EXPECT_EQ(ask(url, "select wh_replay_dead_letters()::text"), "0");
  const std::string refused =
      ask(url, "select wh_replay_dead_letter(dead_letter_id)::text from wh_dead_letters");
  EXPECT_TRUE(refused.starts_with("WH006") && refused.find("waits already") != std::string::npos) << refused;
  EXPECT_EQ(ask(url, "select count(*)::text from wh_dead_letters"), "1");
  request.new_outbox_messages = {in_stream(2, 2)};
  const WorkBatch batch = granted(coordinator.process_work_batch(request));
  granted(
      coordinator.fail(instance(1), Lane::outbox,
                       {{.held = batch.work.back().held(), .error = "no", .policy = FailurePolicy::park}}));
  EXPECT_EQ(ask(url, "select wh_replay_dead_letters(at_most => 1)::text"), "1")
      << "nor does it keep others from being replayed";
}

}  // namespace
}  // namespace baton::stream
