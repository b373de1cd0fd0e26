// What becomes of work when nobody reads what is said about it any more, or there is no room for it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/at_server.h"
#include "tests/temporary_directory.h"

namespace baton::cli {
namespace {

constexpr int kOutputLost = 74;

// A folder with a pipeline in it, in which scripts are run that call `baton`.
class Pipelines {
 public:
  explicit Pipelines(const std::string& module) {
    std::ofstream(path() + "/p.yaml") << "version: 1\nmodules:\n  m:\n    run: |\n      " + module + "\n";
  }
  std::string path() const { return directory_.path(); }
  bool has(const std::string& name) const { return std::filesystem::exists(path() + "/" + name); }
  Said shell(const std::string& script) const {
    return run_program(
        {"/bin/sh", "-c", "cd " + path() + "; baton() { " BATON_PROGRAM " \"$@\"; }\n" + script});
  }

 private:
  TemporaryDirectory directory_;
};

TEST(AnOutputThatIsClosed, IsNotMistakenForAFile) {  // P16
  const Pipelines pipelines("echo something was said");
  EXPECT_EQ(pipelines.shell("baton run p.yaml --run r --report page.html >&-").exit_code, kOutputLost);
  EXPECT_EQ(pipelines.shell("grep -rl '1 module, run r' .").output, "") << "there the output went";
  EXPECT_EQ(pipelines.shell("baton run p.yaml --run s <&- >&- 2>&-").exit_code, kOutputLost);
  EXPECT_EQ(pipelines.shell("grep -rl '1 module, run s' .").output, "");
}

TEST(AnOutputWithoutRoom, IsComplainedOfAsFarAsThatCanBeSaid) {  // P16
  const Pipelines pipelines("echo something was said; touch done");
  const Said run = pipelines.shell("baton run p.yaml -v >/dev/full");
  EXPECT_EQ(run.exit_code, kOutputLost);
  EXPECT_TRUE(begins(run.errors, "baton: the output cannot be written: ")) << run.errors;
  EXPECT_TRUE(pipelines.has("done"));
  EXPECT_EQ(pipelines.shell("baton run p.yaml -v >/dev/full 2>/dev/full").exit_code, kOutputLost);
  EXPECT_EQ(pipelines.shell("baton run nothing.yaml 2>/dev/full").exit_code, 66);
}

TEST(AnOutputThatNobodyReads, DoesNotEndARun) {  // P16
  const Pipelines pipelines("until [ -e nobody ]; do sleep 0.01; done; echo something was said; touch done");
  // The code is that of the run: a pipe has that of its end.
  const Said run = pipelines.shell(
      "{ baton run p.yaml 2>errors; echo $? >code; } | sh -c 'head -n 1; exec <&-; touch nobody'; cat code");
  EXPECT_TRUE(run.output.ends_with("\n74\n")) << run.output;
  EXPECT_TRUE(pipelines.has("done"));
}

TEST(AnOutputThatNobodyReads, DoesNotEndAWorker) {  // P16
  const Pipelines pipelines(
      "until [ -e nobody ]; do sleep 0.01; done; echo something; echo was said; touch done");
  const Said run = pipelines.shell(
      "{ baton worker --connect dir:meeting 2>errors; echo $? >code; } | sh -c 'exec <&-; touch nobody' &\n"
      "baton run p.yaml --connect dir:meeting --only-master --json >report; echo $?; wait; cat code");
  EXPECT_EQ(run.output, "0\n74\n") << run.errors;
  EXPECT_TRUE(pipelines.has("done"));
}

TEST(WhatIsWrongElsewhere, IsNotTakenForTheOutput) {  // P16
  const Pipelines pipelines("true");
  const Said run = pipelines.shell("mkdir gone; cd gone; rmdir ../gone; baton run " + pipelines.path() +
                                   "/p.yaml --connect dir:meeting");
  EXPECT_EQ(run.exit_code, 5) << run.errors;
  EXPECT_EQ(run.errors.find("output"), std::string::npos) << run.errors;
  const Said worker = pipelines.shell("baton worker --connect dir:. --dir " + std::string(300, 'x'));
  EXPECT_EQ(worker.exit_code, 64);
  EXPECT_NE(worker.errors.find("there is no such folder"), std::string::npos) << worker.errors;
}

TEST(AnOutputWithoutRoom, DoesNotEndABulkSubmit) {
  const AtServer at;
  for (const std::string how : {"--ids", "--json"}) {
    const Said submitted = at.shell("seq 5000 | baton submit q --lines " + how + " >/dev/full");
    EXPECT_EQ(submitted.exit_code, kOutputLost) << how;
    EXPECT_TRUE(begins(submitted.errors, "5000 tasks submitted")) << submitted.errors;
  }
}

TEST(AnErrorThatNobodyHears, DoesNotEndAServer) {
  const Pipelines folder("true");
  std::ofstream(folder.path() + "/tokens") << "ci " + std::string(64, 'a') + " default=all\n";
  const Said served = folder.shell(
      "{ " BATON_PROGRAM
      " serve --data data --listen 127.0.0.1:0 --http 127.0.0.1:0 --tokens tokens >said 2>&3 & echo $! >id\n"
      "  wait $!; echo $? >code; } 3>&1 | sh -c 'exec <&-; touch nobody' &\n"
      "until [ -e nobody ] && grep -q recovered said; do sleep 0.01; done\n"
      "kill -HUP $(cat id); kill $(cat id); until [ -s code ]; do sleep 0.01; done; cat code; tail -n 1 "
      "said");
  EXPECT_EQ(served.output, "0\nstopped, everything is on disk\n");
}

TEST(AnErrorThatCannotBeSaid, DoesNotEndWork) {
  const AtServer at;
  at.baton({"submit", "q", "x", "--max-failures", "1"});
  at.baton({"submit", "q", "y", "--key", "k"});
  const Said worked = at.shell("baton work q --drain -- sh -c 'read what; test $what = y' 2>/dev/full");
  EXPECT_EQ(worked.exit_code, 0);
  EXPECT_EQ(at.baton({"submit", "q", "y", "--key", "k", "--wait"}).exit_code, 0);
}

}  // namespace
}  // namespace baton::cli
