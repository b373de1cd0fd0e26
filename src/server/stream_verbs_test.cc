// Streams over the wire. What they answer is told by tests/stream; here that each verb says and hears it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/backstage.h"

namespace baton::server {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kMe = "01930000-0000-7000-8000-0000000000a1";
const std::string kOther = "01930000-0000-7000-8000-0000000000a2";
const std::string kOrders = "01930000-0000-7000-8000-0000000000f1";

std::string id(int number) { return "01930000-0000-7000-8000-00000000000" + std::to_string(number); }
std::string message(int number) {
  return R"({"message": ")" + id(number) + R"(", "stream": ")" + kOrders +
         R"(", "type": "Order", "target": "there", "data": {"n": )" + std::to_string(number) + "}}";
}

// S1
TEST(AWorkBatch, IsOneCommand) {
  Backstage stage;
  Client client(stage);
  const std::string stored = client.ask(
      {"PROCESS_WORK_BATCH", kMe, "orders", "NEW_INBOX_MESSAGES", "[" + message(1) + "," + message(2) + "]"});
  EXPECT_EQ(member(stored, "rank"), "0");
  EXPECT_EQ(member(stored, "active"), "1");
  EXPECT_THAT(stored, HasSubstr("new_inbox_messages *2 $2 ok $2 ok"));
  EXPECT_THAT(stored, HasSubstr("work *2"));
  EXPECT_EQ(member(stored, "message"), id(1));
  EXPECT_EQ(member(stored, "stream"), kOrders);
  EXPECT_EQ(member(stored, "data"), R"({"n":1})");
  const std::string done =
      client.ask({"PROCESS_WORK_BATCH", kMe, "orders", "INBOX_COMPLETIONS",
                  R"([{"message": ")" + id(1) + R"(", "status": 2, "epoch": )" + member(stored, "epoch") +
                      R"(}, {"message": ")" + id(7) + R"(", "status": 2}])"});
  EXPECT_THAT(done, HasSubstr("inbox_completions *2 $2 ok $7 unknown"));
  EXPECT_THAT(done, HasSubstr("work *0"));
}

TEST(AStream, GoesThroughItsLifeInParts) {
  Backstage stage;
  Client client(stage);
  const std::string held = R"([{"message": ")" + id(1) + R"("}])";
  client.ask({"STREAM_HEARTBEAT", kMe, "orders", "HOST", "here", "ABOUT", R"({"v": 1})"});
  EXPECT_THAT(client.ask({"STREAM_STORE", kMe, "inbox", "[" + message(1) + "]"}), HasSubstr("$2 ok"));
  EXPECT_EQ(member(client.ask({"STREAM_CLAIM", kMe, "LANE", "inbox"}), "message"), id(1));
  EXPECT_THAT(client.ask({"STREAM_RENEW", kMe, "inbox", held, "LEASE_MS", "60000"}), HasSubstr("$2 ok"));
  EXPECT_EQ(member(client.ask({"STREAM_RESUME", kMe}), "message"), id(1));
  EXPECT_THAT(client.ask({"STREAM_RELEASE", kMe, "inbox", held}), HasSubstr("$2 ok"));
  EXPECT_EQ(member(client.ask({"STREAM_CLAIM", kMe}), "deliveries"), "1");
  EXPECT_THAT(client.ask({"STREAM_FAIL", kMe, "inbox",
                          R"([{"message": ")" + id(1) + R"(", "error": "it broke", "policy": 1}])"}),
              HasSubstr("$2 ok"));
  EXPECT_EQ(member(client.ask({"STREAM_REPLAY", "LAST_LETTER", "0"}), "purged"), "0");
  EXPECT_EQ(member(client.ask({"STREAM_PURGE", "LAST_LETTER", "0"}), "purged"), "0");
  const std::string replayed = client.ask({"STREAM_REPLAY", "LAST_LETTER", "1"});
  EXPECT_EQ(member(replayed, "purged"), "1");
  EXPECT_EQ(member(replayed, "last_letter"), "1");
  EXPECT_EQ(member(client.ask({"STREAM_CLAIM", kMe}), "error"), "it");  // … broke
  EXPECT_THAT(
      client.ask({"STREAM_COMPLETE", kMe, "inbox", R"([{"message": ")" + id(1) + R"(", "status": 2}])"}),
      HasSubstr("$2 ok"));
  EXPECT_THAT(client.ask({"STREAM_LEAVE", kMe}), HasSubstr("COMMITTED"));
  EXPECT_THAT(client.ask({"STREAM_CLAIM", kMe}), HasSubstr("-NOT_FOUND"));
}

// S20, X3: a page of it at a time.
TEST(AnInstance, ThatHoldsMuchTakesItUpPageByPage) {
  Backstage stage;
  Client client(stage);
  client.ask({"STREAM_HEARTBEAT", kMe, "orders"});
  const auto id_of = [](int number) {
    return "01930000-0000-7000-8000-00000001" + std::to_string(1000 + number);
  };
  for (int of = 0; of < 5; ++of) {
    std::string messages;
    for (int i = 0; i < 300; ++i)
      messages += (i == 0 ? "" : ",") + (R"({"message": ")" + id_of(300 * of + i) + R"(", "stream": ")") +
                  id(of) + R"(", "type": "Order", "target": "there", "data": 1})";
    client.ask({"STREAM_STORE", kMe, "inbox", "[" + messages + "]"});
  }
  client.ask({"STREAM_CLAIM", kMe, "MAX_MESSAGES", "1500", "MAX_PER_STREAM", "300"});
  const std::string first = client.ask({"STREAM_RESUME", kMe});
  EXPECT_THAT(first, HasSubstr("work *1200 "));
  const std::string second = client.ask({"STREAM_RESUME", kMe, "CURSOR", member(first, "cursor")});
  EXPECT_THAT(second, HasSubstr("work *300 "));
  EXPECT_EQ(member(second, "message"), id_of(1200));
  EXPECT_EQ(member(second, "cursor"), "0");
}

// S10, S18: what its instance does not hear of is free at once, but not what it has taken up by then.
TEST(AClaim, WhoseCallerIsGoneBeforeItsAnswerGoesBackUnlessItIsResumed) {
  Backstage stage;
  Client client(stage);
  client.ask({"STREAM_HEARTBEAT", kMe, "orders"});
  client.ask({"STREAM_STORE", kMe, "inbox", "[" + message(1) + "]"});
  const auto claim_and_go = [&] {
    Client gone(stage);
    gone.send({"STREAM_CLAIM", kMe});
  };
  claim_and_go();
  EXPECT_THAT(client.ask({"STREAM_RESUME", kMe}), HasSubstr(id(1))) << "it was decided in the same turn";
  EXPECT_THAT(client.ask({"STREAM_RENEW", kMe, "inbox", R"([{"message": ")" + id(1) + R"("}])"}),
              HasSubstr("inbox_renewals *1 $2 ok"));
  client.ask({"STREAM_RELEASE", kMe, "inbox", R"([{"message": ")" + id(1) + R"("}])"});
  claim_and_go();
  const auto goes_back = [&] { return member(client.ask({"STREAM_CLAIM", kMe}), "message") == id(1); };
  while (!goes_back()) continue;  // long before the lease ends
}

// S20: whoever waits is woken when there is work where none was.
TEST(AClaim, WaitsForWork) {
  Backstage stage;
  Client waiting(stage), storing(stage);
  waiting.ask({"STREAM_HEARTBEAT", kMe, "orders"});
  waiting.send({"STREAM_CLAIM", kMe, "WAIT_MS", "3600000"});
  stage.turn();
  EXPECT_FALSE(waiting.session.is_idle());
  storing.ask({"STREAM_STORE", kMe, "inbox", "[" + message(1) + "]"});
  EXPECT_EQ(member(waiting.hear(), "message"), id(1));
  EXPECT_THAT(waiting.ask({"STREAM_CLAIM", kMe, "WAIT_MS", "1"}), HasSubstr("work *0"));
}

// X5: what was claimed may be given back and claimed again by whoever does not read it.
TEST(AClaim, TakesOneMessageAtATimeWhileTooMuchIsUnread) {
  Backstage stage({}, {.unsent_bytes_max = 1000});
  Client client(stage);
  client.ask({"STREAM_HEARTBEAT", kMe, "orders"});
  client.ask({"STREAM_STORE", kMe, "inbox", "[" + message(1) + "," + message(2) + "," + message(3) + "]"});
  stage.desk().counters.unsent_bytes = 4000;
  EXPECT_THAT(client.ask({"STREAM_CLAIM", kMe}), HasSubstr("work *1 "));
  client.ask({"STREAM_COMPLETE", kMe, "inbox", R"([{"message": ")" + id(1) + R"(", "status": 2}])"});
  stage.desk().counters.unsent_bytes = 0;
  EXPECT_THAT(client.ask({"STREAM_CLAIM", kMe}), HasSubstr("work *2 "));
}

// S20: likewise whoever only wants to know; it takes nothing.
TEST(WhoeverWaitsForWork, IsWokenWhenThereIsSome) {
  Backstage stage;
  Client waiting(stage), storing(stage);
  waiting.ask({"STREAM_HEARTBEAT", kMe, "orders"});
  EXPECT_EQ(member(waiting.ask({"STREAM_WAIT", kMe, "WAIT_MS", "1"}), "woken"), "0");
  waiting.send({"STREAM_WAIT", kMe, "WAIT_MS", "3600000"});
  stage.turn();
  EXPECT_FALSE(waiting.session.is_idle());
  storing.ask({"STREAM_STORE", kMe, "inbox", "[" + message(1) + "]"});
  EXPECT_EQ(member(waiting.hear(), "woken"), "1");
  EXPECT_EQ(member(waiting.ask({"STREAM_WAIT", kMe, "SINCE_MS", "60000"}), "woken"), "1")
      << "it came while nobody waited";
  EXPECT_THAT(waiting.ask({"STREAM_WAIT", kOther}), HasSubstr("-NOT_FOUND"));
}

// S4, S20: time alone may bring some.
TEST(WhoeverWaitsForWork, IsWokenWhenALeaseEnds) {
  Backstage stage;
  Client holding(stage), waiting(stage);
  holding.ask({"PROCESS_WORK_BATCH", kOther, "orders", "LEASE_MS", "1000", "NEW_INBOX_MESSAGES",
               "[" + message(1) + "]"});
  waiting.ask({"STREAM_HEARTBEAT", kMe, "orders"});
  EXPECT_EQ(member(waiting.ask({"STREAM_WAIT", kMe, "WAIT_MS", "3600000"}), "woken"), "1");
}

// S16, S20
TEST(WhoeverWaitsForWork, IsWokenWhenAnotherLeaves) {
  Backstage stage;
  Client holding(stage), waiting(stage);
  holding.ask({"PROCESS_WORK_BATCH", kOther, "orders", "NEW_INBOX_MESSAGES", "[" + message(1) + "]"});
  waiting.ask({"STREAM_HEARTBEAT", kMe, "orders"});
  waiting.send({"STREAM_WAIT", kMe, "WAIT_MS", "3600000"});
  stage.turn();
  holding.ask({"STREAM_LEAVE", kOther});
  EXPECT_EQ(member(waiting.hear(), "woken"), "1");
}

// S7: in another namespace there is nothing of it.
TEST(AStream, BelongsToANamespace) {
  Backstage stage;
  Client client(stage);
  client.ask(
      {"PROCESS_WORK_BATCH", kMe, "orders", "FLAGS", "64", "NEW_INBOX_MESSAGES", "[" + message(1) + "]"});
  client.ask({"USE", "other"});
  EXPECT_THAT(client.ask({"STREAM_CLAIM", kMe}), HasSubstr("-NOT_FOUND"));
  EXPECT_THAT(client.ask({"PROCESS_WORK_BATCH", kMe, "orders"}), HasSubstr("work *0"));
}

// S19: of the items of a list that is too long none is looked at.
TEST(NonsenseAboutStreams, IsRefusedBeforeItTakesALotOfMemory) {
  Backstage stage;
  Client client(stage);
  client.ask({"STREAM_HEARTBEAT", kMe, "orders"});
  std::string many = "[1";
  for (int i = 0; i < 10'000; ++i) many += ",{}";
  EXPECT_THAT(client.ask({"STREAM_STORE", kMe, "inbox", many + "]"}),
              HasSubstr("-TOO_LARGE messages: a list has at most 10000 items"));
}

TEST(NonsenseAboutStreams, IsRefusedWithWhatIsWrong) {
  Backstage stage;
  Client client(stage);
  client.ask({"STREAM_HEARTBEAT", kMe, "orders"});
  const auto refused = [&](const std::vector<std::string>& words) { return client.ask(words); };
  EXPECT_THAT(refused({"STREAM_CLAIM", "me"}), HasSubstr("-INVALID_REQUEST instance must be an id"));
  EXPECT_THAT(refused({"STREAM_STORE", kMe, "middle", "[]"}), HasSubstr("lane must be outbox or inbox"));
  EXPECT_THAT(refused({"STREAM_STORE", kMe, "inbox", "[{"}), HasSubstr("a list is not JSON"));
  EXPECT_THAT(refused({"STREAM_STORE", kMe, "inbox", "{}"}), HasSubstr("has to be a JSON array"));
  EXPECT_THAT(refused({"STREAM_STORE", kMe, "inbox", "[1]"}), HasSubstr("is a JSON object"));
  EXPECT_THAT(refused({"STREAM_STORE", kMe, "inbox", R"([{"message": "x"}])"}),
              HasSubstr("message must be an id"));
  EXPECT_THAT(refused({"STREAM_STORE", kMe, "inbox", R"([{"mesage": "x"}])"}),
              HasSubstr("no such member: mesage"));
  EXPECT_THAT(refused({"STREAM_CLAIM", kMe, "LEASE_MS", "1500"}), HasSubstr("whole seconds"));
  EXPECT_THAT(refused({"PROCESS_WORK_BATCH", kMe, "orders", "FLAGS", "256"}), HasSubstr("reserved"));
  EXPECT_THAT(refused({"PROCESS_WORK_BATCH", kMe, "payments"}), HasSubstr("another service"));
  EXPECT_THAT(refused({"STREAM_PURGE", "LETTER", "one"}), HasSubstr("letter must be a number"));
}

}  // namespace
}  // namespace baton::server
