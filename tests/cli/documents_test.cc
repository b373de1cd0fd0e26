// What is made from the commands themselves: shell completion and the man page. And the benchmark that comes
// along.
#include <gtest/gtest.h>

#include "tests/cli/at_server.h"
#include "tests/temporary_directory.h"

namespace baton::cli {
namespace {

// What bash offers for the last of these words.
std::string completed(const std::string& words) {
  const Said said =
      run_program({"/bin/bash", "-c",
                   "source <(" BATON_PROGRAM " completion bash); COMP_WORDS=(" + words +
                       "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _baton; echo \"${COMPREPLY[*]}\""});
  EXPECT_EQ(said.errors, "");
  return said.output.substr(0, said.output.find('\n'));
}

TEST(Completion, OffersCommandsOptionsAndValuesInBash) {
  EXPECT_EQ(completed("baton ta"), "task");
  EXPECT_EQ(completed("baton task ''"), "get wait list cancel requeue -h --help");
  EXPECT_EQ(completed("baton task list --st"), "--state");
  EXPECT_EQ(completed("baton task list --state ''"), "waiting delayed leased completed failed dead");
  EXPECT_EQ(completed("baton task list --state w"), "waiting");
  EXPECT_EQ(completed("baton completion z"), "zsh");
  EXPECT_EQ(completed("baton submit --ndjson --prio"), "--priority");
  EXPECT_EQ(completed("baton submit --file --prio"), "");  // a value is due, and files are bash's own
  EXPECT_EQ(completed("baton work q -- ls --he"), "");     // no longer our business
}

TEST(Completion, IsUnderstoodByZshAndFish) {
  for (const std::string shell : {"zsh", "fish"}) {
    const Said script = baton({"completion", shell});
    EXPECT_EQ(script.exit_code, 0) << script.errors;
    EXPECT_TRUE(contains(script.output, "older-than")) << script.output;
    const Said checked = run_program({"/bin/bash", "-c",
                                      "command -v " + shell + " >/dev/null || exit 0; " + shell +
                                          " -n <(" BATON_PROGRAM " completion " + shell + ")"});
    EXPECT_EQ(checked.exit_code, 0) << checked.errors;
  }
  // A command that is a group too has options of its own.
  EXPECT_TRUE(contains(baton({"completion", "zsh"}).output, "--reserved["));
  EXPECT_EQ(baton({"completion", "tcsh"}).exit_code, 64);
}

TEST(ManPage, NamesEveryCommandAndIsCleanRoff) {  // X8
  const std::string page = baton({"man"}).output;
  for (const char* part : {".SS serve\n", ".SS submit\n", ".SS task requeue\n", ".SS worker\n",
                           ".SS worker list\n", ".SS log verify\n", "\\fB\\-\\-connect\\fR"})
    EXPECT_TRUE(contains(page, part)) << part;
  const Said checked = run_program({"/bin/bash", "-c",
                                    "command -v groff >/dev/null || exit 0; " BATON_PROGRAM
                                    " man | groff -man -ww -z -Tutf8"});
  EXPECT_EQ(checked.exit_code, 0) << checked.errors;
  EXPECT_EQ(checked.errors, "");
}

TEST(BenchCommand, MeasuresEveryPhaseAndLeavesNothingBehind) {
  const AtServer at;
  const Said said = at.baton({"bench", "--connections", "2", "--depth", "8", "--tasks", "2000"});
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  for (const char* part : {"PER SECOND", "\nsubmit ", "\nlease ", "\ncomplete "})
    EXPECT_TRUE(contains(said.output, part)) << part << said.output;
  EXPECT_EQ(at.baton({"queue", "list", "--json"}).output, "");
  const Said json = at.baton({"bench", "--tasks", "10", "--json"});
  EXPECT_TRUE(
      begins(json.output, R"({"phase":"submit","connections":16,"depth":64,"tasks":10,"payload_bytes":200,)"))
      << json.output;
}

TEST(BenchCommand, LeavesNothingBehindEvenIfItFails) {
  const AtServer at({"--tasks-max", "1500"});
  const Said said = at.baton({"bench", "--tasks", "5000"});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(begins(said.errors, "baton: EXHAUSTED: ")) << said.errors;
  EXPECT_EQ(at.baton({"queue", "list", "--json"}).output, "");
}

TEST(BenchCommand, SaysWhatIsLeftBehindWhenItIsEndedHalfway) {  // X7
  const AtServer at;
  const Said said =
      at.shell("bash -c 'exec " BATON_PROGRAM
               " bench --tasks 1000000 --connections 1 --depth 1 >&2' & bench=$!;"
               "until baton queue list | grep -q bench-$bench; do :; done; kill -TERM $bench; wait $bench");
  EXPECT_EQ(said.exit_code, 128 + 15);
  EXPECT_TRUE(contains(said.errors, "\nbaton: the queue bench-")) << said.errors;
  EXPECT_TRUE(contains(said.errors, " --limit 1000000`, the same with leased, and ")) << said.errors;
}

TEST(BenchCommand, SaysWhatItCouldNotClear) {  // X7
  const TemporaryDirectory temporary;
  const std::string tokens = temporary.path() + "/tokens", token = temporary.path() + "/token";
  ASSERT_EQ(run_program({"/bin/bash", "-c",
                         BATON_PROGRAM " token ci --allow default=submit,query >" + tokens +
                             " 2> >(tail -n1 >" + token + "); wait $!"})
                .exit_code,
            0);
  const AtServer at({"--tokens", tokens});
  const Said said = at.baton({"bench", "--tasks", "10", "--token-file", token});
  EXPECT_EQ(said.exit_code, 77) << said.errors;
  EXPECT_TRUE(contains(said.errors, "is left behind; `baton task cancel --queue bench-")) << said.errors;
  EXPECT_EQ(at.baton({"task", "list", "--state", "waiting", "--json", "--token-file", token}).output, "");
}

}  // namespace
}  // namespace baton::cli
