// What operators ask about streams over the wire. What they are told is shown in core; here that each verb
// says it, with the texts that lie in the log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/metrics.h"
#include "tests/backstage.h"

namespace baton::server {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kMe = "01930000-0000-7000-8000-0000000000a1";
const std::string kOrders = "01930000-0000-7000-8000-0000000000f1";

std::string id(int number) { return "01930000-0000-7000-8000-00000000000" + std::to_string(number); }
std::string message(int number) {
  return R"({"message": ")" + id(number) + R"(", "stream": ")" + kOrders +
         R"(", "type": "Order", "data": {"n": )" + std::to_string(number) + "}}";
}

class AnOperator : public testing::Test {
 protected:
  AnOperator() {
    client_.ask({"PROCESS_WORK_BATCH", kMe, "orders", "HOST", "here", "NEW_INBOX_MESSAGES",
                 "[" + message(1) + "," + message(2) + "]"});
  }
  void fail_the_first(const std::string& policy) {
    client_.ask({"STREAM_FAIL", kMe, "inbox",
                 R"([{"message": ")" + id(1) + R"(", "error": "it broke", "policy": )" + policy + "}]"});
  }

  Backstage stage_;
  Client client_{stage_};
};

// S23
TEST_F(AnOperator, SeesLanesAndInstances) {
  const std::string lanes = client_.ask({"STREAM_STATUS"});
  EXPECT_EQ(member(lanes, "service"), "orders");
  EXPECT_THAT(lanes, HasSubstr("$5 inbox $7 waiting :0 $4 held :2 $4 dead :0 $7 streams :1"));
  const std::string instances = client_.ask({"STREAM_INSTANCES"});
  EXPECT_EQ(member(instances, "instance"), kMe);
  EXPECT_EQ(member(instances, "rank"), "0");
  EXPECT_EQ(member(instances, "held_messages"), "2");
  EXPECT_EQ(member(client_.ask({"STREAM_PARTITIONS"}), "offered_to"), kMe);
  EXPECT_THAT(client_.ask({"STREAM_LAG"}), HasSubstr("held by " + kMe));
  EXPECT_EQ(member(client_.ask({"STREAM_LAG"}), "complete"), "1");
  client_.ask({"USE", "other"});
  EXPECT_THAT(client_.ask({"STREAM_STATUS"}), HasSubstr("lanes *0"));
}

// S23
TEST_F(AnOperator, IsToldWhyAMessageIsNotHandled) {
  fail_the_first("0");
  EXPECT_THAT(client_.ask({"STREAM_WHY", id(1)}), HasSubstr("it failed (1 so far), and said: it broke"));
  EXPECT_THAT(client_.ask({"STREAM_WHY", id(2)}), HasSubstr("and said: it broke"));
  EXPECT_THAT(client_.ask({"STREAM_WHY", id(9)}), HasSubstr("nowhere"));
  EXPECT_THAT(client_.ask({"STREAM_WHY", "one"}), HasSubstr("-INVALID_REQUEST message must be an id"));
}

// S15
TEST_F(AnOperator, SeesAllThereIsOfDeadLetters) {
  fail_the_first("2");
  const std::string letters = client_.ask({"STREAM_LETTERS"});
  EXPECT_EQ(member(letters, "letter"), "1");
  EXPECT_EQ(member(letters, "message"), id(1));
  EXPECT_EQ(member(letters, "type"), "Order");
  EXPECT_EQ(member(letters, "data"), R"({"n":1})");
  EXPECT_THAT(letters, HasSubstr("it broke"));
  EXPECT_THAT(client_.ask({"STREAM_LETTERS", "LETTER", "1"}), HasSubstr("letters *1"));
  EXPECT_THAT(client_.ask({"STREAM_LETTERS", "LETTER", "7"}), HasSubstr("letters *0"));
  EXPECT_THAT(client_.ask({"STREAM_WHY", id(2)}), HasSubstr("parked behind dead letter 1"));
}

// S23
TEST_F(AnOperator, FindsStreamsInStatsAndMetrics) {
  const std::string stats = client_.ask({"STATS"});
  EXPECT_THAT(stats,
              HasSubstr("streams *12 $8 services :1 $9 instances :1 $7 streams :1 $7 waiting :0 $4 held :2"));
  const std::string text = metrics_text(stage_.desk(), stage_.access.everyone().get());
  const std::string labels = R"({namespace="default",service="orders",lane="inbox")";
  EXPECT_THAT(text, HasSubstr("baton_stream_messages" + labels + R"(,state="held"} 2)"));
  EXPECT_THAT(text, HasSubstr("baton_stream_streams" + labels + R"(,state="all"} 1)"));
  EXPECT_THAT(text, HasSubstr("baton_stream_oldest_claimable_seconds" + labels + "} 0"));
  EXPECT_THAT(text,
              HasSubstr(R"(baton_stream_instances{namespace="default",service="orders",state="active"} 1)"));
  EXPECT_THAT(text, HasSubstr("\nbaton_stream_remembered_messages 2\n"));
  EXPECT_THAT(text, HasSubstr("\nbaton_stream_remembered_messages_max 100000000\n"));
  EXPECT_THAT(metrics_text(stage_.desk(), nullptr), Not(HasSubstr("orders")));
}

}  // namespace
}  // namespace baton::server
