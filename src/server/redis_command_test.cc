// What ordinary Redis clients expect of a server besides its verbs.
#include "server/redis_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/verb.h"
#include "tests/backstage.h"

namespace baton::server {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Hello, ChoosesTheVersionAndSaysWhoTheServerIs) {
  Backstage stage;
  Client client(stage);
  EXPECT_THAT(client.ask({"HELLO"}), StartsWith("*14 $6 server $5 baton "));
  const std::string three = client.ask({"HELLO", "3", "SETNAME", "me"});
  EXPECT_THAT(three, StartsWith("%7 $6 server $5 baton "));
  EXPECT_THAT(three, HasSubstr("$5 proto :3 "));
  EXPECT_EQ(client.ask({"CLIENT", "GETNAME"}), "$2 me ");
  EXPECT_THAT(client.ask({"HELLO", "2"}), StartsWith("*14 "));
}

// X3
TEST(Hello, ChangesNothingIfAnyOfItIsWrong) {
  Backstage stage;
  Client client(stage);
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"HELLO", "4"}, "-NOPROTO "},
      {{"HELLO", "three"}, "-NOPROTO "},
      {{"HELLO", "3", "SETNAME"}, "-INVALID_REQUEST HELLO [version"},
      {{"HELLO", "3", "SETNAME", "n", "AUTH", "x"}, "-INVALID_REQUEST HELLO [version"},
      {{"HELLO", "3", "SETNAME", "two words"}, "-INVALID_REQUEST a connection's name"},
  };
  for (const auto& [words, reply] : cases) EXPECT_THAT(client.ask(words), StartsWith(reply));
  EXPECT_THAT(client.ask({"HELLO"}), StartsWith("*14 ")) << "still version 2";
  EXPECT_EQ(client.ask({"CLIENT", "GETNAME"}), "$-1 ");
}

TEST(Hello, LeavesRepliesToWhatCameBeforeInTheOldVersion) {
  Backstage stage;
  Client client(stage);
  client.send({"SUBMIT", "q", "x"});
  client.send({"HELLO", "3"});
  const std::string heard = client.hear();
  EXPECT_THAT(heard, StartsWith("*6 $3 lsn "));
  EXPECT_THAT(heard, HasSubstr("%7 $6 server"));
}

TEST(ClientCommand, KeepsWhatAConnectionSaysOfItself) {
  Backstage stage;
  Client client(stage);
  Client other(stage);
  EXPECT_NE(client.ask({"CLIENT", "ID"}), other.ask({"CLIENT", "ID"}));
  EXPECT_EQ(client.ask({"CLIENT", "SETNAME", "me"}), "+OK ");
  EXPECT_EQ(client.ask({"client", "setinfo", "lib-name", "redis-py"}), "+OK ");
  EXPECT_EQ(client.ask({"CLIENT", "SETINFO", "LIB-VER", "5.0.1"}), "+OK ");
  client.ask({"USE", "mail"});
  for (const char* what : {"INFO", "LIST"}) {
    const std::string told = client.ask({"CLIENT", what});
    EXPECT_THAT(told, HasSubstr("name=me resp=2 "));
    EXPECT_THAT(told, HasSubstr("namespace=mail lib-name=redis-py lib-ver=5.0.1"));
  }
  EXPECT_EQ(client.ask({"CLIENT", "NO-EVICT", "ON"}), "+OK ");
  EXPECT_THAT(other.ask({"CLIENT", "LIST"}), Not(HasSubstr("redis-py"))) << "of others it learns nothing";
}

// X3
TEST(ClientCommand, RefusesWhatItCannotDo) {
  Backstage stage;
  Client client(stage);
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"CLIENT"}, "-INVALID_REQUEST wrong number"},
      {{"CLIENT", "SETNAME"}, "-INVALID_REQUEST CLIENT SETNAME name"},
      {{"CLIENT", "SETNAME", "two words"}, "-INVALID_REQUEST a connection's name"},
      {{"CLIENT", "SETINFO", "lib-colour", "red"}, "-INVALID_REQUEST CLIENT SETINFO"},
      {{"CLIENT", "NO-TOUCH", "perhaps"}, "-INVALID_REQUEST ON or OFF"},
      {{"CLIENT", "REPLY", "OFF"},
       "-UNKNOWN_COMMAND CLIENT REPLY is not known here: every command is answered"},
      {{"CLIENT", "KILL", "1"}, "-UNKNOWN_COMMAND "},
      {{"CLIENT", "TRACKING", "ON"}, "-UNKNOWN_COMMAND "},
  };
  for (const auto& [words, reply] : cases) EXPECT_THAT(client.ask(words), StartsWith(reply)) << words.back();
}

TEST(CommandCommand, ListsEveryVerbAndCommand) {
  std::size_t count = redis_commands().size();
  for (const auto& verbs : verb_families()) count += verbs.size();
  Backstage stage;
  Client client(stage);
  const std::string total = std::to_string(count) + " ";
  EXPECT_EQ(client.ask({"COMMAND", "COUNT"}), ":" + total);
  EXPECT_THAT(client.ask({"COMMAND"}), StartsWith("*" + total));
  EXPECT_THAT(client.ask({"COMMAND", "INFO"}), StartsWith("*" + total));
  EXPECT_THAT(client.ask({"COMMAND", "LIST"}), StartsWith("*" + total));
  EXPECT_THAT(client.ask({"COMMAND", "DOCS"}), StartsWith("*" + std::to_string(2 * count) + " "));
  EXPECT_THAT(client.ask({"COMMAND", "FROB"}), StartsWith("-INVALID_REQUEST "));
}

TEST(CommandCommand, TellsTrueAritiesAndFlags) {
  Backstage stage;
  Client client(stage);
  const std::string told = client.ask({"COMMAND", "INFO", "SUBMIT", "frob", "lease", "get", "pause", "ping"});
  EXPECT_THAT(told, StartsWith("*6 *10 $6 submit :-3 *1 +write "));
  EXPECT_THAT(told, HasSubstr("$-1 *10 $5 lease :-3 *2 +write +blocking "));
  EXPECT_THAT(told, HasSubstr("$3 get :2 *1 +readonly "));
  EXPECT_THAT(told, HasSubstr("$5 pause :2 *2 +write +admin "));
  EXPECT_THAT(told, HasSubstr("$4 ping :-1 "));
}

TEST(CommandCommand, DescribesArguments) {
  Backstage stage;
  Client client(stage);
  const std::string told = client.ask({"COMMAND", "DOCS", "FAIL", "EXTENDMANY", "frob"});
  EXPECT_THAT(told, StartsWith("*4 $4 fail *8 $7 summary "));
  EXPECT_THAT(told,
              HasSubstr("$4 name $5 final $4 type $10 pure-token $5 token $5 FINAL $5 flags *1 +optional"));
  EXPECT_THAT(told, HasSubstr("$4 name $5 count $4 type $7 integer *6 $4 name $6 leases"));
}

TEST(Info, TellsInSectionsHowTheServerIsDoing) {
  Backstage stage;
  Client client(stage);
  client.ask({"SUBMIT", "mail", "x"});
  const std::string all = client.ask({"INFO"});
  for (const char* part : {"# Server ", "# Clients ", "# Memory ", "# Persistence ", "loading:0 ", "# Stats ",
                           "# Keyspace ", "queue_mail:paused=0,delayed=0,waiting=1,leased=0,"})
    EXPECT_THAT(all, HasSubstr(part));
  const std::string one = client.ask({"INFO", "memory"});
  EXPECT_THAT(one, HasSubstr("# Memory used_memory_rss:"));
  EXPECT_THAT(one, Not(HasSubstr("# Server")));
  EXPECT_EQ(client.ask({"INFO", "nonsense"}), "$0  ");
}

// X4
TEST(Info, TellsQueuesToWhoMayAskForThem) {
  const NewToken ci = make_token();
  Backstage stage;
  Client open_to_all(stage);
  open_to_all.ask({"SUBMIT", "mail", "x"});
  stage.access = Access::read("ci " + ci.hash + " default=submit").value();
  Client client(stage);
  EXPECT_THAT(client.ask({"INFO"}), StartsWith("-NOAUTH "));
  client.ask({"AUTH", ci.token});
  EXPECT_THAT(client.ask({"INFO"}), HasSubstr("# Server"));
  EXPECT_THAT(client.ask({"INFO"}), Not(HasSubstr("mail")));
}

TEST(RedisCommands, AreAnsweredAsClientsExpect) {
  Backstage stage;
  Client client(stage);
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"PING"}, "+PONG "},
      {{"ping", "hello"}, "$5 hello "},
      {{"PING", "a", "b"}, "-INVALID_REQUEST "},
      {{"ECHO", "hello"}, "$5 hello "},
      {{"ECHO"}, "-INVALID_REQUEST wrong number of arguments for 'echo'"},
      {{"SELECT", "0"}, "+OK "},
      {{"SELECT", "1"}, "-INVALID_REQUEST there is one database"},
      {{"CONFIG", "GET", "append*"}, "*4 $11 appendfsync $6 always $10 appendonly $3 yes "},
      {{"CONFIG", "GET", "save", "frob"}, "*2 $4 save $0  "},
      {{"CONFIG", "GET", "frob"}, "*0 "},
      {{"CONFIG", "SET", "save", ""}, "-INVALID_REQUEST CONFIG GET pattern"},
      {{"AUTH", "whatever"}, "+OK "},
      {{"WATCH", "x"}, "-INVALID_REQUEST nothing can be watched"},
  };
  for (const auto& [words, reply] : cases) EXPECT_THAT(client.ask(words), StartsWith(reply)) << words[0];
}

TEST(Reset, MakesAConnectionAsItWasWhenItBegan) {
  const NewToken ci = make_token();
  Backstage stage;
  stage.access = Access::read("ci " + ci.hash + " *=all").value();
  Client client(stage);
  client.ask({"HELLO", "3", "AUTH", "ci", ci.token, "SETNAME", "me"});
  client.ask({"USE", "other"});
  client.ask({"MULTI"});
  EXPECT_EQ(client.ask({"RESET"}), "+RESET ");
  EXPECT_THAT(client.ask({"SUBMIT", "q", "x"}), StartsWith("-NOAUTH "));
  EXPECT_THAT(client.ask({"CLIENT", "INFO"}), HasSubstr("name= resp=2 user= namespace=default"));
  EXPECT_THAT(client.ask({"EXEC"}), HasSubstr("EXEC without MULTI"));
}

TEST(Quit, IsAnsweredAndEndsTheConnection) {
  Backstage stage;
  Client client(stage);
  EXPECT_EQ(client.ask({"QUIT"}), "+OK ");
  EXPECT_TRUE(client.session.is_closing());
}

TEST(Multi, GathersCommandsAndAnswersThemTogether) {
  Backstage stage;
  Client client(stage);
  EXPECT_EQ(client.ask({"MULTI"}), "+OK ");
  EXPECT_EQ(client.ask({"SUBMIT", "q", "a"}), "+QUEUED ");
  EXPECT_EQ(client.ask({"PING"}), "+QUEUED ");
  EXPECT_EQ(client.ask({"LEASE", "w", "q"}), "+QUEUED ");
  EXPECT_EQ(client.ask({"QUEUES", "COUNT", "1"}), "+QUEUED ");
  Client other(stage);
  EXPECT_THAT(other.ask({"QUEUES"}), HasSubstr("queues *0")) << "none is begun before EXEC";
  const std::string replies = client.ask({"EXEC"});
  EXPECT_THAT(replies, StartsWith("*4 *6 $3 lsn "));
  EXPECT_THAT(replies, HasSubstr("+PONG "));
  EXPECT_EQ(member(replies, "payload"), "a");
  EXPECT_THAT(replies, HasSubstr("queues *1"));
  EXPECT_EQ(client.ask({"PING"}), "+PONG ");
}

TEST(Multi, DoesNotWait) {
  Backstage stage;
  Client client(stage);
  const std::string task = member(client.ask({"SUBMIT", "other", "x"}), "task");
  client.ask({"MULTI"});
  client.ask({"LEASE", "w", "q", "WAIT_MS", "3600000"});
  client.ask({"WAIT", task});
  const std::string replies = client.ask({"EXEC"});
  EXPECT_THAT(replies, HasSubstr("tasks *0"));
  EXPECT_EQ(member(replies, "state"), "waiting");
}

// As many are under way at once as without MULTI: what EXEC gathers may be answered with gigabytes.
TEST(Multi, BeginsNoMoreAtOnceThanAConnectionMay) {  // X5
  Backstage stage({}, {.under_way_max = 100});
  Client client(stage);
  const std::string task = member(client.ask({"SUBMIT", "q", "x"}), "task");
  client.ask({"MULTI"});
  for (int count = 0; count < 10; ++count) client.ask({"GET", task});
  client.send({"EXEC"});
  EXPECT_EQ(stage.desk().counters.commands["get"], 2u) << "each counts for 64";
  const std::string replies = client.hear();
  EXPECT_THAT(replies, StartsWith("*10 "));
  EXPECT_EQ(stage.desk().counters.commands["get"], 10u);
  EXPECT_EQ(client.ask({"PING"}), "+PONG ");
}

TEST(Multi, KeepsTheOrderOfWhatIsWrittenDownFirst) {  // X7
  const TemporaryDirectory directory;
  auto audit = Audit::open(directory.path() + "/audit").value();
  Backstage stage;
  stage.audit_to(*audit);
  Client client(stage);
  client.ask({"SUBMIT", "q", "x"});
  client.ask({"MULTI"});
  client.ask({"PAUSE", "q"});
  client.ask({"LEASE", "w", "q"});
  EXPECT_THAT(client.ask({"EXEC"}), HasSubstr("tasks *0"));
}

TEST(Multi, OneThatIsRefusedWhenItIsBegunUndoesNoOther) {
  Backstage stage;
  Client client(stage);
  client.ask({"MULTI"});
  client.ask({"COMPLETE", "1-2", "1-2-3"});
  client.ask({"SUBMIT", "q", "x"});
  const std::string replies = client.ask({"EXEC"});
  EXPECT_THAT(replies, StartsWith("*2 -NOT_FOUND "));
  EXPECT_NE(member(replies, "task"), "");
}

TEST(Multi, IsAbortedByACommandThatMakesNoSense) {
  Backstage stage;
  Client client(stage);
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"FROB"},
                                                {"SUBMIT", "q"},
                                                {"SUBMIT", "q", "x", "PRIORITY", "10"},
                                                {"ECHO"}}) {
    client.ask({"MULTI"});
    EXPECT_EQ(client.ask({"SUBMIT", "q", "x"}), "+QUEUED ");
    EXPECT_THAT(client.ask(wrong), StartsWith("-"));
    EXPECT_THAT(client.ask({"EXEC"}), StartsWith("-EXECABORT "));
  }
  EXPECT_THAT(client.ask({"QUEUES"}), HasSubstr("queues *0")) << "nothing was changed";
}

TEST(Multi, IsForgottenWhenDiscarded) {
  Backstage stage;
  Client client(stage);
  EXPECT_THAT(client.ask({"EXEC"}), StartsWith("-INVALID_REQUEST EXEC without MULTI"));
  EXPECT_THAT(client.ask({"DISCARD"}), StartsWith("-INVALID_REQUEST DISCARD without MULTI"));
  client.ask({"MULTI"});
  EXPECT_THAT(client.ask({"MULTI"}), StartsWith("-INVALID_REQUEST MULTI within MULTI"));
  client.ask({"SUBMIT", "q", "x"});
  EXPECT_EQ(client.ask({"DISCARD"}), "+OK ");
  EXPECT_THAT(client.ask({"QUEUES"}), HasSubstr("queues *0"));
  client.ask({"MULTI"});
  EXPECT_EQ(client.ask({"EXEC"}), "*0 ");
}

// X3
TEST(Multi, GathersNoMoreThanItsLimit) {
  Backstage stage;
  Client client(stage);
  client.ask({"MULTI"});
  for (std::size_t count = 0; count < Transaction::kCommandsMax; ++count)
    ASSERT_EQ(client.ask({"PING"}), "+QUEUED ");
  EXPECT_THAT(client.ask({"PING"}), StartsWith("-TOO_LARGE "));
  EXPECT_THAT(client.ask({"EXEC"}), StartsWith("-EXECABORT "));
  client.ask({"MULTI"});
  const std::string half(Transaction::kBytesMax / 2 - 4 - 2 * sizeof(std::string), 'x');
  for (int times = 0; times < 2; ++times) EXPECT_EQ(client.ask({"ECHO", half}), "+QUEUED ");
  EXPECT_THAT(client.ask({"PING"}), StartsWith("-TOO_LARGE "));
}

}  // namespace
}  // namespace baton::server
