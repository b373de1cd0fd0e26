// The limits that docs/protocol.md promises, as they are if nobody sets them: taken up to there, and refused
// one past it.
#include "server/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/backstage.h"

namespace baton::server {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> submit_many(std::size_t count) {
  std::vector<std::string> words = {"SUBMITMANY", "q", std::to_string(count)};
  words.resize(words.size() + count, "x");
  return words;
}

class AtItsLimit : public testing::Test {
 protected:
  Backstage stage_;
  Client client_{stage_};
};

// X3
TEST_F(AtItsLimit, ANumberOfTasksAtOnceIsTaken) {
  EXPECT_THAT(client_.ask(submit_many(1024)), StartsWith("*1024 "));
  EXPECT_THAT(client_.ask(submit_many(1025)), StartsWith("-TOO_LARGE submit at most 1024 tasks"));
  EXPECT_THAT(client_.ask(submit_many(0)), StartsWith("-INVALID_REQUEST submit at least one"));
  EXPECT_THAT(client_.ask({"LEASE", "w", "q", "COUNT", "1025"}), StartsWith("-TOO_LARGE lease at most 1024"));
  EXPECT_THAT(client_.ask({"LEASE", "w", "q", "COUNT", "0"}), StartsWith("-INVALID_REQUEST count must be"));
  EXPECT_THAT(client_.ask({"LEASE", "w", "q", "COUNT", "1024"}), HasSubstr("tasks *1024"));
}

// X3: names are looked at before they are copied for each of the tasks.
TEST_F(AtItsLimit, ANumberOfQueuesIsAskedForATask) {
  std::vector<std::string> words = {"LEASE", "w", "q", "COUNT", "1024"};
  for (int also = 0; also < 15; ++also) words.insert(words.end(), {"ALSO", "q"});
  EXPECT_THAT(client_.ask(words), HasSubstr("tasks *0"));
  words.insert(words.end(), {"ALSO", "q"});
  EXPECT_THAT(client_.ask(words), StartsWith("-TOO_LARGE more than 16 queues"));
  EXPECT_THAT(client_.ask({"LEASE", "w", "q", "COUNT", "1024", "ALSO", std::string(1 << 20, 'x')}),
              StartsWith("-INVALID_REQUEST a queue must be"));
}

// X5: each looks for a task in every lane of the queue, and the loop does nothing else meanwhile.
TEST_F(AtItsLimit, ANumberOfLanesIsLookedAtBeforeOthersHaveTheirTurn) {
  constexpr std::uint64_t kLeases = 400, kLanes = core::kLanesPerQueueMax;
  for (std::size_t lane = 0; lane < kLanes; ++lane)
    client_.send({"SUBMIT", "q", "x", "CAPABILITY", "c" + std::to_string(lane)});
  client_.hear();
  std::string text;
  wire::RespWriter writer(text);
  for (std::uint64_t each = 0; each < kLeases; ++each)
    writer.array(3), writer.bulk("LEASE"), writer.bulk("w"), writer.bulk("q");
  client_.session.receive(text);
  const auto begun = [&] { return stage_.desk().counters.commands["lease"]; };
  EXPECT_EQ(begun(), Desk::kLanesAtOnce / kLanes + 1);
  EXPECT_FALSE(client_.session.wants_more());
  EXPECT_EQ(Client(stage_).ask({"PING"}), "+PONG ");
  client_.hear();
  EXPECT_EQ(begun(), kLeases);
  EXPECT_TRUE(client_.session.wants_more());
}

// X5
TEST_F(AtItsLimit, ANumberOfQueuesIsLookedThroughOnceEach) {
  client_.ask({"SUBMIT", "q", "x", "CAPABILITY", "a"});
  client_.ask({"SUBMIT", "q", "x", "CAPABILITY", "b"});
  client_.ask({"SUBMIT", "r", "x", "CAPABILITY", "c"});
  EXPECT_THAT(client_.ask({"LEASE", "w", "q", "ALSO", "r", "ALSO", "q", "ALSO", "r"}), HasSubstr("tasks *0"));
  EXPECT_EQ(stage_.desk().counters.lanes_looked_at, 3u);
}

// X3
TEST_F(AtItsLimit, SoManyBytesAreLeasedAtOnce) {
  constexpr int kTasks = 40, kMost = (8 << 20) / (256 << 10);
  for (int i = 0; i < kTasks; ++i) client_.ask({"SUBMIT", "q", std::string(256 << 10, 'x')});
  const auto leased = [&](const std::string& reply) { return member(reply, "tasks"); };
  EXPECT_EQ(leased(client_.ask({"LEASE", "w", "q", "COUNT", "1024"})), "*" + std::to_string(kMost));
  EXPECT_EQ(leased(client_.ask({"LEASE", "w", "q", "COUNT", "1024"})), "*" + std::to_string(kTasks - kMost));
}

// X5: each of its tasks waits for the log in a request of its own.
TEST_F(AtItsLimit, ASubmitmanyCountsForAllOfItsTasks) {
  std::vector<std::string> words = {"SUBMITMANY", "q", "1024"};
  words.resize(words.size() + 1024);
  for (int each = 0; each < 4; ++each) {
    EXPECT_TRUE(client_.session.wants_more()) << each;
    client_.send(words);
  }
  EXPECT_FALSE(client_.session.wants_more());
  client_.hear();
  EXPECT_TRUE(client_.session.wants_more());
}

// X3: replies that wait for one before them count as if they waited for their reader.
TEST_F(AtItsLimit, SoMuchIsMadeReadyForOneConnection) {
  std::string text;
  wire::RespWriter writer(text);
  writer.array(3), writer.bulk("SUBMIT"), writer.bulk("q"), writer.bulk("x");
  for (int i = 0; i < 4000; ++i) writer.array(2), writer.bulk("COMMAND"), writer.bulk("DOCS");
  client_.session.receive(text);
  EXPECT_FALSE(client_.session.wants_more());
  EXPECT_LT(client_.session.held_bytes(), 2 * ServerLimits{}.output_bytes_max);
  EXPECT_THAT(client_.hear(), StartsWith("*"));
}

// X3
TEST_F(AtItsLimit, ANumberOfLeasesIsExtended) {
  const auto extend_many = [](std::size_t count) {
    std::vector<std::string> words = {"EXTENDMANY", std::to_string(count)};
    for (std::size_t at = 1; at <= count; ++at) words.push_back("1-2 1-" + std::to_string(at) + "-3");
    return words;
  };
  EXPECT_THAT(client_.ask(extend_many(512)), HasSubstr("leases *512"));
  EXPECT_THAT(client_.ask(extend_many(513)), StartsWith("-TOO_LARGE "));
}

// X3
TEST_F(AtItsLimit, AWaitIsBegun) {
  client_.ask({"SUBMIT", "q", "x"});
  EXPECT_THAT(client_.ask({"LEASE", "w", "q", "WAIT_MS", "3600000"}), HasSubstr("tasks *1"));
  EXPECT_THAT(client_.ask({"LEASE", "w", "q", "WAIT_MS", "3600001"}),
              StartsWith("-INVALID_REQUEST wait_ms must be a number from 0 to 3600000"));
}

// X3
TEST_F(AtItsLimit, ACommandIsTaken) {
  std::vector<std::string> words = {"ECHO"};
  words.resize(4096, "x");
  EXPECT_THAT(client_.ask(words), StartsWith("-INVALID_REQUEST wrong number of arguments"));
  words.emplace_back("x");
  EXPECT_THAT(client_.ask(words), StartsWith("-PROTOCOL_ERROR too many arguments: 4097"));
  EXPECT_TRUE(client_.session.is_closing());
}

// X3
TEST_F(AtItsLimit, ALongCommandIsTaken) {
  const std::size_t others = std::string("*2\r\n$4\r\nECHO\r\n$4194273\r\n\r\n").size();
  const std::size_t most = (std::size_t{4} << 20) - others;
  EXPECT_THAT(client_.ask({"ECHO", std::string(most, 'x')}), StartsWith("$" + std::to_string(most)));
  EXPECT_THAT(client_.ask({"ECHO", std::string(most + 1, 'x')}),
              StartsWith("-PROTOCOL_ERROR the command has"));
}

// X3
TEST_F(AtItsLimit, ATransactionIsExecuted) {
  for (const std::size_t count : {4096, 4097}) {
    client_.ask({"MULTI"});
    for (std::size_t at = 0; at < 4096; ++at) ASSERT_EQ(client_.ask({"PING"}), "+QUEUED ") << at;
    if (count > 4096) {
      EXPECT_THAT(client_.ask({"PING"}), StartsWith("-TOO_LARGE more between MULTI and EXEC"));
    }
    EXPECT_THAT(client_.ask({"EXEC"}), StartsWith(count > 4096 ? "-EXECABORT " : "*4096 +PONG "));
  }
}

// X5: words that are empty are kept too.
TEST_F(AtItsLimit, ATransactionIsNoLargerForWordsWithoutBytes) {
  std::vector<std::string> words(4096);
  words[0] = "PING";
  client_.ask({"MULTI"});
  int kept = 0;
  for (; client_.ask(words) == "+QUEUED "; ++kept) ASSERT_LT(kept, 1000);
  EXPECT_EQ(kept, 31) << "of 128 KiB each";
}

// X3
TEST_F(AtItsLimit, APageOfAListIsGiven) {
  for (const std::string verb : {"TASKS", "QUEUES", "WORKERS"}) {
    EXPECT_THAT(client_.ask({verb, "COUNT", "1000"}), Not(StartsWith("-"))) << verb;
    EXPECT_THAT(client_.ask({verb, "COUNT", "1001"}), StartsWith("-INVALID_REQUEST count must be")) << verb;
  }
}

}  // namespace
}  // namespace baton::server
