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
  EXPECT_EQ(said.errors, "baton: NOT_FOUND: no such task: key:none\n");
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
  EXPECT_TRUE(contains(said.errors, ": failed: exit code 65\n")) << said.errors;
}

TEST(TaskWait, EscapesWhatATerminalWouldObey) {
  const AtServer at;
  at.baton({"submit", "q", "x", "--key", "k", "--max-failures", "1"});
  at.shell(R"(baton work q --once -- sh -c 'printf "red \033[31m ink" >&2; exit 65')");
  const Said said = at.baton({"task", "wait", "key:k"});
  EXPECT_TRUE(contains(said.errors, "exit code 65: red \\x1b[31m ink\n")) << said.errors;
  // script(1) gives the command a terminal; results are escaped there, and only there.
  at.baton({"submit", "q", "y", "--key", "good"});
  at.shell(R"(baton work q --once -- printf 'a\033[31m\nb')");
  EXPECT_EQ(at.baton({"task", "wait", "key:good"}).output, "a\x1b[31m\nb\n");
  const Said shown = at.shell("script -qec \"" BATON_PROGRAM " task wait key:good\" /dev/null | tr -d '\\r'");
  EXPECT_EQ(shown.output, "a\\x1b[31m\nb\n");
}

TEST(TaskList, AlignsItsColumnsAndChoosesByQueueAndState) {
  const AtServer at;
  at.shell(
      "seq 3 | baton submit numbers --lines; baton submit mail hello --key k; baton work mail --once -- cat");
  const Said all = at.baton({"task", "list"});
  // How long they are in their state is as wide as it happens to be.
  const std::regex table(
      "TASK       QUEUE    STATE      +FOR  TRIES  PRIORITY  WORKER  KEY\n"
      "([0-9a-f]{7}-[0-9a-f]  numbers  waiting    +[0-9a-z]+      0         0          "
      "[0-9a-f]{16}:[1-3]\n){3}"
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

TEST(TaskList, TellsWhenADelayedTaskIsDue) {
  const AtServer at;
  at.baton({"submit", "mail", "hello", "--delay", "1h", "--key", "k"});
  const Said list = at.baton({"task", "list"});
  EXPECT_TRUE(std::regex_search(list.output, std::regex("mail +delayed +due in (1h00m|59m5[0-9]s) ")))
      << list.output;
  const Said seen = at.baton({"task", "get", "key:k"});
  EXPECT_TRUE(contains(seen.output, "state         delayed, due in ")) << seen.output;
  at.baton({"submit", "q", "now"});
  EXPECT_EQ(at.shell("baton task list --state delayed --json --limit 1 | grep -c '\"key\":\"k\"'").output,
            "1\n");
  EXPECT_EQ(at.shell("baton task list --state delayed --json | wc -l").output, "1\n");
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
  EXPECT_TRUE(contains(seen.output, "\nnote          never mind\n")) << seen.output;
  const std::string again = first_line(at.baton({"task", "requeue", "key:k"}).output);
  EXPECT_TRUE(contains(at.baton({"task", "get", again}).output, "retry of")) << again;
}

TEST(TaskRequeue, TakesAllOfAQueueAndStateOnceAndUpToALimit) {
  const AtServer at;
  at.shell(
      "seq 30 | baton submit mail --lines; baton submit other x; baton task cancel --queue mail --state "
      "waiting");
  const Said dry = at.baton({"task", "requeue", "--queue", "mail", "--state", "dead", "--dry-run"});
  EXPECT_EQ(dry.exit_code, 0) << dry.errors;
  EXPECT_EQ(dry.errors, "30 tasks would be requeued\n");
  EXPECT_EQ(std::count(dry.output.begin(), dry.output.end(), '\n'), 30);
  const Said json =
      at.baton({"task", "requeue", "--queue", "mail", "--state", "dead", "--dry-run", "--json"});
  EXPECT_EQ(first_line(json.output), R"({"task":")" + first_line(dry.output) + "\"}");
  const Said some = at.baton({"task", "requeue", "--queue", "mail", "--state", "dead", "--limit", "20"});
  EXPECT_TRUE(begins(some.errors, "baton: there may be more than these 20; ")) << some.errors;
  EXPECT_TRUE(contains(some.errors, "\n20 tasks requeued\n")) << some.errors;
  const Said all = at.baton({"task", "requeue", "--queue", "mail", "--state", "dead"});
  EXPECT_TRUE(begins(all.output, some.output)) << "the same ones are the same tasks";
  EXPECT_EQ(all.errors, "10 tasks requeued, 20 had been already\n");
  const Said queues = at.baton({"queue", "list", "--json"});
  EXPECT_TRUE(contains(queues.output, R"("queue":"mail","paused":false,"waiting":30)")) << queues.output;
  EXPECT_TRUE(contains(queues.output, R"("queue":"other","paused":false,"waiting":1)")) << queues.output;
}

TEST(TaskCancel, RefusesWhatMakesNoSenseTogether) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"task", "cancel"},
           {"task", "cancel", "--queue", "mail"},
           {"task", "cancel", "key:k", "--state", "waiting"},
           {"task", "cancel", "key:k", "--dry-run"},
           {"task", "cancel", "--state", "waiting"},
           {"task", "cancel", "--all-queues"},
           {"task", "cancel", "--queue", "q", "--all-queues", "--state", "leased"},
           {"task", "requeue", "--state", "dead"},
           {"task", "cancel", "--queue", "mail", "--state", "dead"},
           {"task", "requeue", "--queue", "mail", "--key", "k"}})
    EXPECT_EQ(baton(arguments).exit_code, 64) << arguments.back();
}

TEST(TaskCancel, TakesEveryQueueOnlyIfToldTo) {
  const AtServer at;
  at.shell("baton submit mail hello; baton submit other x");
  EXPECT_EQ(at.baton({"task", "cancel", "--all-queues", "--state", "waiting"}).errors, "2 tasks cancelled\n");
}

TEST(Audit, SaysWhetherALineWasChanged) {
  const TemporaryDirectory temporary;
  const std::string file = temporary.path() + "/audit";
  const AtServer at({"--audit", file});
  at.baton({"queue", "pause", "mail"});
  EXPECT_EQ(at.baton({"audit", file}).output, file + ": 2 lines, each follows from the one before\n");
  EXPECT_EQ(at.baton({"audit", file, "--json"}).output,
            R"({"file":")" + file + "\",\"lines\":2,\"first\":1}\n");
  EXPECT_TRUE(contains(at.shell("tail -n 1 " + file + " > " + file + ".2; baton audit " + file + ".2").output,
                       "1 line, each follows from the one before; the first is number 2"));
  const Said cut = at.shell("head -c -9 " + file + " > " + file + ".3; baton audit " + file + ".3");
  EXPECT_EQ(cut.exit_code, 1) << cut.output;
  EXPECT_TRUE(contains(cut.errors, "line 2 of the file cannot be read")) << cut.errors;
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
            "QUEUE  WAITING  OF THEM DELAYED  LEASED  COMPLETED  FAILED  DEAD\n"
            "mail         1                0       0          0       0     0  paused\n");
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
