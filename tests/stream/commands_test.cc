// `baton stream`, as operators use it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postgres/work_coordinator.h"
#include "tests/crash/child.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"

namespace baton::stream {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Said {
  int code;
  std::string text, errors;
};

Said baton(const std::string& url, std::vector<std::string> words) {
  words.insert(words.begin(), {BATON_PROGRAM, "stream"});
  words.insert(words.end(), {"--database", url});
  const crash::Ran ran = crash::run({.command = words});
  std::string text;
  for (const std::string& line : ran.lines) text += line + "\n";
  return {ran.exit.code, text, ran.errors};
}

std::string why(const std::string& url, unsigned number) {
  return baton(url, {"why", to_text(message(number).value)}).text;
}

// A service with somebody who can be asked.
struct Shop {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator{{.url = url}};
  Shop() { granted(coordinator.heartbeat({.id = instance(1), .service = "orders", .host = "here"})); }
};

// S20
TEST(BatonStream, MigratesADatabaseOnce) {
  const std::string url = empty_database();
  const Said before = baton(url, {"status"});
  EXPECT_EQ(before.code, 1);
  EXPECT_THAT(before.errors, HasSubstr("baton stream migrate"));
  EXPECT_THAT(baton(url, {"migrate"}).text, HasSubstr("the database is at version"));
  EXPECT_THAT(baton(url, {"migrate"}).text, HasSubstr("already"));
  EXPECT_EQ(baton(url, {"status"}).code, 0);
  EXPECT_EQ(baton("host=/nowhere", {"status"}).code, 69);
}

// S23
TEST(BatonStream, ShowsBacklogInstancesAndDeadLetters) {
  Shop shop;
  granted(shop.coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1), in_stream(2, 1), loose(3)}));
  age(shop.url, minutes(1));
  EXPECT_THAT(baton(shop.url, {"status", "--json"}).text,
              HasSubstr(R"("lane":"inbox","waiting":3,"held":0,"dead":0,"streams":1)"));
  EXPECT_THAT(baton(shop.url, {"status"}).text, HasSubstr("1m00s")) << "the oldest that could be claimed";
  EXPECT_THAT(baton(shop.url, {"lag"}).text, HasSubstr("can be claimed"));
  EXPECT_THAT(baton(shop.url, {"partitions"}).text, HasSubstr(to_text(instance(1).value)));
  EXPECT_THAT(baton(shop.url, {"partitions", "--json"}).text, HasSubstr(R"("streams":1,"messages":2)"));
  const std::string metrics = baton(shop.url, {"metrics"}).text;
  EXPECT_THAT(metrics, HasSubstr("# TYPE baton_stream_messages gauge\n"));
  EXPECT_THAT(metrics,
              HasSubstr("baton_stream_messages{service=\"orders\",lane=\"inbox\",state=\"waiting\"} 3\n"));
  EXPECT_THAT(metrics,
              HasSubstr("baton_stream_oldest_claimable_seconds{service=\"orders\",lane=\"inbox\"} 60\n"));
  EXPECT_THAT(metrics, HasSubstr("baton_stream_instances{service=\"orders\",state=\"active\"} 1\n"));
  const auto work = granted(shop.coordinator.claim(instance(1)));
  EXPECT_THAT(baton(shop.url, {"status", "--json"}).text, HasSubstr(R"("waiting":0,"held":3)"));
  EXPECT_THAT(baton(shop.url, {"lag"}).text, HasSubstr("held by"));
}

// S23
TEST(BatonStreamWhy, TellsThatNobodyIsAtWork) {
  Shop shop;
  granted(shop.coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
  EXPECT_THAT(why(shop.url, 1), HasSubstr("yes: 1 active"));
  age(shop.url, minutes(20));
  EXPECT_THAT(why(shop.url, 1), HasSubstr("no: the last one was heard of 1200 s ago"));
  EXPECT_THAT(why(shop.url, 9), HasSubstr("nowhere"));
}

// S23
TEST(BatonStreamWhy, TellsWhoHoldsAMessageAndForHowLong) {
  Shop shop;
  granted(shop.coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1), loose(2)}));
  EXPECT_THAT(why(shop.url, 1), HasSubstr("is offered to " + to_text(instance(1).value) + " first"));
  EXPECT_THAT(why(shop.url, 1), HasSubstr("nobody holds it"));
  EXPECT_THAT(why(shop.url, 2), HasSubstr("it belongs to no stream"));
  age(shop.url, minutes(1));
  granted(shop.coordinator.claim(instance(1)));
  EXPECT_THAT(why(shop.url, 1), HasSubstr("yes: by " + to_text(instance(1).value)));
  EXPECT_THAT(why(shop.url, 1), HasSubstr("s more"));
  age(shop.url, minutes(20));
  EXPECT_THAT(why(shop.url, 1), HasSubstr("whoever asks next has it"));
  EXPECT_THAT(why(shop.url, 1), HasSubstr("is evicted by the next call"));
}

// S23
TEST(BatonStreamWhy, TellsWhatIsInTheWay) {
  Shop shop;
  granted(shop.coordinator.store(instance(1), Lane::inbox,
                                 {in_stream(1, 1), in_stream(2, 1), in_stream(3, 2), in_stream(4, 2)}));
  age(shop.url, minutes(1));
  const auto work = granted(shop.coordinator.claim(instance(1)));
  std::vector<Failure> failures;
  for (const Work& one : work) {
    if (one.sequence > 1) continue;
    failures.push_back(
        {.held = one.held(), .error = "it broke", .reason = FailureReason::transport_exception});
    if (one.stream == stream(2)) failures.back().policy = FailurePolicy::park_stream;
  }
  granted(shop.coordinator.fail(instance(1), Lane::inbox, failures));
  EXPECT_THAT(why(shop.url, 1), HasSubstr("it failed (1 so far), and said: it broke"));
  EXPECT_THAT(why(shop.url, 2), HasSubstr("yes: message " + to_text(message(1).value)));
  EXPECT_THAT(why(shop.url, 3), HasSubstr("it became dead letter 1"));
  EXPECT_THAT(why(shop.url, 4), HasSubstr("its stream is parked behind dead letter 1"));
  EXPECT_THAT(baton(shop.url, {"dead", "list"}).text, HasSubstr("it broke"));
  EXPECT_THAT(baton(shop.url, {"dead", "show", "1"}).text, HasSubstr(to_text(message(3).value)));
  EXPECT_EQ(baton(shop.url, {"dead", "show", "2"}).code, 1);
  EXPECT_EQ(baton(shop.url, {"dead", "replay", "x"}).code, 1);
  EXPECT_EQ(baton(shop.url, {"dead", "purge"}).code, 1) << "it does not say which";
  EXPECT_THAT(baton(shop.url, {"dead", "replay", "1"}).text, HasSubstr("put back 1 dead letter"));
  EXPECT_THAT(why(shop.url, 4), Not(HasSubstr("parked")));
  EXPECT_THAT(baton(shop.url, {"dead", "purge", "--all", "--json"}).text, HasSubstr(R"({"purged":0})"));
}

}  // namespace
}  // namespace baton::stream
