// baton task and baton queue: what they show, for people and for programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "tests/cli/at_server.h"
#include "tests/temporary_directory.h"

namespace baton::cli {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

TEST(TaskGet, ShowsATaskAndEscapesWhatATerminalWouldObey) {
  const AtServer at;
  at.baton({"submit", "mail", "red \x1b[31m ink", "--key", "k", "--priority", "2"});
  const Said said = at.baton({"task", "get", "key:k"});
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  for (const char* part : {"queue         mail\n", "key           k\n", "state         waiting, for ",
                           "attempts      0, of which 0 failed\n", "payload       red \\x1b[31m ink\n"})
    EXPECT_TRUE(contains(said.output, part)) << part << said.output;
  EXPECT_EQ(at.shell("baton task get key:k --only payload; echo").output, "red \x1b[31m ink\n");
}

TEST(TaskGet, IsTheProtocolsObjectInJson) {  // X8
  const AtServer at;
  const std::string id = first_line(at.baton({"submit", "mail", "hello", "--key", "k"}).output);
  const Said said = at.baton({"task", "get", id, "--json"});
  EXPECT_TRUE(begins(said.output,
                     R"({"task":{"task":")" + id + R"(","queue":"mail","state":"waiting","priority":0,)"))
      << said.output;
  EXPECT_TRUE(contains(said.output, R"("key":"k"},"payload":"hello","reason":""})")) << said.output;
}

TEST(TaskGet, OfNoSuchTaskIsAnErrorAndTheOthersAreShown) {  // X3
  const AtServer at;
  at.baton({"submit", "mail", "hello", "--key", "k"});
  const Said said = at.baton({"task", "get", "key:none", "key:k"});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_EQ(said.errors, "baton: NOT_FOUND: key:none: no such task\n");
  EXPECT_TRUE(contains(said.output, "payload       hello")) << said.output;
}

TEST(TaskWait, PrintsResultsInTheOrderAskedForAndTellsWhatFailed) {
  const AtServer at;
  for (const char* key : {"a", "b", "c"}) at.baton({"submit", "q", key, "--key", key});
  // They end in another order than they are asked for, and not before somebody waits for all of them.
  const Said said = at.shell(
      "baton task wait key:c key:b key:a & waiting=$!; "
      "connections() { redis-cli -u redis://$0 STATS | grep -A1 '^connections_resp$' | tail -n 1; }; "
      "until [ $(connections) -ge 4 ]; do :; done; "
      "baton work q --drain -- sh -c 'read x; test $x != b || exit 65; echo did $x' 2>/dev/null; wait "
      "$waiting");
  EXPECT_EQ(said.exit_code, 2);
  EXPECT_EQ(said.output, "did c\ndid a\n");
  EXPECT_TRUE(contains(said.errors, ": failed: INVALID_REQUEST: exit code 65\n")) << said.errors;
}

TEST(TaskList, AlignsItsColumnsAndChoosesByQueueAndState) {
  const AtServer at;
  at.shell(
      "seq 3 | baton submit numbers --lines; baton submit mail hello --key k; baton work mail --once -- cat");
  const Said all = at.baton({"task", "list"});
  // How long they are in their state is as wide as it happens to be.
  const std::regex table(
      "TASK       QUEUE    STATE      +FOR  TRIES  PRIORITY  WORKER  KEY\n"
      "([0-9a-f]{7}-[0-9a-f]  numbers  waiting    +[0-9a-z]+      0         0\n){3}"
      "[0-9a-f]{7}-[0-9a-f]  mail     completed +[0-9a-z]+      1         0          k\n");
  EXPECT_TRUE(std::regex_match(all.output, table)) << all.output;
  EXPECT_EQ(std::count(all.output.begin(), all.output.end(), '\n'), 5) << all.output;
  const Said waiting = at.baton({"task", "list", "--state", "waiting", "--json"});
  EXPECT_EQ(std::count(waiting.output.begin(), waiting.output.end(), '\n'), 3) << waiting.output;
  EXPECT_TRUE(contains(at.baton({"task", "list", "--queue", "mail"}).output, "completed")) << all.output;
  const Said few = at.baton({"task", "list", "--limit", "2"});
  EXPECT_EQ(std::count(few.output.begin(), few.output.end(), '\n'), 3) << few.output;
  EXPECT_TRUE(contains(few.errors, "--limit 0 shows all")) << few.errors;
}

TEST(TaskList, GoesThroughEveryPage) {
  const AtServer at;
  const Said said = at.shell("seq 2500 | baton submit q --lines; baton task list --limit 0 --json | wc -l");
  EXPECT_EQ(said.output, "2500\n");
}

TEST(TaskCancel, EndsTheTaskAndRequeueHandsItInAgain) {
  const AtServer at;
  at.baton({"submit", "mail", "hello", "--key", "k"});
  const Said early = at.baton({"task", "requeue", "key:k"});
  EXPECT_EQ(early.exit_code, 1);
  EXPECT_TRUE(begins(early.errors, "baton: WRONG_STATE: key:k: ")) << early.errors;
  const Said said = at.baton({"task", "cancel", "key:k", "--note", "never mind"});
  EXPECT_EQ(said.output, "key:k is cancelled\n") << said.errors;
  const Said seen = at.baton({"task", "get", "key:k"});
  EXPECT_TRUE(contains(seen.output, "dead (cancelled)")) << seen.output;
  const std::string again = first_line(at.baton({"task", "requeue", "key:k"}).output);
  EXPECT_TRUE(contains(at.baton({"task", "get", again}).output, "retry of")) << again;
}

TEST(Audit, SaysWhetherALineWasChanged) {
  const TemporaryDirectory temporary;
  const std::string file = temporary.path() + "/audit";
  const AtServer at({"--audit", file});
  at.baton({"queue", "pause", "mail"});
  EXPECT_EQ(at.baton({"audit", file}).output, file + ": 2 lines, each follows from the one before\n");
  EXPECT_EQ(at.baton({"audit", file, "--json"}).output, R"({"file":")" + file + "\",\"lines\":2}\n");
  at.shell("sed -i s/pause/purge/ " + file);
  const Said said = at.baton({"audit", file});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_EQ(said.errors, "baton: CORRUPT: " + file + ": line 1 is not what it was when line 2 was written\n");
  EXPECT_TRUE(contains(at.baton({"audit", file + "?"}).errors, "No such file")) << said.errors;
}

TEST(QueueCommands, PauseResumeAndPurge) {
  const AtServer at;
  at.baton({"submit", "mail", "hello"});
  EXPECT_EQ(at.baton({"queue", "pause", "mail"}).output, "mail is paused: its tasks wait\n");
  EXPECT_TRUE(begins(at.baton({"work", "mail", "--drain", "--", "cat"}).errors, "0 completed"));
  EXPECT_EQ(at.baton({"queue", "list"}).output,
            "QUEUE  WAITING  DELAYED  LEASED  COMPLETED  FAILED  DEAD\n"
            "mail         1        0       0          0       0     0  paused\n");
  EXPECT_TRUE(begins(at.baton({"queue", "list", "--json"}).output,
                     R"({"queue":"mail","paused":true,"waiting":1,"delayed":0,"leased":0,"completed":0,)"));
  EXPECT_EQ(at.baton({"queue", "resume", "mail", "--json"}).output,
            "{\"queue\":\"mail\",\"paused\":false}\n");
  EXPECT_TRUE(begins(at.baton({"work", "mail", "--drain", "--", "cat"}).errors, "1 completed"));
  EXPECT_EQ(at.baton({"queue", "purge", "mail"}).output, "mail: forgot 1 finished task\n");
  EXPECT_EQ(at.baton({"queue", "list", "--json"}).output, "");  // a queue is there while it has tasks
}

}  // namespace
}  // namespace baton::cli
