// What a call of PostgreSQL reads when very much waits that it is not about. Plans are made as on a new
// database: before much is there, and before anybody has counted it.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "postgres/work_coordinator.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"
#include "tests/stream/sessions.h"

namespace baton::stream {
namespace {

using postgres::Connection;
using postgres::DatabaseOptions;

constexpr const char* kTwo = "'03000000-0000-0000-0000-000000000002'";

// The second instance holds a few streams, and a few messages without one.
class ABacklog : public testing::Test {
 protected:
  ABacklog() {
    for (const char* table : {"wh_messages", "wh_event_store"})
      tell(url_, std::string("alter table ") + table + " set (autovacuum_enabled = off)");
    postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url_});
    for (unsigned i : {1u, 2u}) granted(coordinator.heartbeat(named(i)));
    std::vector<NewMessage> messages{loose(1), loose(2), loose(3)};
    for (unsigned i = 1; i <= 5; ++i) messages.push_back(in_stream(10 + i, i));
    messages[3].is_event = true;
    granted(coordinator.store(instance(2), Lane::inbox, messages));
    age(url_, minutes(1));
    EXPECT_EQ(granted(coordinator.claim(instance(2))).size(), messages.size());
    // As a coordinator's own.
    session_ = session(url_,
                       "commit; set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set "
                       "enable_hashjoin = off; set enable_mergejoin = off");
  }

  // As it is now, and when much waits without a stream, and in the first stream, where all are events.
  int reads_in_a_backlog(const std::string& call, const std::string& table = "wh_messages") {
    const int before = reads(call, table);
    EXPECT_GT(before, 0);
    for (const std::string of : {"null", "'02000000-0000-0000-0000-000000000001'"})
      tell(url_, std::string("select from wh_store(") + kTwo +
                     ", 2::smallint, array(select gen_random_uuid() from generate_series(1, 10000)), " +
                     ten_thousand(of + "::uuid") + ten_thousand("null::text") +
                     ten_thousand("'Thing'::text") + ten_thousand("null::text") + ten_thousand("'1'::json") +
                     ten_thousand("null::json") + ten_thousand("null::json") + ten_thousand("true") +
                     ten_thousand("0::smallint") + "10000)");
    return reads(call, table);
  }

  static std::string ten_thousand(const std::string& of) { return "array_fill(" + of + ", array[10000]), "; }
  static std::string about(unsigned number) {
    return std::string(kTwo) + ", 2::smallint, array['" + to_text(message(number).value) + "'::uuid], ";
  }
  static std::string fails(unsigned number) {
    return "select wh_fail(" + about(number) +
           "array[0], array[null::bigint], array['no'], array[99], array[1::smallint])";
  }
  // All that was handed out is lost, one of it once too often. What comes first is claimed.
  enum class First { streams, loose };
  std::string claims_after_losing(unsigned number, First first) {
    const std::string of_streams = first == First::streams ? "2 days" : "1 hour";
    tell(url_, "update wh_messages set deliveries = 10 where message_id = '" +
                   to_text(message(number).value) +
                   "'; update wh_messages set ready_at = now() - interval '1 day' where owner is not null; "
                   "update wh_streams set ready_at = now() - interval '" +
                   of_streams + "'");
    return std::string("select wh_claim(") + kOne + ", '{2}', max_messages => 5)";
  }

 private:
  int reads(const std::string& call, const std::string& table) {
    EXPECT_TRUE(session_->execute("begin; " + call)) << call;
    const std::string said =
        "select (seq_tup_read + idx_tup_fetch)::integer from pg_stat_xact_user_tables where relname = '" +
        table + "'";
    const auto rows = session_->run(std::vector<postgres::Call>{{{"reads", said.c_str()}, {}}}, {});
    EXPECT_TRUE(session_->execute("rollback"));
    return rows ? rows->front().int4(0, 0) : 0;
  }

  const std::string url_ = migrated_database();
  std::unique_ptr<Connection> session_;
};

constexpr int kFew = 1000;  // of twenty thousand

// S12, S19
TEST_F(ABacklog, IsNotReadByAReportOnAMessageWithoutAStream) {
  EXPECT_LT(reads_in_a_backlog("select wh_complete(" + about(2) + "array[2], array[null::bigint])"), kFew);
}

// S15, S19
TEST_F(ABacklog, IsNotReadWhenAMessageDies) { EXPECT_LT(reads_in_a_backlog(fails(12)), kFew); }

// S15, S19
TEST_F(ABacklog, IsNotReadWhenAMessageWithoutAStreamWasLostTooOften) {
  EXPECT_LT(reads_in_a_backlog(claims_after_losing(2, First::loose)), kFew);
}

// S15, S19
TEST_F(ABacklog, IsNotReadWhenTheFirstMessageOfItWasLostTooOften) {
  EXPECT_LT(reads_in_a_backlog(claims_after_losing(11, First::streams)), kFew);
}

// S4, S19
TEST_F(ABacklog, IsNotReadWhenALostStreamIsClaimed) {
  EXPECT_LT(reads_in_a_backlog(claims_after_losing(1, First::streams)), kFew);
}

// S16, S19
TEST_F(ABacklog, IsNotReadWhenAnInstanceIsEvicted) {
  EXPECT_LT(reads_in_a_backlog(std::string("update wh_service_instances set last_heartbeat_at = now() - "
                                           "interval '1 hour' where instance_id = ") +
                               kTwo + "; select wh_heartbeat(" + kOne + ", 'orders')"),
            kFew);
}

// S17, S19
TEST_F(ABacklog, OfEventsIsNotReadByAReportOnOneOfThem) {
  const std::string event = "\"" + to_text(message(11).value) + "\"";
  EXPECT_LT(reads_in_a_backlog(std::string("select wh_record_perspectives(") + kTwo +
                                   R"(, '[{"StreamId": "02000000-0000-0000-0000-000000000001", )"
                                   R"("PerspectiveName": "totals", "LastEventId": )" +
                                   event + R"(, "ProcessedEventIds": [)" + event + "]}]', false)",
                               "wh_event_store"),
            kFew);
}

}  // namespace
}  // namespace baton::stream
