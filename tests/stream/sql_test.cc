// The functions and views as plain SQL sees them, from any language.
#include <gtest/gtest.h>

#include <fstream>

#include "postgres/work_coordinator.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"

namespace baton::stream {
namespace {

using postgres::Connection;
using postgres::DatabaseOptions;

constexpr const char* kOne = "'03000000-0000-0000-0000-000000000001'";
constexpr const char* kTwo = "'03000000-0000-0000-0000-000000000002'";

Instance named(unsigned number) { return {.id = instance(number), .service = "orders"}; }

// S25: one result set, from any language; the parameters have the source's names and defaults.
TEST(ProcessWorkBatch, IsOneFunctionInSql) {
  const std::string url = migrated_database();
  const std::string call = std::string(
                               "select string_agg(concat_ws(':', kind, source, nth, verdict, seq), ' ') from "
                               "process_work_batch(") +
                           kOne + ", 'orders'";
  EXPECT_EQ(ask(url, call + R"(, p_new_outbox_messages => '[
      {"MessageId": "01000000-0000-0000-0000-000000000001", "StreamId": "02000000-0000-0000-0000-000000000001",
       "Destination": "mail", "MessageType": "Hello", "Envelope": {"Payload": {"to": "you"}}, "IsEvent": true}]'))"),
            "standing verdict:new_outbox_messages:1:ok work:outbox:1");
  EXPECT_EQ(
      ask(url,
          call +
              R"(, p_outbox_completions => '[{"MessageId": "01000000-0000-0000-0000-000000000001", "Status": 4}]',
      p_renew_inbox_lease_ids => '{01000000-0000-0000-0000-000000000009}', p_flags => 4))"),
      "standing verdict:outbox_completions:1:ok verdict:renew_inbox:1:unknown");
  EXPECT_EQ(ask(url, "select concat(event_data, version) from wh_event_store"), R"({"to": "you"}1)");
  EXPECT_TRUE(ask(url, call + ", p_flags => 1)").starts_with("WH003"));
  EXPECT_TRUE(ask(url, call + ", p_lease_seconds => -1)").starts_with("WH003"));
  EXPECT_TRUE(
      ask(url, call + ", p_partition_count => 0, p_new_inbox_messages => '[{\"MessageId\": "
                      "\"01000000-0000-0000-0000-000000000001\", \"MessageType\": \"x\", \"Envelope\": 1}]')")
          .starts_with("WH003"));
}

// S14, S24: what debug mode keeps, and the names people look for.
TEST(AReaderOfSql, FindsMessagesWithTheirLeaseAndStatus) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  WorkBatchRequest request{.instance = named(1)};
  request.new_outbox_messages = {in_stream(1, 1), in_stream(2, 1)};
  request.flags = WorkFlags::debug_mode;
  const WorkBatch batch = granted(coordinator.process_work_batch(request));
  ASSERT_EQ(batch.work.size(), 2u);
  EXPECT_EQ(ask(url,
                "select string_agg(concat_ws(',', instance_id, lease_expiry > now(), status, attempts, "
                "created_at <= now()), ' ') from wh_outbox where seq = 1"),
            to_text(instance(1).value) + ",t,1,0,t");
  granted(coordinator.complete(instance(1), Lane::outbox,
                               {{.held = batch.work[0].held(), .status = MessageStatus::published}},
                               WorkFlags::debug_mode));
  EXPECT_EQ(ask(url,
                "select concat_ws(',', status, published_at is not null, processed_at is not null, "
                "instance_id) from wh_outbox where seq = 1"),
            "5,t,t");
  EXPECT_EQ(ask(url, "select assigned_instance_id::text from wh_active_streams"), to_text(instance(1).value));
  EXPECT_EQ(ask(url,
                "select count(*)::text from wh_service_instances where last_heartbeat_at > now() - interval "
                "'5 seconds'"),
            "1");
}

// S21: the handler's effect, its completion and what it sends are one transaction of the user's.
TEST(AHandler, CommitsItsEffectWithItsCompletion) {
  const std::string url = migrated_database();
  tell(url, "create table totals (amount integer); insert into totals values (0)");
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  ASSERT_TRUE(coordinator.heartbeat(named(2)));
  ASSERT_TRUE(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
  age(url, minutes(1));
  const std::string epoch = std::to_string(granted(coordinator.claim(instance(1))).at(0).epoch.value);
  // An effect that is worth something only if the message is still ours.
  const auto handle = [&](const char* who) {
    auto mine = Connection::open(url, seconds(5));
    return (*mine)
        ->execute(
            std::string("begin; update totals set amount = amount + 1;") +
            "do $$ begin if (select verdict from wh_complete(" + who + ", 2::smallint, " +
            "array['01000000-0000-0000-0000-000000000001'::uuid], array[2], array[" + epoch +
            "::bigint])) <> 'ok' then raise 'lost'; end if; end $$;" + "select wh_store(" + who +
            ", 1::smallint, array[gen_random_uuid()], array[null::uuid], array['mail'], array['Sent'], " +
            "array[null], array['{}'::json], array[null::json], array[null::json], array[false], "
            "array[0::smallint]); commit")
        .has_value();
  };
  EXPECT_FALSE(handle(kTwo));
  EXPECT_EQ(ask(url,
                "select concat(amount, (select count(*) from wh_inbox), (select count(*) from wh_outbox)) "
                "from totals"),
            "010");
  EXPECT_TRUE(handle(kOne));
  EXPECT_FALSE(handle(kOne));
  EXPECT_EQ(ask(url,
                "select concat(amount, (select count(*) from wh_inbox), (select count(*) from wh_outbox)) "
                "from totals"),
            "101");
}

// S6: the database and the library agree.
TEST(Partitions, AreTheSameInSqlAndInTheLibrary) {
  EXPECT_EQ(ask(migrated_database(),
                "select concat_ws(' ', wh_partition_of('00000000-0000-0000-0000-000000000001', 10000), "
                "wh_partition_of('01890a5d-ac96-774b-bcce-b302099a8057', 10000), "
                "wh_partition_of('ffffffff-ffff-ffff-ffff-ffffffffffff', 10000), "
                "wh_partition_of('01890a5d-ac96-774b-bcce-b302099a8057', 2147483647))"),
            "1211 5569 4777 " + std::to_string(0x96f8b57a1c6de831u % 2147483647u));
}

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

// X8: what docs/streams.md shows is run as it stands there, from top to bottom.
TEST(Examples, InTheDocumentWork) {
  const std::string url = migrated_database();
  tell(url, "create table totals (amount integer)");
  std::ifstream file(BATON_SOURCE_DIR "/docs/streams.md");
  std::string line, example;
  int examples = 0;
  for (bool inside = false; std::getline(file, line);) {
    if (inside && line == "```") {
      auto connection = Connection::open(url, seconds(5));
      const auto run = (*connection)->execute(example);
      EXPECT_TRUE(run) << example << (run ? "" : run.error().message);
      ++examples, inside = false, example.clear();
    } else if (inside) {
      example += line + "\n";
    } else {
      inside = line == "```sql";
    }
  }
  EXPECT_GE(examples, 4);
  EXPECT_EQ(ask(url, "select count(*)::text from wh_outbox"), "1")
      << "the first was published, the second stored";
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
}

// S23
TEST(Metrics, AreTextForPrometheus) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  WorkBatchRequest request{.instance = named(1)};
  request.new_inbox_messages = {in_stream(1, 1)};
  granted(coordinator.process_work_batch(request));
  const std::string text = ask(url, "select string_agg(line, chr(10)) from wh_metrics()");
  for (const char* line : {"# TYPE baton_stream_messages gauge\n",
                           "baton_stream_messages{service=\"orders\",lane=\"inbox\",state=\"held\"} 1\n",
                           "baton_stream_instances{service=\"orders\",state=\"active\"} 1"})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
}

// E7: what is different is said, and so.
TEST(TheDocument, SaysWhereItDiffersFromItsSource) {
  std::ifstream file(BATON_SOURCE_DIR "/docs/streams.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string said = text.substr(text.find("## Where this differs"));
  for (const char* difference :
       {"De-duplication is not permanent", "at least once", "Ownership is by rank",
        "There are no partition assignments", "Of later versions the event store is in"})
    EXPECT_NE(said.find(difference), std::string::npos) << difference;
  EXPECT_EQ(ask(migrated_database(),
                "select concat_ws(',', to_regclass('wh_partition_assignments'), "
                "to_regclass('wh_message_associations'), to_regclass('wh_event_store'))"),
            "wh_event_store");
}

}  // namespace
}  // namespace baton::stream
