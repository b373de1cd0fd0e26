// baton work: what a command gets, what becomes of its task, and how it is ended.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/cli/at_server.h"
#include "tests/proxy.h"
#include "tests/temporary_directory.h"

namespace baton::cli {
namespace {

// A worker that goes on beside the test.
class AtWork {
 public:
  AtWork(AtServer& at, std::vector<std::string> arguments)
      : AtWork(at.server().address(), std::move(arguments)) {}
  AtWork(const std::string& address, std::vector<std::string> arguments)
      : child_({.command = command(address, std::move(arguments))}) {}

  void signal(int number) { child_.signal(number); }
  crash::Exit wait() { return child_.wait(crash::after_ms(20'000)); }
  const std::string& errors() const { return child_.errors(); }

 private:
  static std::vector<std::string> command(const std::string& address, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {BATON_PROGRAM, "work", "--connect", address});
    return arguments;
  }
  crash::Child child_;
};

std::string state_of(const AtServer& at, const std::string& key) {
  const Said said = at.shell("redis-cli -u redis://$0 GET key:" + key + " | grep -A1 '^state$' | tail -n 1");
  return said.output.substr(0, said.output.find('\n'));
}

bool is_there(const std::string& path) { return std::filesystem::exists(path); }

TEST(WorkCommand, CompletesWithTheOutputOfTheCommand) {
  const AtServer at;
  at.baton({"submit", "upper", "hello", "--key", "k"});
  const Said worked = at.baton({"work", "upper", "--drain", "--", "tr", "a-z", "A-Z"});
  EXPECT_EQ(worked.exit_code, 0) << worked.errors;
  EXPECT_EQ(worked.errors, "1 completed, 0 failed, 0 lost, 0 given back\n");
  const Said again = at.baton({"submit", "upper", "hello", "--key", "k", "--wait"});
  EXPECT_EQ(again.output, "HELLO\n");
}

TEST(WorkCommand, PutsThePayloadIntoItsPlaceAndTellsOfTheTask) {
  const AtServer at;
  at.baton({"submit", "q", "a b", "--key", "k"});
  at.baton({"work", "q", "--once", "--", "sh", "-c",
            "test -n \"$BATON_TASK\" && test -n \"$BATON_FENCE\" && echo \"$1\" $BATON_QUEUE $BATON_ATTEMPT",
            "sh", "<{}>"});
  EXPECT_EQ(at.baton({"submit", "q", "a b", "--key", "k", "--wait"}).output, "<a b> q 1\n");
}

TEST(WorkCommand, WorksOnManyTasksAtATime) {
  const AtServer at;
  ASSERT_EQ(at.shell("seq 40 | baton submit q --lines").exit_code, 0);
  // Each waits until two are there.
  const TemporaryDirectory meeting;
  const Said worked = at.baton({"work", "q", "-j", "4", "--drain", "--", "sh", "-c",
                                "touch " + meeting.path() + "/$1; until [ $(ls " + meeting.path() +
                                    " | wc -l) -ge 2 ]; do :; done; echo $1",
                                "sh", "{}"});
  EXPECT_TRUE(begins(worked.errors, "40 completed, ")) << worked.errors;
}

TEST(WorkCommand, FailsForRetryWithTheEndOfStandardErrorAsTheReason) {
  const AtServer at;
  at.baton({"submit", "q", "x", "--key", "k", "--max-failures", "2", "--backoff", "1ms"});
  const Said worked = at.baton({"work", "q", "--once", "--", "sh", "-c", "echo out of paper >&2; exit 3"});
  EXPECT_EQ(worked.exit_code, 0) << worked.errors;
  EXPECT_TRUE(contains(worked.errors, ": is tried again in ")) << worked.errors;
  EXPECT_EQ(state_of(at, "k"), "waiting");
  const Said last = at.baton({"work", "q", "--once", "--", "sh", "-c", "echo out of ink >&2; exit 3"});
  EXPECT_TRUE(contains(last.errors, ": has failed for good\n")) << last.errors;
  EXPECT_EQ(state_of(at, "k"), "failed");
  const Said ended =
      at.baton({"submit", "q", "x", "--key", "k", "--max-failures", "2", "--backoff", "1ms", "--wait"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_TRUE(contains(ended.errors, ": failed: exit code 3: out of ink\n")) << ended.errors;
}

TEST(WorkCommand, FailsForGoodWithExitCode65) {
  const AtServer at;
  at.baton({"submit", "q", "x", "--key", "k"});
  const Said worked = at.baton({"work", "q", "--once", "--json", "--", "sh", "-c", "exit 65"});
  EXPECT_EQ(worked.output, "{\"completed\":0,\"failed\":1,\"lost\":0,\"released\":0}\n");
  EXPECT_EQ(state_of(at, "k"), "failed");
}

TEST(WorkCommand, TakesOneTaskIfToldSoHoweverManyItCouldDo) {
  const AtServer at;
  at.shell("seq 20 | baton submit q --lines");
  EXPECT_EQ(at.baton({"work", "q", "-j", "8", "--once", "--", "true"}).errors,
            "1 completed, 0 failed, 0 lost, 0 given back\n");
  EXPECT_TRUE(contains(at.baton({"queue", "list", "--json"}).output, R"("waiting":19)"));
}

TEST(WorkCommand, DoesNotTakeTasksForAProgramThatIsNotThere) {
  const AtServer at;
  at.baton({"submit", "q", "x", "--key", "k"});
  const Said worked = at.baton({"work", "q", "--", "no-such-program"});
  EXPECT_EQ(worked.exit_code, 64);
  EXPECT_EQ(worked.errors,
            "baton: there is no program 'no-such-program' to run\nbaton work --help tells how it is used\n");
  for (const char* folder_or_nothing : {"", "/", "/usr/bin"})
    EXPECT_EQ(at.baton({"work", "q", "--once", "--", folder_or_nothing}).exit_code, 64) << folder_or_nothing;
  EXPECT_EQ(state_of(at, "k"), "waiting");
  const Said here = at.shell("cd /usr/bin; PATH=:/nowhere; baton work q --once -- true");
  EXPECT_EQ(here.exit_code, 0) << here.errors;
}

TEST(WorkCommand, EndsWhereNothingCanEverCome) {
  const Said said = AtServer().baton({"work", "no queue", "--", "cat"});
  EXPECT_EQ(said.exit_code, 64);
  EXPECT_EQ(said.errors,
            "baton: 'no queue' is no queue: a name is 1 to 128 graphic ASCII characters\n"
            "baton work --help tells how it is used\n");
  const Said ttl = AtServer().baton({"work", "q", "--ttl", "100d", "--", "cat"});
  EXPECT_EQ(ttl.exit_code, 64) << ttl.errors;
  EXPECT_FALSE(contains(ttl.errors, "completed")) << ttl.errors;
  EXPECT_TRUE(begins(ttl.errors, "baton: INVALID_REQUEST: ")) << ttl.errors;
  const Said none = AtServer().baton({"work", "q", "--ttl", "0", "--", "cat"});
  EXPECT_EQ(none.exit_code, 64) << none.errors;
  EXPECT_TRUE(begins(none.errors, "baton: INVALID_REQUEST: a worker needs a name, and a ttl above zero\n"))
      << none.errors;
}

TEST(WorkCommand, SaysThatThereAreNotSoManyThreads) {
  const Said said = AtServer().shell("ulimit -v 3000000; baton work q -j 1024 -- true");
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(begins(said.errors, "baton: EXHAUSTED: the system has not enough threads for a worker: "))
      << said.errors;
}

TEST(WorkCommand, DoesNotMindACommandThatReadsNothing) {
  const AtServer at;
  at.shell("head -c 200000 /dev/zero | baton submit q --file - --key k");
  EXPECT_TRUE(begins(at.baton({"work", "q", "--drain", "--", "true"}).errors, "1 completed"))
      << state_of(at, "k");
}

TEST(WorkCommand, EndsTheCommandAndWhatItStartedWhenTheTaskIsCancelled) {
  AtServer at;
  const TemporaryDirectory temporary;
  const std::string begun = temporary.path() + "/begun", ended = temporary.path() + "/ended";
  at.baton({"submit", "q", "x", "--key", "k"});
  AtWork worker(at, {"q", "--once", "--ttl", "10s", "--", "sh", "-c",
                     "sleep 1000 & echo $! >" + temporary.path() + "/pid; trap 'touch " + ended +
                         "; exit' TERM; touch " + begun + "; wait"});
  ASSERT_TRUE(eventually([&] { return is_there(begun); }));
  EXPECT_EQ(at.shell("redis-cli -u redis://$0 CANCEL key:k").exit_code, 0);
  EXPECT_EQ(worker.wait().code, 0);
  EXPECT_TRUE(is_there(ended));
  EXPECT_TRUE(contains(worker.errors(), "0 completed, 0 failed, 1 lost, 0 given back")) << worker.errors();
  EXPECT_TRUE(
      contains(worker.errors(), ": the lease was lost or the task cancelled; the command was stopped"))
      << worker.errors();
  pid_t left_behind = 0;
  std::ifstream(temporary.path() + "/pid") >> left_behind;
  EXPECT_TRUE(eventually([&] { return ::kill(left_behind, 0) != 0; }));
}

TEST(WorkCommand, TellsThatItsConnectionBrokeAndIsMadeAgain) {  // X7
  AtServer at;
  Proxy proxy(at.server().port());
  AtWork worker(proxy.address(), {"q", "--", "true"});
  ASSERT_TRUE(eventually([&] { return proxy.connections() >= 2; }));  // one says PING and goes
  at.server().kill();
  proxy.set({.refuses = true});
  proxy.reset();
  at.server().start();
  proxy.set_target(at.server().port());
  proxy.set({});
  at.baton({"submit", "q", "x", "--key", "k"});
  EXPECT_TRUE(eventually([&] { return state_of(at, "k") == "completed"; }));
  worker.signal(SIGINT);
  EXPECT_EQ(worker.wait().code, 0);
  EXPECT_TRUE(contains(worker.errors(), "; " + proxy.address() + " is tried ")) << worker.errors();
  EXPECT_TRUE(contains(worker.errors(), "\nbaton: connected to " + proxy.address() + "\n"))
      << worker.errors();
}

TEST(WorkCommand, FinishesWhatItHasBegunAtTheFirstRequestToEnd) {  // X6
  AtServer at;
  const TemporaryDirectory temporary;
  const std::string begun = temporary.path() + "/begun", go = temporary.path() + "/go";
  at.baton({"submit", "q", "x", "--key", "k"});
  AtWork worker(at,
                {"q", "--", "sh", "-c", "touch " + begun + "; until [ -e " + go + " ]; do sleep 0.01; done"});
  ASSERT_TRUE(eventually([&] { return is_there(begun); }));
  at.baton({"submit", "q", "y", "--key", "later"});
  worker.signal(SIGINT);
  std::ofstream(go) << "go";
  EXPECT_EQ(worker.wait().code, 0);
  EXPECT_EQ(state_of(at, "k"), "completed");
  EXPECT_EQ(state_of(at, "later"), "waiting");
}

TEST(WorkCommand, GivesBackWhatItHasBegunAtTheSecond) {  // X6
  AtServer at;
  const TemporaryDirectory temporary;
  const std::string begun = temporary.path() + "/begun";
  at.baton({"submit", "q", "x", "--key", "k", "--max-failures", "1"});
  AtWork worker(at, {"q", "--", "sh", "-c", "touch " + begun + "; exec sleep 1000"});
  ASSERT_TRUE(eventually([&] { return is_there(begun); }));
  worker.signal(SIGINT);
  worker.signal(SIGTERM);  // another one, for two of the same may count as one
  EXPECT_EQ(worker.wait().code, 0);
  EXPECT_EQ(state_of(at, "k"), "waiting");
  EXPECT_TRUE(contains(worker.errors(), "0 completed, 0 failed, 0 lost, 1 given back")) << worker.errors();
}

// X7: nobody is there to take the task back, and the lease has an hour.
TEST(WorkCommand, EndsAtOnceAtTheThird) {
  AtServer at;
  Proxy proxy(at.server().port());
  const TemporaryDirectory temporary;
  const std::string begun = temporary.path() + "/begun";
  at.baton({"submit", "q", "x", "--key", "k"});
  AtWork worker(proxy.address(),
                {"q", "--ttl", "1h", "--timeout", "1h", "--", "sh", "-c",
                 "echo $$ >" + begun + ".tmp; mv " + begun + ".tmp " + begun + "; exec sleep 1000"});
  ASSERT_TRUE(eventually([&] { return is_there(begun); }));
  proxy.set({.holds_requests = true, .holds_replies = true});
  pid_t command = 0;
  std::ifstream(begun) >> command;
  worker.signal(SIGINT);
  worker.signal(SIGTERM);
  EXPECT_TRUE(eventually([&] { return ::kill(command, 0) != 0; }));
  worker.signal(SIGINT);
  EXPECT_EQ(worker.wait().code, 128 + SIGINT) << worker.errors();
}

}  // namespace
}  // namespace baton::cli
