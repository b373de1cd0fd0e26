// Dead letters that are replayed or purged while other sessions of PostgreSQL are at work.
#include <gtest/gtest.h>

#include <thread>

#include "postgres/work_coordinator.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"
#include "tests/stream/sessions.h"

namespace baton::stream {
namespace {

using postgres::DatabaseOptions;

std::string buries(unsigned number, FailurePolicy policy = FailurePolicy::park_stream) {
  return std::string("select wh_fail(") + kOne + ", 2::smallint, array['" + to_text(message(number).value) +
         "'::uuid], array[0], array[null::bigint], array['no'], array[99], array[" +
         std::to_string(static_cast<int>(policy)) + "::smallint])";
}

std::string locks(unsigned number) {
  return "select from wh_streams where stream_id = '" + to_text(stream(number).value) + "' for update";
}

// The messages are in somebody's hands, and may be buried.
std::string database_with(const std::vector<NewMessage>& messages) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  WorkBatchRequest request{.instance = named(1)};
  request.new_inbox_messages = messages;
  EXPECT_EQ(granted(coordinator.process_work_batch(request)).work.size(), messages.size());
  return url;
}

// S15: a letter that comes while others are purged parks its stream, and so it stays.
TEST(TwoSessions, OneOfWhichPurgesLeaveNoStreamParkedWithoutALetter) {
  const std::string url = database_with({in_stream(1, 1), in_stream(2, 1), in_stream(3, 2), in_stream(4, 2)});
  tell(url, buries(1));
  const auto fails = session(url, locks(1));
  std::string purged;
  std::jthread purges([&] { purged = ask(url, "select wh_purge_dead_letters()::text"); });
  until_somebody_waits(url);
  ASSERT_TRUE(fails->execute(buries(3) + "; commit"));
  purges.join();
  EXPECT_EQ(purged, "1");
  const std::string parked =
      "select concat((select count(*) from wh_streams where parked), ' ', (select "
      "count(*) from wh_dead_letters))";
  EXPECT_EQ(ask(url, parked), "1 1");
  EXPECT_EQ(ask(url, "select wh_purge_dead_letters()::text"), "1");
  EXPECT_EQ(ask(url, parked), "0 0");
}

// S15, S20: whoever takes some at a time locks the streams of these only.
TEST(TwoSessions, OneOfWhichTakesALetterAtATimeLeaveTheOtherStreamsAlone) {
  const std::string url = database_with({in_stream(1, 1), in_stream(2, 2), in_stream(3, 3), in_stream(4, 4)});
  for (unsigned number = 1; number <= 4; ++number) tell(url, buries(number));
  const auto others = session(url, locks(3) + "; " + locks(4));
  EXPECT_EQ(ask(url, "select wh_replay_dead_letters(at_most => 1)::text"), "1");
  EXPECT_EQ(ask(url, "select wh_purge_dead_letters(at_most => 1)::text"), "1");
  EXPECT_EQ(ask(url, "select wh_replay_dead_letters(last => 2)::text"), "0");
  EXPECT_EQ(ask(url, "select wh_purge_dead_letters(last => 2)::text"), "0");
  EXPECT_EQ(
      ask(url, "select string_agg(dead_letter_id::text, ' ' order by dead_letter_id) from wh_dead_letters"),
      "3 4");
}

// S13: what waits is remembered, however long ago it was seen first.
TEST(TwoSessions, OneOfWhichReplaysWhatTheOtherForgetsTakeTheMessageOnce) {
  const std::string url = database_with({in_stream(1, 1)});
  tell(url, buries(1));
  age(url, days(31));
  postgres::WorkCoordinator coordinator(DatabaseOptions{.url = url});
  granted(coordinator.heartbeat(named(2)));
  const auto replays = session(url, "select wh_replay_dead_letters()");
  tell(url, "select wh_maintain()");
  ASSERT_TRUE(replays->execute("commit"));
  const auto stored_again = [&] {
    return granted(coordinator.store(instance(2), Lane::inbox, {in_stream(1, 1)}));
  };
  EXPECT_EQ(stored_again(), std::vector{Verdict::duplicate}) << "it waits";
  age(url, minutes(1));
  const std::vector<Work> work = granted(coordinator.claim(instance(2)));
  ASSERT_EQ(ids(work), messages({1}));
  granted(coordinator.complete(instance(2), Lane::inbox,
                               {{.held = work[0].held(), .status = MessageStatus::event_stored}}));
  EXPECT_EQ(stored_again(), std::vector{Verdict::duplicate}) << "it is done";
}

// S15, S20: a letter that comes while others are replayed stays, for its stream is not locked in its turn.
TEST(ThreeSessions, OneOfWhichReplaysNeverWaitForEachOther) {
  const std::string url = database_with({in_stream(1, 1), in_stream(2, 1), in_stream(3, 2), in_stream(4, 2)});
  tell(url, buries(3));
  const auto blocker = session(url, locks(2));
  std::string replayed;
  std::jthread replays([&] { replayed = ask(url, "select wh_replay_dead_letters()::text"); });
  until_somebody_waits(url);
  tell(url, buries(1));
  const auto other = session(url, locks(1));
  std::jthread needs_both([&] { EXPECT_TRUE(other->execute(locks(2) + "; commit")); });
  until_somebody_waits(url, 2);
  ASSERT_TRUE(blocker->execute("commit"));
  replays.join();
  EXPECT_EQ(replayed, "1");
}

// S15, S20: letters are named in the order of somebody's thoughts.
TEST(ThreeSessions, OneOfWhichReplaysNamedLettersNeverWaitForEachOther) {
  const std::string url = database_with({in_stream(1, 1), in_stream(2, 2), in_stream(3, 3)});
  for (const unsigned number : {1u, 2u, 3u}) tell(url, buries(number));
  const auto blocker = session(url, locks(2));
  std::string replayed;
  std::jthread replays([&] { replayed = ask(url, "select wh_replay_dead_letters(array[3, 2, 1])::text"); });
  until_somebody_waits(url);
  const auto other = session(url, "");
  std::jthread needs_two([&] { EXPECT_TRUE(other->execute(locks(1) + ";" + locks(3) + "; commit")); });
  until_somebody_waits(url, 2);
  ASSERT_TRUE(blocker->execute("commit"));
  replays.join();
  EXPECT_EQ(replayed, "3");
}

// S15, S20: those without a stream, of which the last to die was stored first. Somebody holds the replay up
// between the two.
TEST(ThreeSessions, OneOfWhichPurgesWhatAnotherReplaysNeverWaitForEachOther) {
  const std::string url = database_with({loose(1), loose(2)});
  for (const unsigned number : {2u, 1u}) tell(url, buries(number, FailurePolicy::park));
  const auto blocker = session(
      url, "delete from wh_message_deduplication where message_id = '" + to_text(message(1).value) + "'");
  std::string replayed, purged;
  std::jthread replays([&] { replayed = ask(url, "select wh_replay_dead_letters()::text"); });
  until_somebody_waits(url);
  std::jthread purges([&] { purged = ask(url, "select wh_purge_dead_letters()::text"); });
  until_somebody_waits(url, 2);
  ASSERT_TRUE(blocker->execute("rollback"));
  replays.join();
  purges.join();
  EXPECT_EQ(replayed, "2");
  EXPECT_EQ(purged, "0");
}

// S13, S15, S20: somebody holds the store up between remembering the first message and storing it.
TEST(ThreeSessions, OneOfWhichReplaysWhatAnotherStoresNeverWaitForEachOther) {
  const std::string url = database_with({loose(1)});
  tell(url, buries(1, FailurePolicy::park) + "; delete from wh_message_deduplication");
  const auto blocker = session(url, "insert into wh_message_deduplication select service_no, '" +
                                        to_text(message(2).value) + "' from wh_services");
  std::jthread stores([&] {
    postgres::WorkCoordinator mine(DatabaseOptions{.url = url, .tries = 1});
    EXPECT_EQ(granted(mine.store(instance(1), Lane::inbox, {loose(1), loose(2)})), all_ok(2));
  });
  until_somebody_waits(url);
  std::string replayed;
  std::jthread replays([&] { replayed = ask(url, "select wh_replay_dead_letters()::text"); });
  until_somebody_waits(url, 2);
  ASSERT_TRUE(blocker->execute("rollback"));
  replays.join();
  EXPECT_EQ(replayed, "0") << "the message waits already";
  stores.join();
  EXPECT_EQ(ask(url, "select count(*)::text from wh_dead_letters"), "1");
}

}  // namespace
}  // namespace baton::stream
