// The functions and views as plain SQL sees them, from any language.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "postgres/work_coordinator.h"
#include "stream/partition.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"

namespace baton::stream {
namespace {

using postgres::Connection;
using postgres::DatabaseOptions;

constexpr const char* kOne = "'03000000-0000-0000-0000-000000000001'";
constexpr const char* kTwo = "'03000000-0000-0000-0000-000000000002'";

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

// S7, S25: otherwise nobody would have its share for a while.
TEST(ProcessWorkBatch, GivesNoRankToAnInstanceThatClaimsNothing) {
  const std::string url = migrated_database();
  const auto active = [&](const char* instance, const char* flags) {
    return ask(url, std::string("select active_instance_count::text from process_work_batch(") + instance +
                        ", 'orders', p_flags => " + flags + ") where kind = 'standing'");
  };
  EXPECT_EQ(active(kOne, "192"), "1");
  EXPECT_EQ(active(kTwo, "0"), "1");
  EXPECT_EQ(active(kOne, "64"), "2");
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

// S25: a misspelt field would be one that is left out: a message without its stream, a report that says
// nothing.
TEST(ProcessWorkBatch, RefusesFieldsItDoesNotKnow) {
  const std::string url = migrated_database();
  const auto said = [&](const std::string& list, const std::string& item) {
    return ask(url, "select count(*)::text from process_work_batch(" + std::string(kOne) + ", 'orders', " +
                        list + " => '[{\"MessageId\": \"01000000-0000-0000-0000-000000000001\", " + item +
                        "}]')");
  };
  const std::string message = R"("MessageType": "Thing", "Envelope": 1)";
  EXPECT_EQ(said("p_new_inbox_messages", message), "3");
  EXPECT_TRUE(said("p_new_inbox_messages", message + R"(, "streamId": null)").starts_with("WH003"));
  EXPECT_TRUE(said("p_new_inbox_messages", R"("MessageType": "Thing")").starts_with("WH003"));
  EXPECT_TRUE(said("p_inbox_completions", R"("status": 2)").starts_with("WH003"));
  EXPECT_TRUE(said("p_inbox_completions", R"("Epoch": 1)").starts_with("WH003"));
  EXPECT_EQ(said("p_inbox_completions", R"("Status": 2)"), "2");
}

// S25: whoever wrote it knows where to look.
TEST(ProcessWorkBatch, SaysWhichListMakesNoSense) {
  const std::string url = migrated_database();
  const auto said = [&](const std::string& argument) {
    return ask(url, "select count(*)::text from process_work_batch(" + std::string(kOne) + ", 'orders', " +
                        argument + ")");
  };
  const std::string id = R"("MessageId": "01000000-0000-0000-0000-000000000001")";
  const std::pair<std::string, std::string> wrong[] = {
      {"p_inbox_failures => '{}'", "p_inbox_failures has to be a JSON array"},
      {"p_inbox_failures => null", "p_inbox_failures has to be a JSON array"},
      {"p_inbox_completions => '[1]'", "p_inbox_completions: item 1 is no object"},
      {"p_inbox_completions => '[{" + id + R"(, "Status": "done"}]')",
       "p_inbox_completions: Status of item 1 is no number"},
      {R"(p_outbox_failures => '[{"MessageId": "77", "Error": "x"}]')",
       "p_outbox_failures: MessageId of item 1 is no UUID"},
      {R"(p_receptor_completions => '[{"EventId": 5, "ReceptorName": "x"}]')",
       "p_receptor_completions: EventId of item 1 is no UUID"},
      {R"(p_inbox_failures => '[{"MessageId": null, "Error": "x"}]')",
       "p_inbox_failures: MessageId of item 1 is no UUID"},
      {"p_inbox_completions => '[{" + id + R"(, "Status": null}]')",
       "an item needs Status, which is not null"},
      {"p_new_inbox_messages => '[{" + id + R"(, "MessageType": null, "Envelope": 1}]')",
       "an item needs MessageType, which is not null"},
      {R"(p_receptor_completions => '[{"EventId": "01000000-0000-0000-0000-000000000001", "ReceptorName": null}]')",
       "an item needs ReceptorName, which is not null"},
      {"p_renew_inbox_lease_ids => '{null}'", "a message needs an id"},
  };
  for (const auto& [argument, complaint] : wrong)
    EXPECT_THAT(said(argument), ::testing::StartsWith("WH003: " + complaint)) << argument;
  EXPECT_EQ(said("p_inbox_failures => '[{" + id + R"(, "Error": null}]')"), "2") << "it need not say why";
}

// S19: the bounds are those of the other implementation.
TEST(ProcessWorkBatch, RefusesAMessageThatIsTooLarge) {
  const std::string url = migrated_database();
  const auto said = [&](std::size_t type, std::size_t data, std::size_t metadata) {
    const auto text = [](std::size_t bytes) { return '"' + std::string(bytes - 2, 'x') + '"'; };
    return ask(url, "select count(*)::text from process_work_batch(" + std::string(kOne) +
                        ", 'orders', p_new_inbox_messages => '[{\"MessageId\": "
                        "\"01000000-0000-0000-0000-000000000001\", \"MessageType\": " +
                        text(type + 2) + ", \"Envelope\": " + text(data) +
                        ", \"Metadata\": " + text(metadata) + "}]')");
  };
  constexpr std::size_t kMiB = 1 << 20, kMetadata = 64 << 10;
  EXPECT_TRUE(said(1, kMiB + 1, 2).starts_with("WH004: a message has at most 1 MiB"));
  EXPECT_TRUE(said(1, 2, kMetadata + 1).starts_with("WH004"));
  EXPECT_TRUE(said(501, 2, 2).starts_with("WH004"));
  EXPECT_EQ(said(500, kMiB, kMetadata), "3");
}

// S1: it would be published nowhere, and be gone.
TEST(ProcessWorkBatch, RefusesAnOutboxMessageWithoutADestination) {
  const std::string url = migrated_database();
  const auto said = [&](const std::string& item) {
    return ask(url,
               "select count(*)::text from process_work_batch(" + std::string(kOne) +
                   ", 'orders', p_new_outbox_messages => '[{\"MessageId\": "
                   "\"01000000-0000-0000-0000-000000000001\", \"MessageType\": \"Thing\", \"Envelope\": 1" +
                   item + "}]')");
  };
  EXPECT_TRUE(said("").starts_with("WH003: a message of the outbox needs a destination"));
  EXPECT_TRUE(said(R"(, "Destination": "")").starts_with("WH003"));
  EXPECT_TRUE(said(R"(, "IsEvent": true)").starts_with("WH003")) << "of no stream, so in no event store";
  EXPECT_EQ(said(R"(, "IsEvent": true, "StreamId": "02000000-0000-0000-0000-000000000001")"), "3");
}

// S3: a setting that makes no sense is refused where it is made.
TEST(ASetting, IsOneThatThereIsWithAValueThatMakesSense) {
  const std::string url = migrated_database();
  const auto set = [&](const std::string& key, const std::string& value) {
    return ask(url, "update wh_settings set setting_value = '" + value + "' where setting_key = '" + key +
                        "' returning setting_value");
  };
  EXPECT_EQ(set("retry_seconds", "5"), "5");
  EXPECT_EQ(set("dedup_retention_days", "0"), "0");
  EXPECT_EQ(set("retry_seconds", "0"), "WH003: retry_seconds is a whole number from 1 to 86400, and not '0'");
  for (const char* wrong : {"-1", "abc", "", "1.5", "1e3", "99999999999", " 7"})
    EXPECT_TRUE(set("max_failures", wrong).starts_with("WH003")) << wrong;
  EXPECT_EQ(ask(url, "select wh_setting('max_failures')::text"), "10");
  EXPECT_TRUE(ask(url, "insert into wh_settings values ('max_failure', '1', 'integer', 0, 1, '')")
                  .starts_with("WH003: there is no setting max_failure"));
  EXPECT_TRUE(ask(url, "delete from wh_settings").starts_with("WH003"));
  EXPECT_TRUE(
      ask(url,
          "update wh_settings set value_max = 0, setting_value = '11' where setting_key = 'max_failures'")
          .empty());
  EXPECT_EQ(ask(url, "select value_max::text from wh_settings where setting_key = 'max_failures'"), "10000");
}

// S3: there are two lanes.
TEST(ALane, ThatIsNeitherIsRefused) {
  const std::string url = migrated_database();
  tell(url, std::string("select wh_heartbeat(") + kOne + ", 'orders')");
  const std::string one = "array['01000000-0000-0000-0000-000000000001'::uuid]";
  for (
      const std::string& call :
      {"wh_store_json(" + std::string(kOne) +
           R"(, 3::smallint, '[{"MessageId": "01000000-0000-0000-0000-000000000001", "MessageType": "x", "Envelope": 1}]', 10))",
       "wh_renew(" + std::string(kOne) + ", 0::smallint, " + one + ", array[null::bigint])",
       "wh_claim(" + std::string(kOne) + ", '{1,3}')"})
    EXPECT_TRUE(ask(url, "select count(*)::text from " + call).starts_with("WH003")) << call;
}

// S1, S3: whoever calls the functions is refused what the library would not say.
TEST(AReport, ThatMakesNoSenseIsRefusedInSqlToo) {
  const std::string url = migrated_database();
  tell(url, std::string("select wh_heartbeat(") + kOne + ", 'orders')");
  const std::string one = "01000000-0000-0000-0000-000000000001",
                    nil = "00000000-0000-0000-0000-000000000000";
  const auto code = [&](const std::string& call) {
    const std::string said = ask(url, "select verdict from " + call);
    return said.substr(0, said.find(':'));
  };
  const auto fails = [&](const std::string& id, int bytes) {
    return code(std::string("wh_fail(") + kOne + ", 2::smallint, array['" + id +
                "'::uuid], array[0], array[null::bigint], array[repeat('x', " + std::to_string(bytes) +
                ")], array[99], array[null::smallint])");
  };
  EXPECT_EQ(fails(one, 65'536), "unknown");
  EXPECT_EQ(fails(one, 65'537), "WH004");
  EXPECT_EQ(fails(nil, 1), "WH003");
  for (const std::string& id : {"'" + nil + "'", std::string("null")})
    EXPECT_EQ(code(std::string("wh_renew(") + kOne + ", 2::smallint, array[" + id +
                   "::uuid], array[null::bigint])"),
              "WH003")
        << id;
  const auto receives = [&](const std::string& event, const std::string& name, int attempt, int bytes = 1) {
    return code(std::string("wh_record_receptors(") + kOne + ", array['" + event + "'::uuid], array['" +
                name + "'], array[4::smallint], array[repeat('x', " + std::to_string(bytes) + ")], array[" +
                std::to_string(attempt) + "])");
  };
  EXPECT_EQ(receives(one, "mail", 1, 65'536), "ok");
  EXPECT_EQ(receives(one, "mail", 2, 65'537), "WH004");
  EXPECT_EQ(receives(one, "mail", 0), "WH003");
  EXPECT_EQ(receives(one, "", 1), "WH003");
  EXPECT_EQ(receives(nil, "mail", 1), "WH003");
  const auto receives_null = [&](const std::string& event, const std::string& name) {
    return code(std::string("wh_record_receptors(") + kOne + ", array[" + event + "]::uuid[], array[" + name +
                "], array[4::smallint], array['no'], array[1])");
  };
  EXPECT_EQ(receives_null("null", "'mail'"), "WH003");
  EXPECT_EQ(receives_null("'" + one + "'", "null"), "WH003");
  const auto sees = [&](const std::string& stream, const std::string& name, const std::string& event,
                        std::size_t bytes = 1) {
    return code(std::string("wh_record_perspectives(") + kOne + R"(, '[{"StreamId": ")" + stream +
                R"(", "PerspectiveName": ")" + name + R"(", "LastEventId": ")" + event + R"(", "Error": ")" +
                std::string(bytes, 'x') + "\"}]', true)");
  };
  EXPECT_EQ(sees(one, "totals", one, 65'536), "unknown");
  EXPECT_EQ(sees(one, "totals", one, 65'537), "WH004");
  EXPECT_EQ(sees(nil, "totals", one), "WH003");
  EXPECT_EQ(sees(one, "totals", nil), "WH003");
  EXPECT_EQ(sees(one, "", one), "WH003");
  for (
      const char* item :
      {R"({"StreamId": null, "PerspectiveName": "totals", "LastEventId": "01000000-0000-0000-0000-000000000001"})",
       R"({"StreamId": "01000000-0000-0000-0000-000000000001", "PerspectiveName": "totals", "LastEventId": null})",
       R"({"StreamId": "01000000-0000-0000-0000-000000000001", "PerspectiveName": null, "LastEventId": "01000000-0000-0000-0000-000000000001"})"})
    EXPECT_EQ(code(std::string("wh_record_perspectives(") + kOne + ", '[" + item + "]', false)"), "WH003")
        << item;
}

// A stream of 50 000 events. The numbers of events have five digits.
std::string database_with_events() {
  const std::string url = migrated_database();
  constexpr const char* kStream = "'02000000-0000-0000-0000-000000000001'";
  tell(url, std::string("select wh_heartbeat(") + kOne +
                ", 'orders'); insert into wh_event_store (event_id, stream_id, " +
                "aggregate_id, aggregate_type, event_type, event_data, metadata, version) select "
                "('01000000-0000-0000-0000-' || "
                "lpad(v::text, 12, '0'))::uuid, " +
                kStream + ", " + kStream + ", 'x', 'x', '{}', '{}', v from generate_series(1, 50000) as v");
  return url;
}
std::string event(const std::string& number) { return "\"01000000-0000-0000-0000-0000000" + number + "\""; }
std::string report_on(const std::string& last, const std::string& processed) {
  return std::string("wh_record_perspectives(") + kOne +
         R"(, '[{"StreamId": "02000000-0000-0000-0000-000000000001", "PerspectiveName": "totals", )"
         R"("LastEventId": )" +
         event(last) + R"(, "ProcessedEventIds": [)" + processed + "]}]', false)";
}

// S17: what a report costs does not grow with the distance it covers.
TEST(APerspective, ReportsOnManyEventsAtOnce) {
  const std::string url = database_with_events();
  const auto report = [&](const std::string& last, const std::string& processed) {
    return ask(url, "select verdict from " + report_on(last, processed));
  };
  const std::string version = "select version::text from wh_perspective_checkpoints";
  EXPECT_EQ(report("00003", event("00003")), "ok");
  EXPECT_EQ(ask(url, version), "0") << "two before it are missing";
  EXPECT_EQ(report("00002", ""), "ok");
  EXPECT_EQ(ask(url, version), "3") << "and now none is";
  EXPECT_EQ(report("50000", ""), "ok");
  EXPECT_EQ(ask(url, version), "50000");
  EXPECT_EQ(ask(url, "select count(*)::text from wh_perspective_events"), "0");
}

// S17, S19: nor with how many events it has processed behind one that is missing.
TEST(APerspective, ThatWaitsForAnEventLooksAtNoneOfThoseBehindIt) {
  const std::string url = database_with_events();
  tell(url,
       "insert into wh_perspective_events select stream_id, 'totals', version from wh_event_store where "
       "version between 2 and 40000");
  const std::string looked_at =
      ask(url, "with said as materialized (select verdict from " + report_on("40001", event("40001")) +
                   ") select pg_stat_get_xact_tuples_returned("
                   "'wh_perspective_events_pkey'::regclass)::text from said where "
                   "verdict = 'ok'");
  ASSERT_NE(looked_at, "");
  EXPECT_LT(std::stoi(looked_at), 10);
  EXPECT_EQ(ask(url, "select verdict from " + report_on("00001", "")), "ok");
  EXPECT_EQ(ask(url, "select version::text from wh_perspective_checkpoints"), "40001") << "none is missing";
}

// S1, S17: as one of a receptor is.
TEST(APerspective, WhoseStatusIsNoneIsRefused) {
  const std::string url = migrated_database();
  const auto said = [&](const std::string& status) {
    return ask(url,
               std::string("select kind from process_work_batch(") + kOne +
                   R"(, 'orders', p_perspective_completions => '[{"StreamId": )"
                   R"("02000000-0000-0000-0000-000000000001", "PerspectiveName": "totals", "LastEventId": )"
                   R"("01000000-0000-0000-0000-000000000001", "Status": )" +
                   status + "}]')");
  };
  for (const char* good : {"0", "1", "2", "4", "8"}) EXPECT_EQ(said(good), "standing");
  for (const char* bad : {"-1", "3", "16", "99999999999"}) EXPECT_TRUE(said(bad).starts_with("WH003")) << bad;
}

// S21, X8: what docs/streams.md shows is run as it stands there, from top to bottom.
TEST(Examples, InTheDocumentWork) {
  const std::string url = migrated_database();
  tell(url, user("shop"));
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
  EXPECT_GE(examples, 5);
  EXPECT_EQ(ask(url, "select concat_ws(' ', amount, (select count(*) from wh_inbox)) from totals"), "1 0")
      << "the message is done, and counted";
  EXPECT_EQ(ask(url, "select count(*)::text from wh_outbox"), "1")
      << "the first was published, the second stored";
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
                           "baton_stream_instances{service=\"orders\",state=\"active\"} 1\n",
                           "baton_stream_partition_messages{service=\"orders\",lane=\"inbox\",partition="})
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  granted(coordinator.heartbeat({.id = instance(2), .service = "a\nb\"c\\d"}));
  EXPECT_NE(ask(url, "select string_agg(line, chr(10)) from wh_metrics()")
                .find(R"(baton_stream_instances{service="a\nb\"c\\d",state="active"} 1)"),
            std::string::npos);
  ASSERT_TRUE(coordinator.leave(instance(1)));
  EXPECT_NE(ask(url, "select string_agg(line, chr(10)) from wh_metrics()")
                .find("baton_stream_instances{service=\"orders\",state=\"active\"} 0\n"),
            std::string::npos)
      << "nobody is left, which is what an alert is for";
}

// S23: the heaviest ten, of any number.
TEST(Metrics, HaveThePartitionsWithTheMostMessages) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  granted(coordinator.heartbeat(named(1)));
  std::vector<NewMessage> messages;
  for (unsigned i = 1; i <= 12; ++i) messages.push_back(in_stream(i, i));
  messages.push_back(in_stream(13, 12));
  granted(coordinator.store(instance(1), Lane::inbox, messages));
  const std::string lines = "from wh_metrics() where line like 'baton_stream_partition_messages{%'";
  EXPECT_EQ(ask(url, "select count(*)::text " + lines), "10");
  EXPECT_EQ(ask(url, "select line " + lines + " and line like '% 2'"),
            "baton_stream_partition_messages{service=\"orders\",lane=\"inbox\",partition=\"" +
                std::to_string(partition_of(stream(12), kPartitions)) + "\"} 2");
}

// S23: a service that sends to itself has the message in its outbox still, and its inbox is done with it.
TEST(Why, SaysThatTheInboxIsDoneThoughTheOutboxIsNot) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  WorkBatchRequest request{.instance = named(1)};
  request.new_inbox_messages = {in_stream(1, 1)};
  const WorkBatch batch = granted(coordinator.process_work_batch(request));
  granted(coordinator.complete(instance(1), Lane::inbox,
                               {{.held = batch.work.at(0).held(), .status = MessageStatus::event_stored}}));
  granted(coordinator.store(instance(1), Lane::outbox, {in_stream(1, 1)}));
  const std::string why =
      ask(url, "select string_agg(answer, '; ') from wh_why('" + to_text(message(1).value) + "')");
  EXPECT_THAT(why, testing::HasSubstr("the inbox of orders has seen it"));
  EXPECT_THAT(why, testing::HasSubstr("it waits in the outbox of orders"));
}

// S16, S24: what an instance says of itself is kept until it says something else, and so is when it was heard
// of.
TEST(AReaderOfSql, FindsWhatAnInstanceSaysOfItself) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  Instance me = named(1);
  me.metadata = R"({"version": "1.2"})";
  granted(coordinator.heartbeat(me));
  age(url, minutes(1));
  WorkBatchRequest request{.instance = named(1)};
  granted(coordinator.process_work_batch(request));
  const std::string known =
      "select concat(metadata, ' ', last_heartbeat_at > now() - interval '5 seconds') from "
      "wh_service_instances";
  EXPECT_EQ(ask(url, known), R"({"version": "1.2"} t)");
  me.metadata = R"({"version": "1.3"})";
  granted(coordinator.heartbeat(me));
  EXPECT_EQ(ask(url, known), R"({"version": "1.3"} t)");
  me.host = "there", me.process = 7;
  granted(coordinator.heartbeat(me));
  granted(coordinator.heartbeat(named(1)));
  EXPECT_EQ(ask(url, "select concat_ws(' ', host_name, process_id, metadata) from wh_service_instances"),
            R"(there 7 {"version": "1.3"})");
}

// S9, S24: versions have no gaps, whichever lane an event comes through, and whoever else writes.
TEST(TheEventStore, HasEveryEventOfAStreamAndNothingElse) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  granted(coordinator.heartbeat(named(1)));
  const auto event = [](unsigned number) {
    NewMessage made = in_stream(number, 1);
    made.is_event = true;
    return made;
  };
  granted(coordinator.store(instance(1), Lane::outbox, {event(1), in_stream(2, 1), event(3)}));
  granted(coordinator.store(instance(1), Lane::inbox, {in_stream(4, 1), event(1), event(5)}));
  {
    std::vector<std::jthread> writers;
    for (unsigned writer : {1u, 2u}) {
      writers.emplace_back([&, writer] {
        postgres::WorkCoordinator mine(DatabaseOptions{.url = url, .tries = 1});
        for (unsigned i = 0; i < 10; ++i)
          granted(
              mine.store(instance(1), writer == 1 ? Lane::outbox : Lane::inbox, {event(100 * writer + i)}));
      });
    }
  }
  EXPECT_EQ(ask(url,
                "select concat(count(*), ' ', max(version), ' ', count(distinct version), ' ', (select "
                "string_agg(right(event_id::text, 1), ',' order by version) from wh_event_store where "
                "version <= 3)) "
                "from wh_event_store"),
            "23 23 23 1,3,5")
      << "an event that is there already stays as it is";
}

}  // namespace
}  // namespace baton::stream
