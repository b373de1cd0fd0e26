// What holds on PostgreSQL only: the schema, plain SQL, sessions that meet, and a server that goes away.
#include <gtest/gtest.h>

#include <fstream>
#include <latch>
#include <thread>

#include "postgres/migrations.h"
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

// S10: A has claimed and not committed; M2 arrives; B claims. A design that looks for earlier messages
// without locking their stream hands M2 to B.
TEST(TwoSessions, NeverHoldOneStream) {
  const std::string url = migrated_database();
  Instance one = named(1), two = named(2);
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  ASSERT_TRUE(coordinator.heartbeat(one));
  ASSERT_TRUE(coordinator.heartbeat(two));
  ASSERT_TRUE(coordinator.store(one.id, Lane::inbox, {in_stream(1, 1)}));
  age(url, minutes(1));
  auto a = Connection::open(url, seconds(5));
  ASSERT_TRUE(a && (*a)->execute(std::string("begin; select wh_claim(") + kOne + ")"));
  EXPECT_TRUE(granted(coordinator.claim(two.id)).empty()) << "while A's claim is not committed";
  std::jthread stores([&] {
    postgres::WorkCoordinator other(DatabaseOptions{.url = url});
    EXPECT_TRUE(other.store(two.id, Lane::inbox, {in_stream(2, 1)}));
  });
  while (ask(url, "select count(*)::text from pg_locks where not granted") == "0") std::this_thread::yield();
  EXPECT_TRUE(granted(coordinator.claim(two.id)).empty());
  ASSERT_TRUE((*a)->execute("commit"));
  stores.join();
  age(url, minutes(1));
  EXPECT_TRUE(granted(coordinator.claim(two.id)).empty()) << "A holds the stream, M2 included";
  EXPECT_EQ(ask(url, "select string_agg(distinct instance_id::text, ',') from wh_inbox"),
            to_text(one.id.value));
}

// S9, S10, S20: no order of arrival makes them wait for each other or leaves a gap.
TEST(TwoSessions, StoringAndClaimingTheSameStreamsLoseNothing) {
  const std::string url = migrated_database();
  constexpr unsigned kWorkers = 3, kCalls = 10, kStreams = 6;
  tell(url, "update wh_settings set setting_value = 0 where setting_key = 'steal_after_seconds'");
  std::latch start(kWorkers);
  std::mutex mutex;
  std::map<StreamId, std::vector<std::int64_t>> handled;
  {
    std::vector<std::jthread> workers;
    for (unsigned worker = 0; worker < kWorkers; ++worker) {
      workers.emplace_back([&, worker] {
        postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url, .tries = 20});
        WorkBatchRequest request{.instance = named(worker + 1)};
        start.arrive_and_wait();
        for (unsigned call = 0, idle = 0; call < kCalls || idle < 3; ++call) {
          request.new_inbox_messages.clear();
          for (unsigned i = 0; call < kCalls && i < 8; ++i) {
            const unsigned number = (worker * kCalls + call) * 8 + i + 1;
            request.new_inbox_messages.push_back(in_stream(number, (number * 7 + worker) % kStreams + 1));
          }
          auto batch = coordinator.process_work_batch(request);
          ASSERT_TRUE(batch) << batch.error().message;
          for (Verdict verdict : batch->inbox_completions) EXPECT_EQ(verdict, Verdict::ok);
          request.inbox_completions.clear();
          const std::scoped_lock lock(mutex);
          for (const Work& work : batch->work) {
            handled[*work.stream].push_back(work.sequence);
            request.inbox_completions.push_back({.held = work.held(), .status = MessageStatus::event_stored});
          }
          idle = batch->work.empty() ? idle + 1 : 0;
        }
      });
    }
  }
  std::size_t count = 0;
  for (const auto& [stream, sequence] : handled) {
    count += sequence.size();
    for (std::size_t i = 0; i < sequence.size(); ++i)
      ASSERT_EQ(sequence[i], static_cast<std::int64_t>(i) + 1);
  }
  EXPECT_EQ(count, kWorkers * kCalls * 8);
}

// S20: only a stream that had nothing to do rings.
TEST(AWakeUp, ComesWhenThereIsWorkWhereNoneWas) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  EXPECT_FALSE(granted(coordinator.wait_for_work(milliseconds(1))));
  ASSERT_TRUE(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
  EXPECT_TRUE(granted(coordinator.wait_for_work(minutes(1))));
  ASSERT_TRUE(coordinator.store(instance(1), Lane::inbox, {in_stream(2, 1)}));
  EXPECT_FALSE(granted(coordinator.wait_for_work(milliseconds(1))));
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_FALSE(granted(coordinator.wait_for_work(minutes(10), stop.get_token())));
}

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
            "array[null], array['{}'::jsonb], array[null::jsonb], array[null::jsonb], array[false], "
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

}  // namespace
}  // namespace baton::stream
