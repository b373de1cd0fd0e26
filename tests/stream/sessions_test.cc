// Sessions of PostgreSQL that meet at the same streams and instances.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <thread>

#include "postgres/work_coordinator.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"
#include "tests/stream/sessions.h"

namespace baton::stream {
namespace {

using postgres::Connection;
using postgres::DatabaseOptions;

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
  until_somebody_waits(url);
  EXPECT_TRUE(granted(coordinator.claim(two.id)).empty());
  ASSERT_TRUE((*a)->execute("commit"));
  stores.join();
  age(url, minutes(1));
  EXPECT_TRUE(granted(coordinator.claim(two.id)).empty()) << "A holds the stream, M2 included";
  EXPECT_EQ(ask(url, "select string_agg(distinct instance_id::text, ',') from wh_inbox"),
            to_text(one.id.value));
}

// A claim waits for a locked stream for good, so that it does not matter how long the others take.
std::string patient_database() {
  const std::string url = migrated_database();
  tell(url, "alter function wh_await_stream set lock_timeout = '1h'");
  return url;
}

std::string keeps(unsigned of) {
  return "select from wh_streams where stream_id = '" + to_text(stream(of).value) + "' for update";
}

// S19, S20: a stream that is being stored into all the time is passed over by nobody for ever, also if it has
// just stored what belongs to no stream
TEST(TwoSessions, OneOfWhichStoresIntoAStreamKeepNothingOfItFromTheOther) {
  const std::string url = patient_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  granted(coordinator.heartbeat(named(1)));
  granted(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
  age(url, minutes(1));
  const std::string store = std::string("select wh_store_json(") + kOne +
                            ", 2::smallint, '[{\"MessageId\": \"" + to_text(message(2).value) +
                            "\", \"StreamId\": \"" + to_text(stream(1).value) +
                            "\", \"MessageType\": \"Thing\", \"Envelope\": {}}]', 10000)";
  const auto stores = session(url, store);
  std::atomic<bool> has_claimed = false;
  WorkBatch claimed;
  std::jthread claims([&] {
    claimed = granted(coordinator.process_work_batch(
        {.instance = named(1), .new_outbox_messages = {loose(3)}, .flags = WorkFlags::skip_outbox_claiming}));
    has_claimed = true;
  });
  while (!has_claimed && ask(url, "select count(*)::text from pg_locks where not granted") == "0")
    std::this_thread::yield();
  ASSERT_TRUE(stores->execute("commit"));
  claims.join();
  EXPECT_EQ(ids(claimed.work), messages({1, 2}));
}

// S19, S20: and somebody who keeps it for long keeps nobody
TEST(TwoSessions, OneOfWhichKeepsAStreamLockedDoNotKeepTheOther) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  granted(coordinator.heartbeat(named(1)));
  granted(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1), in_stream(2, 2)}));
  age(url, minutes(1));
  const auto other = session(url, keeps(1));
  EXPECT_EQ(ids(granted(coordinator.process_work_batch({.instance = named(1)})).work), messages({2}));
  EXPECT_TRUE(granted(coordinator.process_work_batch({.instance = named(1)})).work.empty());
}

// S12, S19: nor from what belongs to no stream
TEST(TwoSessions, OneOfWhichKeepsAStreamLockedDoNotKeepTheOtherFromWhatHasNone) {
  const std::string url = patient_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url, .call_max = seconds(10)});
  granted(coordinator.heartbeat(named(1)));
  granted(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1), loose(2)}));
  age(url, minutes(1));
  const auto other = session(url, keeps(1));
  EXPECT_EQ(ids(granted(coordinator.process_work_batch({.instance = named(1)})).work), messages({2}));
}

// S19: nor from what the other lane has
TEST(TwoSessions, OneOfWhichKeepsAStreamLockedDoNotKeepTheOtherFromTheOtherLane) {
  const std::string url = patient_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url, .call_max = seconds(10)});
  granted(coordinator.heartbeat(named(1)));
  granted(coordinator.store(instance(1), Lane::outbox, {in_stream(1, 1)}));
  granted(coordinator.store(instance(1), Lane::inbox, {in_stream(2, 2)}));
  age(url, minutes(1));
  const auto other = session(url, keeps(1));
  EXPECT_EQ(ids(granted(coordinator.process_work_batch({.instance = named(1)})).work), messages({2}));
}

// S20, S21: who has locked streams itself, by whatever it said before, does not wait for another in a circle.
TEST(TwoSessions, OneOfWhichKeepsAStreamLockedDoNotKeepTheOtherThatHasLockedOne) {
  const std::string url = patient_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  for (unsigned i : {1u, 2u}) granted(coordinator.heartbeat(named(i)));
  granted(coordinator.store(instance(1), Lane::outbox, {in_stream(1, 1), in_stream(2, 2)}));
  granted(coordinator.store(instance(1), Lane::inbox, {in_stream(3, 3)}));
  age(url, minutes(1));
  const ClaimRequest one_of_outbox{.inbox = false, .limits = {.streams = 1}};
  for (unsigned i : {1u, 2u})
    EXPECT_EQ(ids(granted(coordinator.claim(instance(i), one_of_outbox))), messages({i}));
  age(url, hours(1));
  const auto other = session(url, keeps(3));
  const auto claims_after = [&](const std::string& said) {
    const auto mine = session(url, "set local statement_timeout = '10s'; select " + said);
    return mine->execute(std::string("select wh_claim(") + kOne + ", '{2}')").has_value();
  };
  EXPECT_TRUE(claims_after(std::string("wh_complete(") + kOne + ", 1::smallint, array['" +
                           to_text(message(1).value) + "'::uuid], array[4], array[null::bigint])"));
  EXPECT_TRUE(claims_after(std::string("wh_heartbeat(") + kOne + ", 'orders')")) << "which evicts the second";
  EXPECT_TRUE(claims_after(std::string("wh_claim(") + kOne + ", '{1}')"));
  tell(url, std::string("select wh_fail(") + kOne + ", 1::smallint, array['" + to_text(message(1).value) +
                "'::uuid], array[0], array[null::bigint], array['no'], array[99], array[1::smallint])");
  EXPECT_TRUE(claims_after("wh_replay_dead_letters()"));
  EXPECT_TRUE(claims_after("wh_purge_dead_letters()"));
}

// S9, S10, S20: no order of arrival makes them wait for each other, so none is tried twice, or leaves a gap.
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
        postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url, .tries = 1});
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

// S20: each has done what the other stores into, and is held up between the two. All that a call needs is
// locked before its first part, so one waits for the other, and not both.
TEST(TwoSessions, ReportingAndStoringCrosswiseDoNotWaitForEachOther) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  WorkBatchRequest turns[2];
  for (unsigned i : {0u, 1u}) {
    turns[i].instance = named(i + 1);
    granted(coordinator.heartbeat(named(i + 1)));
    granted(coordinator.store(instance(i + 1), Lane::inbox, {in_stream(i + 1, i + 1)}));
    age(url, minutes(1));
    for (const Work& work : granted(coordinator.claim(instance(i + 1))))
      turns[i].inbox_completions.push_back({.held = work.held(), .status = MessageStatus::event_stored});
    ASSERT_EQ(turns[i].inbox_completions.size(), 1u);
    turns[i].receptor_completions = {{message(i + 1), "mail"}};
    turns[i].new_inbox_messages = {in_stream(i + 3, 2 - i)};
  }
  const auto blocker = session(url, "lock wh_receptor_processing");
  std::vector<std::jthread> both;
  for (const WorkBatchRequest& turn : turns) {
    both.emplace_back([&] {
      postgres::WorkCoordinator mine(DatabaseOptions{.url = url, .tries = 1});
      EXPECT_EQ(granted(mine.process_work_batch(turn)).new_inbox_messages, all_ok(1));
    });
  }
  until_somebody_waits(url, 2);
  ASSERT_TRUE(blocker->execute("commit"));
}

// S9: the row of a stream that was idle for long goes at the very moment when the next message comes.
TEST(TwoSessions, OneOfWhichForgetsAnIdleStreamLoseNoOrder) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  ASSERT_TRUE(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
  age(url, minutes(1));
  for (const Work& work : granted(coordinator.claim(instance(1))))
    granted(coordinator.complete(instance(1), Lane::inbox,
                                 {{.held = work.held(), .status = MessageStatus::event_stored}}));
  age(url, hours(25));
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  const auto maintains = session(url, "select wh_maintain()");
  std::jthread stores([&] {
    EXPECT_EQ(granted(coordinator.store(instance(1), Lane::inbox, {in_stream(2, 1), in_stream(3, 1)})),
              all_ok(2));
  });
  until_somebody_waits(url);
  ASSERT_TRUE(maintains->execute("commit"));
  stores.join();
  EXPECT_EQ(ask(url, "select string_agg(concat_ws(' ', stream_id, seq), ',' order by seq) from wh_inbox"),
            to_text(stream(1).value) + " 1," + to_text(stream(1).value) + " 2");
}

// S21: handlers of one instance work on several streams of one claim, and commit each for itself.
TEST(TwoSessions, CommitStreamsOfOneClaimAtTheSameTime) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  ASSERT_TRUE(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1), in_stream(2, 2)}));
  age(url, minutes(1));
  const auto work = granted(coordinator.claim(instance(1)));
  ASSERT_EQ(work.size(), 2u);
  const auto first = session(url, std::string("select wh_complete(") + kOne + ", 2::smallint, array['" +
                                      to_text(work[0].message.value) + "'::uuid], array[2], array[" +
                                      std::to_string(work[0].epoch.value) + "::bigint])");
  tell(url, "alter database " + ask(url, "select current_database()::text") + " set lock_timeout = '1s'");
  postgres::WorkCoordinator other(DatabaseOptions{.url = url, .tries = 1});
  EXPECT_EQ(granted(other.complete(instance(1), Lane::inbox,
                                   {{.held = work[1].held(), .status = MessageStatus::event_stored}})),
            all_ok(1));
  ASSERT_TRUE(first->execute("commit"));
}

// S16: an instance that is just claiming is not taken for gone, and holds nothing after it was evicted.
TEST(TwoSessions, OneOfWhichEvictsTheOtherLeaveNothingWithTheDead) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  ASSERT_TRUE(coordinator.heartbeat(named(2)));
  ASSERT_TRUE(coordinator.store(instance(2), Lane::inbox, {in_stream(1, 1)}));
  age(url, hours(1));
  tell(url,
       "update wh_service_instances set last_heartbeat_at = now() where instance_id <> " + std::string(kOne));
  const auto stale = session(url, std::string("select wh_claim(") + kOne + ")");
  EXPECT_EQ(granted(coordinator.heartbeat(named(2))).active, 1);
  ASSERT_TRUE(stale->execute("commit"));
  EXPECT_EQ(ask(url, "select owner::text from wh_streams"), to_text(instance(1).value));
  EXPECT_EQ(granted(coordinator.heartbeat(named(2))).active, 2) << "the claim was a sign of life";
  age(url, hours(1));
  EXPECT_EQ(granted(coordinator.heartbeat(named(2))).active, 1);
  EXPECT_EQ(ask(url, "select count(*)::text from wh_service_instances"), "1") << "now it is evicted";
  EXPECT_EQ(ids(granted(coordinator.claim(instance(2)))), messages({1})) << "and its stream is free";
  EXPECT_EQ(coordinator.claim(instance(1)).error().code, Errc::lease_lost);
}

// S16: whoever calls is alive, also if that cannot be noted since somebody has locked the row.
TEST(TwoSessions, OneOfWhichLocksTheRowOfAnInstanceDoNotMakeItEvictItself) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator(DatabaseOptions{.url = url}).heartbeat(named(1)).value();
  age(url, hours(1));
  const auto looks = session(url, "select from wh_service_instances for update");
  tell(url, "alter database " + ask(url, "select current_database()::text") + " set lock_timeout = '1s'");
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url, .tries = 1});
  granted(coordinator.heartbeat(named(1)));
  ASSERT_TRUE(looks->execute("commit"));
  granted(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
}

// S18: the same call twice at once, as after a connection was cut while the first still runs.
TEST(TwoSessions, StoringTheSameMessagesWithoutAStreamStoreThemOnce) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  const auto first =
      session(url, std::string("select wh_store_json(") + kOne + ", 1::smallint, '[{\"MessageId\": \"" +
                       to_text(message(2).value) +
                       "\", \"MessageType\": \"Thing\", \"Destination\": \"there\", \"Envelope\": 1}]', 10)");
  std::vector<Verdict> verdicts;
  std::jthread second([&] {
    verdicts = granted(coordinator.store(instance(1), Lane::outbox, {loose(1), loose(2), in_stream(3, 1)}));
  });
  until_somebody_waits(url);
  ASSERT_TRUE(first->execute("commit"));
  second.join();
  EXPECT_EQ(verdicts, (std::vector{Verdict::ok, Verdict::duplicate, Verdict::ok}));
  EXPECT_EQ(ask(url, "select count(*)::text from wh_outbox"), "3");
}

// S20: whatever the order of their lists. Somebody holds the first of them up in the middle of its own.
TEST(TwoSessions, StoringTheSameMessagesInAnotherOrderDoNotWaitForEachOther) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  const auto blocker =
      session(url, std::string("select wh_store_json(") + kOne + ", 1::smallint, '[{\"MessageId\": \"" +
                       to_text(message(3).value) +
                       "\", \"MessageType\": \"Thing\", \"Destination\": \"there\", \"Envelope\": 1}]', 10)");
  const auto stores = [&](const std::vector<NewMessage>& all) {
    return std::jthread([&url, all] {
      postgres::WorkCoordinator mine(DatabaseOptions{.url = url, .tries = 1});
      granted(mine.store(instance(1), Lane::outbox, all));
    });
  };
  const auto one = stores({loose(1), loose(3), loose(2)});
  until_somebody_waits(url, 1);
  const auto two = stores({loose(2), loose(1)});
  until_somebody_waits(url, 2);
  ASSERT_TRUE(blocker->execute("rollback"));
}

// S4: a lease is counted from when it is renewed, and never becomes shorter.
TEST(ALongTransaction, RenewsALeaseFromNowOn) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  ASSERT_TRUE(coordinator.heartbeat(named(1)));
  ASSERT_TRUE(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
  age(url, minutes(1));
  granted(coordinator.claim(instance(1), {.lease = seconds(1)}));
  const std::string renewal = std::string("select wh_renew(") + kOne + ", 2::smallint, array['" +
                              to_text(message(1).value) + "'::uuid], array[null::bigint], ";
  const auto open = session(url, "select pg_sleep(1.1)");
  // Seen from when the transaction began, so that it does not matter how long it takes from here on.
  ASSERT_TRUE(open->execute(renewal + "1); create table lasts as select lease_until - now() as it from "
                                      "wh_streams; commit"));
  EXPECT_EQ(ask(url, "select (it >= interval '2.1 seconds')::text from lasts"), "true");
  tell(url, renewal + "300)");
  const std::string until = ask(url, "select lease_until::text from wh_streams");
  tell(url, renewal + "2)");
  EXPECT_EQ(ask(url, "select lease_until::text from wh_streams"), until);
}

// S17, S20: what one reports as completed the other reports as failed, and the other way round.
class TwoSessionsWithResults : public testing::Test {
 protected:
  TwoSessionsWithResults() {
    WorkBatchRequest events{.instance = named(1)};
    for (const unsigned number : {1u, 2u, 3u}) {
      events.new_outbox_messages.push_back(in_stream(number, number));
      events.new_outbox_messages.back().is_event = true;
    }
    granted(one_.process_work_batch(events));
    granted(two_.heartbeat(named(2)));
  }

  // Somebody holds up the first of the two in the middle of its lists.
  void cross(const std::string& held_up, const WorkBatchRequest& first, const WorkBatchRequest& second) {
    const auto blocker = session(url_, held_up);
    ASSERT_TRUE(blocker);
    std::jthread one([&] { granted(one_.process_work_batch(first)); });
    until_somebody_waits(url_);
    std::jthread two([&] { granted(two_.process_work_batch(second)); });
    until_somebody_waits(url_, 2);
    ASSERT_TRUE(blocker->execute("rollback"));
  }

  const std::string url_ = migrated_database();
  postgres::WorkCoordinator one_{DatabaseOptions{.url = url_, .tries = 1}};
  postgres::WorkCoordinator two_{DatabaseOptions{.url = url_, .tries = 1}};
};

TEST_F(TwoSessionsWithResults, OfTheSameReceptorsNeverWaitForEachOther) {
  const auto result = [](unsigned event) {
    return ReceptorResult{.event = message(event), .receptor = "mail"};
  };
  cross("insert into wh_receptor_processing values ('" + to_text(message(3).value) + "', 'mail', 0, 0)",
        {.instance = named(1),
         .receptor_completions = {result(1), result(3)},
         .receptor_failures = {result(2)}},
        {.instance = named(2), .receptor_completions = {result(2)}, .receptor_failures = {result(1)}});
}

TEST_F(TwoSessionsWithResults, OfTheSamePerspectivesNeverWaitForEachOther) {
  const auto result = [](unsigned event) {
    return PerspectiveResult{.stream = stream(event), .perspective = "totals", .last_event = message(event)};
  };
  cross("insert into wh_perspective_checkpoints (stream_id, perspective_name, status) values ('" +
            to_text(stream(3).value) + "', 'totals', 0)",
        {.instance = named(1),
         .perspective_completions = {result(1), result(3)},
         .perspective_failures = {result(2)}},
        {.instance = named(2), .perspective_completions = {result(2)}, .perspective_failures = {result(1)}});
}

}  // namespace
}  // namespace baton::stream
