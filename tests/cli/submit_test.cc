// baton submit: where the payload comes from, what is said about each task, and the exit codes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <mutex>

#include "tests/cli/at_server.h"
#include "tests/scripted_server.h"
#include "tests/temporary_directory.h"

namespace baton::cli {
namespace {

TEST(SubmitCommand, PrintsTheIdOfTheTask) {  // X8
  const AtServer at;
  const Said said = at.baton({"submit", "mail", "hello", "--priority", "3", "--delay", "1m"});
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  EXPECT_EQ(said.errors, "");
  ASSERT_FALSE(said.output.empty());
  const std::string task = said.output.substr(0, said.output.size() - 1);
  const Said seen = at.shell("redis-cli -u redis://$0 GET " + task);
  EXPECT_TRUE(contains(seen.output, "hello")) << seen.output;
}

TEST(SubmitCommand, UnderTheSameKeyIsTheSameTaskAndOtherContentIsAConflict) {
  const AtServer at;
  const Said first = at.baton({"submit", "mail", "hello", "--key", "k1", "--json"});
  const Said second = at.baton({"submit", "mail", "hello", "--key", "k1", "--json"});
  EXPECT_TRUE(contains(first.output, R"("existed":false})")) << first.output;
  EXPECT_TRUE(contains(second.output, R"("existed":true})")) << second.output;
  const Said other = at.baton({"submit", "mail", "other", "--key", "k1", "--json"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_TRUE(begins(other.output, R"({"error":{"code":"CONFLICT","message":")")) << other.output;
  EXPECT_TRUE(begins(other.errors, "baton: CONFLICT: ")) << other.errors;
}

TEST(SubmitCommand, TakesAWholeFileAsThePayload) {
  const AtServer at;
  const TemporaryDirectory temporary;
  const std::string path = temporary.path() + "/letter";
  std::ofstream(path) << "dear alice\n\ngoodbye\n";
  EXPECT_EQ(at.baton({"submit", "mail", "--file", path, "--key", "k"}).exit_code, 0);
  EXPECT_EQ(
      at.shell("printf 'dear alice\\n\\ngoodbye\\n' | baton submit mail --file - --key k --json").exit_code,
      0);
  const Said missing = at.baton({"submit", "mail", "--file", path + ".not"});
  EXPECT_EQ(missing.exit_code, 66);
  EXPECT_TRUE(contains(missing.errors, path + ".not: No such file")) << missing.errors;
}

TEST(SubmitCommand, MakesATaskOfEachLineInTheirOrder) {
  const AtServer at;
  const Said said = at.shell("seq 5000 | baton submit numbers --lines --json");
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  EXPECT_TRUE(begins(said.errors, "5000 tasks submitted in ")) << said.errors;
  EXPECT_EQ(std::count(said.output.begin(), said.output.end(), '\n'), 5000);
  const Said leased = at.shell(
      "redis-cli -u redis://$0 LEASE w numbers COUNT 100 | grep -A1 '^payload$' | grep -E '^[0-9]' | diff - "
      "<(seq 100)");
  EXPECT_EQ(leased.exit_code, 0) << leased.output;
}

// A coordinator that answers submissions only after it has refused so many, as one that stops would; it notes
// the words of each.
class Restarting {
 public:
  explicit Restarting(int times) : left_(times) {}
  std::string answer(const std::vector<std::string>& words) {
    if (words[0] == "PING") return "+PONG\r\n";
    const bool is_many = words[0] == "SUBMITMANY";
    if (!is_many && words[0] != "SUBMIT") return "+OK\r\n";
    const std::lock_guard lock(mutex_);
    heard_.push_back(words);
    if (left_-- > 0) return "-CLOSED the server is stopping\r\n";
    if (!is_many) return taken(0);
    std::string reply = "*" + words[2] + "\r\n";
    for (int i = 0; i < std::stoi(words[2]); ++i) reply += taken(i);
    return reply;
  }
  static std::string taken(int number) {
    return "%3\r\n+lsn\r\n:1\r\n+task\r\n+a-" + std::to_string(number) + "\r\n+existed\r\n#f\r\n";
  }
  std::vector<std::vector<std::string>> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }

 private:
  std::mutex mutex_;
  int left_;
  std::vector<std::vector<std::string>> heard_;
};

TEST(SubmitCommand, SaysItAgainUnderTheSameKeysWhenTheConnectionBreaks) {  // X2
  Restarting restarting(2);
  const ScriptedServer server(
      [&](const std::vector<std::string>& words) { return restarting.answer(words); });
  const Said said = run_program(
      {"/bin/bash", "-c", "printf 'one\\ntwo\\n' | " BATON_PROGRAM " submit q --lines --ids --connect $0",
       server.address()});
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  EXPECT_EQ(said.output, "a-0\na-1\n");
  const auto heard = restarting.heard();
  ASSERT_EQ(heard.size(), 3u);
  EXPECT_EQ(heard[0], heard[1]);
  EXPECT_EQ(heard[0], heard[2]);
  EXPECT_EQ(std::ranges::count(heard[0], "KEY"), 2);
}

// X7: who ends it halfway learns how to go on, also where the run's name is none of his.
TEST(SubmitCommand, TellsHowToGoOnWhenItIsEndedHalfway) {
  AtServer at;
  const TemporaryDirectory temporary;
  crash::Child child({.command = {"/bin/bash", "-c",
                                  "mkfifo $0/lines; exec 3<>$0/lines; echo one >&3; exec " BATON_PROGRAM
                                  " submit q --lines --file $0/lines --connect $1",
                                  temporary.path(), at.server().address()}});
  ASSERT_TRUE(
      eventually([&] { return contains(at.baton({"queue", "list", "--json"}).output, R"("waiting":1)"); }));
  child.signal(SIGINT);
  EXPECT_EQ(child.wait(crash::after_ms(20'000)).signal, SIGINT);
  EXPECT_TRUE(contains(child.errors(), "\nof the lines read: 1 taken, 0 of unknown outcome, 0 not sent\n"))
      << child.errors();
  const std::string before = "baton: the same lines again with --run ", behind = " hand in what is missing";
  const std::size_t from = child.errors().find(before);
  ASSERT_NE(from, std::string::npos) << child.errors();
  const std::size_t name_at = from + before.size();
  const std::string run = child.errors().substr(name_at, child.errors().find(behind) - name_at);
  const Said again = at.shell("printf 'one\\ntwo\\n' | baton submit q --lines --run " + run);
  EXPECT_TRUE(begins(again.errors, "2 tasks submitted in ")) << again.errors;
  EXPECT_TRUE(contains(again.errors, "1 of them known already")) << again.errors;
}

// X7: three requests, of which the first is taken, the second refused for now, and the third not answered.
TEST(SubmitCommand, TellsWhatBecameOfTheLinesWhenItIsEndedHalfway) {
  const ScriptedServer server([](const std::vector<std::string>& words) -> std::string {
    if (words[0] == "PING") return "+PONG\r\n";
    if (words[0] != "SUBMITMANY") return "+OK\r\n";
    if (words[1] != "c") return "";
    return "*1\r\n" + Restarting::taken(0) + "-EXHAUSTED full; retry_after_ms=60000\r\n";
  });
  const TemporaryDirectory temporary;
  const std::string path = temporary.path() + "/tasks";
  for (std::ofstream file(path); const char queue : {'a', 'b', 'c'})
    file << R"({"queue":")" << queue << R"(","payload":"x"})" << '\n';
  crash::Child child(
      {.command = {"/bin/bash", "-c", "exec " BATON_PROGRAM " submit --ndjson --file $0 --connect $1 2>&1",
                   path, server.address()}});
  ASSERT_TRUE(child.listen(crash::after_ms(20'000), [](const std::string& line) {
    return !contains(line, "EXHAUSTED: full; what is refused is handed in again");
  }));
  child.signal(SIGINT);
  bool is_told = false;
  child.listen(crash::after_ms(20'000), [&](const std::string& line) {
    is_told |= line == "of the lines read: 1 taken, 1 of unknown outcome, 1 not sent";
    return true;
  });
  EXPECT_TRUE(is_told);
}

TEST(SubmitCommand, WithoutAKeyIsSaidAgainIfItWasNotTaken) {  // X2
  Restarting restarting(1);
  const ScriptedServer server(
      [&](const std::vector<std::string>& words) { return restarting.answer(words); });
  const Said said = baton({"submit", "mail", "hello", "--connect", server.address()});
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  EXPECT_EQ(said.output, "a-0\n");
  EXPECT_EQ(restarting.heard().size(), 2u);
}

TEST(SubmitCommand, TellsAnUnknownOutcomeFromARefusal) {  // X7
  const ScriptedServer server([&](const std::vector<std::string>& words) -> std::string {
    if (words[0] == "PING") return "+PONG\r\n";
    return words[0] == "SUBMITMANY" ? "" : "+OK\r\n";
  });
  const Said said = run_program({"/bin/bash", "-c",
                                 "printf 'one\\ntwo\\n' | " BATON_PROGRAM
                                 " submit q --lines --ids --timeout 300ms --run nightly --connect $0",
                                 server.address()});
  EXPECT_EQ(said.exit_code, 75) << said.errors;
  EXPECT_EQ(said.output, "-\n-\n");
  EXPECT_TRUE(begins(said.errors, "baton: from line 1 on: OUTCOME_UNKNOWN: ")) << said.errors;
  EXPECT_TRUE(contains(said.errors, " s, 2 of unknown outcome\n")) << said.errors;
  EXPECT_TRUE(contains(said.errors, "the same lines again with --run nightly hand in what is missing"))
      << said.errors;
}

// X2, X7: whoever took the first may be told apart from whoever refuses the second
TEST(SubmitCommand, SaysThatTheOutcomeIsUnknownIfOnlyTheRepetitionWasRefused) {
  std::atomic<bool> was_taken = false;
  const ScriptedServer server([&](const std::vector<std::string>& words) -> std::string {
    if (words[0] == "SUBMIT") return was_taken.exchange(true) ? "+OK\r\n" : "nonsense\r\n";
    return was_taken ? "-WRONGPASS no such token\r\n" : "+OK\r\n";
  });
  const Said said = baton({"submit", "mail", "hello", "--key", "k", "--connect", server.address()});
  EXPECT_EQ(said.exit_code, 75) << said.errors;
  EXPECT_TRUE(contains(said.errors, "OUTCOME_UNKNOWN")) << said.errors;
  EXPECT_TRUE(contains(said.errors, "does not know this token")) << said.errors;
}

// X5: also if the answer to the first attempt was lost
TEST(SubmitCommand, HandsInAgainWhatWasRefusedForNowWhenItWasRepeated) {
  std::atomic<int> heard = 0;
  const ScriptedServer server([&](const std::vector<std::string>& words) -> std::string {
    if (words[0] == "PING") return "+PONG\r\n";
    if (words[0] != "SUBMITMANY") return "+OK\r\n";
    ++heard;
    if (heard == 1) return "nonsense\r\n";
    return heard == 2 ? "-EXHAUSTED too fast; retry_after_ms=1\r\n" : "*1\r\n" + Restarting::taken(1);
  });
  const Said said =
      run_program({"/bin/bash", "-c", "echo one | " BATON_PROGRAM " submit q --lines --ids --connect $0",
                   server.address()});
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  EXPECT_EQ(said.output, "a-1\n");
  EXPECT_EQ(heard, 3);
}

// X5: what there is no room for is handed in again when there is, and nothing else.
TEST(SubmitCommand, HandsInAgainWhatWasRefusedForNow) {
  std::mutex mutex;
  std::vector<std::vector<std::string>> heard;
  const ScriptedServer server([&](const std::vector<std::string>& words) -> std::string {
    if (words[0] == "PING") return "+PONG\r\n";
    if (words[0] != "SUBMITMANY") return "+OK\r\n";
    const std::lock_guard lock(mutex);
    heard.push_back(words);
    if (heard.size() == 1) return "-EXHAUSTED too fast; retry_after_ms=1\r\n";
    if (heard.size() == 2)
      return "*3\r\n" + Restarting::taken(1) + "-EXHAUSTED too fast; retry_after_ms=1\r\n" +
             Restarting::taken(3);
    return "*1\r\n" + Restarting::taken(2);
  });
  const Said said = run_program({"/bin/bash", "-c",
                                 "printf 'one\\ntwo\\nthree\\n' | " BATON_PROGRAM
                                 " submit q --lines --ids --run r --connect $0",
                                 server.address()});
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  EXPECT_EQ(said.output, "a-1\na-2\na-3\n");
  EXPECT_TRUE(begins(said.errors,
                     "baton: EXHAUSTED: too fast; what is refused is handed in again, as fast as "
                     "it is taken\n3 tasks submitted in "))
      << said.errors;
  ASSERT_EQ(heard.size(), 3u);
  EXPECT_EQ(heard[0], heard[1]);
  EXPECT_EQ(heard[2], (std::vector<std::string>{"SUBMITMANY", "q", "1", "two", "KEY", "r:2"}));
}

TEST(SubmitCommand, IsAsFastAsItsNamespaceMayBe) {  // X5
  const AtServer at({"--namespace-bytes-per-second-max", "200KiB", "--namespace-bytes-burst", "100KiB"});
  const Said said = at.shell(
      "seq 1000 | sed 's/$/ padded to some two hundred bytes: '$(printf %0170d)'/' | "
      "baton submit q --lines");
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  EXPECT_TRUE(begins(said.errors, "baton: EXHAUSTED: the namespace writes faster than it may"))
      << said.errors;
  EXPECT_TRUE(contains(said.errors, "\n1000 tasks submitted in ")) << said.errors;
  EXPECT_TRUE(contains(at.baton({"queue", "list", "--json"}).output, R"("waiting":1000)"));
}

TEST(SubmitCommand, GivesUpWhenNothingIsTakenForItsTimeout) {  // X5, X7
  const AtServer at({"--tasks-max", "2"});
  const Said said = at.shell("seq 5 | baton submit q --lines --ids --run r --timeout 2s");
  EXPECT_EQ(said.exit_code, 1) << said.errors;
  EXPECT_TRUE(contains(said.output, "\n-\n-\n-\n")) << said.output;
  EXPECT_TRUE(contains(said.errors, "\nbaton: from line 3 on: EXHAUSTED: ")) << said.errors;
  EXPECT_TRUE(contains(said.errors, " s, 3 not taken\n")) << said.errors;
  EXPECT_TRUE(contains(said.errors, "the same lines again with --run r hand in what is missing"))
      << said.errors;
  const Said one = at.baton({"submit", "q", "x", "--json"});
  EXPECT_TRUE(contains(one.output, R"("retry_after_ms":1000}})")) << one.output;
  EXPECT_TRUE(contains(one.errors, "; try again in 1s\n")) << one.errors;
}

TEST(SubmitCommand, TakesTheSameLinesOfTheSameRunOnce) {
  const AtServer at;
  const Said first = at.shell("seq 600 | baton submit q --lines --run r --ids");
  const Said second = at.shell("seq 700 | baton submit q --lines --run r --ids");
  EXPECT_TRUE(begins(second.output, first.output)) << second.errors;
  EXPECT_TRUE(contains(second.errors, ", 600 of them known already\n")) << second.errors;
  EXPECT_TRUE(contains(at.baton({"queue", "list", "--json"}).output, R"("waiting":700)"));
  // Without a name it is another run.
  EXPECT_EQ(at.shell("seq 10 | baton submit q --lines").errors.find("known"), std::string::npos);
}

TEST(SubmitCommand, TakesTheKeyFromTheLine) {
  const AtServer at;
  const Said said =
      at.shell("printf 'k1\\thello\\tworld\\nno key\\n' | baton submit q --lines --keyed --ids");
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(contains(said.errors, "line 2: INVALID_REQUEST: with --keyed a line begins with its key"))
      << said.errors;
  EXPECT_EQ(at.shell("baton task get key:k1 --only payload; echo").output, "hello\tworld\n");
}

TEST(SubmitCommand, SendsALineThatComesAloneAtOnce) {
  const AtServer at;
  // The second line is not written before the first one is a task.
  const Said said = at.shell(
      "{ echo one; until redis-cli -u redis://$0 GET key:none >/dev/null && redis-cli -u redis://$0 QUEUES | "
      "grep -q slow; "
      "do :; done; echo two; } | baton submit slow --lines");
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  EXPECT_TRUE(begins(said.errors, "2 tasks submitted in ")) << said.errors;
}

// A program that hands in line by line waits for the id of each.
TEST(SubmitCommand, PrintsTheIdOfALineThatComesAloneAtOnce) {
  const Said said = AtServer().shell(
      "coproc lines { baton submit q --lines --ids; }; echo one >&${lines[1]};"
      "read -r -t 20 id <&${lines[0]}; echo $(baton task get $id --only payload)");
  EXPECT_TRUE(begins(said.output, "one")) << said.errors;
}

TEST(SubmitCommand, ReadsTasksAsJsonAndTellsWhichLineIsWrong) {
  const AtServer at;
  const Said said = at.shell(
      R"(printf '%s\n' '{"queue":"a","payload":"x","key":"k","priority":9}' '{"payload":"y"}' '[' )"
      R"('{"queue":"a","payload":"x","prority":1}' '{"payload_base64":"/w=="}' '{"payload":"z","key":"no blanks"}' )"
      R"(| baton submit b --ndjson --json)");
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(contains(said.output, R"("message":"no such argument: prority"},"line":4})")) << said.output;
  EXPECT_TRUE(contains(said.errors, "baton: line 3: INVALID_REQUEST: ")) << said.errors;
  EXPECT_TRUE(contains(said.errors, "\n3 tasks submitted in ")) << said.errors;
  EXPECT_TRUE(contains(said.errors, " s, 3 refused\n")) << said.errors;
  EXPECT_TRUE(contains(at.shell("echo | baton submit b --ndjson").errors,
                       "line 1: INVALID_REQUEST: the line is empty"));
  EXPECT_TRUE(contains(at.shell("echo no | baton submit b --ndjson").errors, ": the line is not JSON: "));
  const Said queues = at.shell("redis-cli -u redis://$0 QUEUES");
  EXPECT_TRUE(contains(queues.output, "\na\n") && contains(queues.output, "\nb\n")) << queues.output;
}

TEST(SubmitCommand, KeepsTheOptionsOfNeighboursApart) {
  const AtServer at;
  at.shell(
      R"(printf '%s\n' '{"queue":"q","payload":"x","priority":1}' '{"queue":"q","payload":"x","priority":2}' )"
      R"('{"queue":"r","payload":"x"}' | baton submit --ndjson)");
  const Said list = at.baton({"task", "list", "--json"});
  for (const char* part :
       {R"("queue":"q","state":"waiting","priority":1)", R"("queue":"q","state":"waiting","priority":2)",
        R"("queue":"r","state":"waiting","priority":0)"})
    EXPECT_TRUE(contains(list.output, part)) << part << list.output;
}

TEST(SubmitCommand, TellsThatATaskItWaitedForHasNotEnded) {
  const AtServer at;
  const Said said = at.baton({"submit", "mail", "hello", "--wait", "--within", "50ms"});
  EXPECT_EQ(said.exit_code, 3);
  EXPECT_TRUE(contains(said.errors, ": has not ended, it is waiting")) << said.errors;
}

TEST(SubmitCommand, RefusesWhatMakesNoSenseTogether) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"submit"},
                                             {"submit", "mail"},
                                             {"submit", "mail", "hello", "--lines"},
                                             {"submit", "mail", "hello", "--file", "x"},
                                             {"submit", "mail", "--lines", "--ndjson"},
                                             {"submit", "mail", "--lines", "--key", "k"},
                                             {"submit", "mail", "hello", "--keyed"},
                                             {"submit", "mail", "hello", "--run", "r"},
                                             {"submit", "mail", "--lines", "--ids", "--json"},
                                             {"submit", "mail", "--lines", "--run", "no blanks"},
                                             {"submit", "two words", "hello"},
                                             {"submit", "mail", "hello", "--within", "5s"},
                                             {"submit", "mail", "hello", "--namespace", "two words"},
                                             {"submit", "mail", "hello", "--connect", "127.0.0.1"}}) {
    const Said said = baton(arguments);
    EXPECT_EQ(said.exit_code, 64) << said.errors;
    EXPECT_TRUE(contains(said.errors, "\nbaton submit --help tells how it is used")) << said.errors;
    EXPECT_TRUE(begins(said.errors, "baton: ") && said.output.empty()) << said.output;
  }
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"submit", "mail", "hello", "--delay", "soon"}, {"submit", "mail", "hello", "--priority", "10"}}) {
    const Said said = baton(arguments);
    EXPECT_EQ(said.exit_code, 64) << said.errors;
    EXPECT_TRUE(contains(said.errors, "; baton submit --help tells how it is used")) << said.errors;
  }
}

TEST(SubmitCommand, SaysWhichInputIsTooLargeOrCannotBeRead) {
  const AtServer at;
  const Said large = at.shell("head -c 5000000 /dev/zero | baton submit mail --file -");
  EXPECT_EQ(large.exit_code, 1) << large.errors;
  EXPECT_TRUE(begins(large.errors, "baton: TOO_LARGE: standard input is over 1000000 bytes")) << large.errors;
  for (const char* how : {"--file", "--lines --file"}) {
    const Said folder = at.shell(std::string("baton submit mail ") + how + " /tmp");
    EXPECT_EQ(folder.exit_code, 66) << folder.errors;
    EXPECT_TRUE(contains(folder.errors, "INVALID_REQUEST: /tmp is a directory, not a file")) << folder.errors;
  }
}

TEST(SubmitCommand, SaysWhichValueOfARetryPolicyIsOutOfRange) {
  const Said said = AtServer().baton({"submit", "mail", "hello", "--max-failures", "0"});
  EXPECT_EQ(said.errors, "baton: INVALID_REQUEST: max_failures must be 1 to 1000\n");
}

TEST(ConnectionOptions, ThatIsRefusedSaysHowToStartAServer) {  // X7
  const Said said = baton({"submit", "mail", "hello", "--connect", "127.0.0.1:1"});
  EXPECT_EQ(said.exit_code, 69);
  EXPECT_TRUE(contains(said.errors, "127.0.0.1:1: Connection refused. `baton serve` starts a server"))
      << said.errors;
}

// X7: the same exit code whatever was asked for.
TEST(ConnectionOptions, OfEveryCommandTellAWrongAddressFromNobodyThere) {
  for (std::vector<std::string> command :
       std::vector<std::vector<std::string>>{{"submit", "q", "x"},
                                             {"submit", "q", "--lines", "--file", "/dev/null"},
                                             {"task", "get", "x"},
                                             {"task", "wait", "x"},
                                             {"task", "list"},
                                             {"task", "cancel", "x"},
                                             {"task", "requeue", "x"},
                                             {"queue", "list"},
                                             {"queue", "pause", "q"},
                                             {"queue", "resume", "q"},
                                             {"queue", "purge", "q"},
                                             {"worker", "list"},
                                             {"stats"},
                                             {"top", "--once"},
                                             {"bench"}}) {
    command.insert(command.end(), {"--connect", "127.0.0.1:1"});
    const Said nobody = baton(command);
    EXPECT_EQ(nobody.exit_code, 69) << command[0] << nobody.errors;
    command.back() = "nonsense";
    const Said wrong = baton(command);
    EXPECT_EQ(wrong.exit_code, 64) << command[0] << wrong.errors;
  }
  EXPECT_EQ(baton({"work", "q", "--connect", "127.0.0.1:1", "--", "true"}).exit_code, 69);
  EXPECT_EQ(baton({"work", "q", "--connect", "nonsense", "--", "true"}).exit_code, 64);
}

TEST(ConnectionOptions, WithoutAnAnswerTheOutcomeIsUnknown) {
  const ScriptedServer silent([](const std::vector<std::string>& words) -> std::string {
    if (words[0] == "PING") return "+PONG\r\n";
    return words[0] == "SUBMIT" ? "" : "+OK\r\n";
  });
  const Said said =
      baton({"submit", "mail", "hello", "--connect", silent.address(), "--timeout", "1s", "--json"});
  EXPECT_EQ(said.exit_code, 75) << said.errors;
  EXPECT_TRUE(begins(said.output, R"({"error":{"code":"OUTCOME_UNKNOWN","message":")")) << said.output;
}

TEST(ConnectionOptions, SayThatSomebodyElseListens) {  // X7
  const ScriptedServer other(
      [](const std::vector<std::string>&) { return "HTTP/1.1 400 Bad Request\r\n\r\n"; });
  const Said said = baton({"queue", "list", "--connect", other.address()});
  EXPECT_EQ(said.exit_code, 69);
  EXPECT_TRUE(contains(said.errors, "that is an HTTP port; the other one is wanted here")) << said.errors;
}

TEST(ConnectionOptions, TriesEachAddressAndTakesTheNamespace) {
  AtServer at;
  const std::string addresses = "127.0.0.1:1," + at.server().address();
  EXPECT_EQ(baton({"submit", "mail", "hello", "--connect", addresses, "--namespace", "other"}).exit_code, 0);
  const Said queues = at.shell("redis-cli -u redis://$0 QUEUES");
  EXPECT_FALSE(contains(queues.output, "mail")) << queues.output;
}

TEST(ConnectionOptions, NeedsTheRightToken) {  // X4
  const TemporaryDirectory temporary;
  const std::string tokens = temporary.path() + "/tokens", token = temporary.path() + "/token";
  ASSERT_EQ(run_program({"/bin/bash", "-c",
                         BATON_PROGRAM " token ci --allow default=submit >" + tokens + " 2> >(tail -n1 >" +
                             token + "); wait $!"})
                .exit_code,
            0);
  const AtServer at({"--tokens", tokens});
  const Said stranger = at.baton({"submit", "mail", "hello"});
  EXPECT_EQ(stranger.exit_code, 77) << stranger.errors;
  EXPECT_TRUE(contains(stranger.errors, "wants a token: --token-file FILE, or BATON_TOKEN"))
      << stranger.errors;
  EXPECT_EQ(at.baton({"submit", "mail", "hello", "--token-file", token}).exit_code, 0);
  EXPECT_EQ(at.shell("BATON_TOKEN=$(cat " + token + ") baton submit mail hello").exit_code, 0);
  const Said wrong = at.shell("BATON_TOKEN=wrong baton submit mail hello");
  EXPECT_EQ(wrong.exit_code, 77);
  EXPECT_TRUE(contains(wrong.errors, "does not know this token: look at --token-file")) << wrong.errors;
}

TEST(ConnectionOptions, SpeakTlsToACoordinatorThatWantsIt) {  // X4
  const TemporaryDirectory temporary;
  const std::string certificate = temporary.path() + "/cert.pem", key = temporary.path() + "/key.pem";
  ASSERT_EQ(run_program({"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                         "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=c", "-addext",
                         "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate})
                .exit_code,
            0);
  const AtServer at({"--tls-certificate", certificate, "--tls-key", key});
  EXPECT_EQ(at.baton({"submit", "mail", "hello", "--tls-ca", certificate}).exit_code, 0);
  EXPECT_TRUE(begins(at.shell("seq 5000 | BATON_TLS_CA=" + certificate + " baton submit q --lines").errors,
                     "5000 tasks"));
  const Said plain = at.baton({"submit", "mail", "hello"});
  EXPECT_EQ(plain.exit_code, 69);
  EXPECT_TRUE(contains(plain.errors, "if it wants TLS, say --tls")) << plain.errors;
  const Said unknown = at.baton({"submit", "mail", "hello", "--tls"});
  EXPECT_EQ(unknown.exit_code, 77);
  EXPECT_TRUE(contains(unknown.errors, "the coordinator's certificate is not accepted: self-signed"))
      << unknown.errors;
  EXPECT_TRUE(contains(unknown.errors, "(--tls-ca FILE)")) << unknown.errors;

  AtServer asking({"--tls-certificate", certificate, "--tls-key", key, "--tls-client-ca", certificate});
  const Said nobody = asking.baton({"submit", "mail", "hello", "--tls-ca", certificate});
  EXPECT_EQ(nobody.exit_code, 77) << nobody.errors;
  EXPECT_TRUE(contains(nobody.errors, asking.server().address() +
                                          ": the coordinator wants a certificate: --tls-certificate FILE"))
      << nobody.errors;
}

TEST(ConnectionOptions, NeverSendATokenInTheClearWhereAKeyIsNamed) {  // X4
  const AtServer at;
  const Said said = at.shell("BATON_TOKEN=secret baton submit mail hello --tls-key key.pem");
  EXPECT_EQ(said.exit_code, 1) << said.errors;
  EXPECT_TRUE(contains(said.errors, "key.pem: the certificate is missing")) << said.errors;
}

TEST(ConnectionOptions, SayThatTheCoordinatorSpeaksNoTls) {  // X7
  AtServer at;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"submit", "mail", "hello", "--tls"},
                                             {"stats", "--tls"},
                                             {"work", "mail", "--tls", "--", "cat"}}) {
    const Said said = at.baton(arguments);
    EXPECT_EQ(said.exit_code, 69) << said.errors;
    EXPECT_TRUE(
        contains(said.errors, at.server().address() + ": that port does not speak TLS; leave out --tls"))
        << said.errors;
  }
}

}  // namespace
}  // namespace baton::cli
