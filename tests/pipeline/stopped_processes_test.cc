// Pipelines of processes that somebody stops: with Ctrl-C, and once more if that takes too long.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>

#include "tests/pipeline/yard.h"

namespace baton::pipeline {
namespace {

using ::testing::HasSubstr;

constexpr char kStubborn[] = R"(
version: 1
modules:
  a: { stop_grace: 1h, run: "trap '' TERM; sleep 1000 & echo $! > pid; touch began; wait; wait" }
  b: { needs: [a], run: ls }
)";

// Neither there nor left for somebody to ask how it ended.
bool is_over(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::ostringstream stat;
  stat << file.rdbuf();
  return stat.str().empty() || stat.str().find(") Z ") != std::string::npos;
}

bool has_said(crash::Child& child, const std::string& text) {
  return eventually([&] {
    child.listen(crash::after_ms(1), [](const std::string&) { return true; });
    return child.errors().find(text) != std::string::npos;
  });
}

class ProcessesThatAreStopped : public ::testing::TestWithParam<std::vector<std::string>> {};
INSTANTIATE_TEST_SUITE_P(With, ProcessesThatAreStopped,
                         ::testing::Values(std::vector<std::string>{}, std::vector<std::string>{"--json"},
                                           std::vector<std::string>{"--workers", "1", "--only-master"}),
                         [](const auto& with) {
                           return with.param.empty()               ? "NoOptions"
                                  : with.param.front() == "--json" ? "AReport"
                                                                   : "Workers";
                         });

TEST_P(ProcessesThatAreStopped, SaySoAtOnceAndEndAtTheSecondSignal) {  // P7 P16
  const Yard yard(kStubborn);
  std::vector<std::string> how = GetParam();
  how.insert(how.end(), {"--run", "r"});
  crash::Child master(yard.run(how));
  const std::string running = R"("a","status":"running")";
  ASSERT_TRUE(eventually([&] {
    return std::filesystem::exists(yard.path() + "/began") &&
           yard.contents(".baton/runs/r/progress").find(running) != std::string::npos;
  })) << yard.contents(".baton/runs/r/progress");
  master.signal(SIGINT);
  EXPECT_TRUE(has_said(master, "stopping 1 module; Ctrl-C again ends it at once\n")) << master.errors();
  std::string pid = yard.contents("pid");
  pid.pop_back();
  EXPECT_FALSE(is_over(pid));
  master.signal(SIGINT);
  EXPECT_EQ(master.wait(crash::after_ms(30'000)).code, 130);
  const bool is_shown = how.front() != "--json";
  EXPECT_TRUE(has_said(master, is_shown ? "baton: killed a\n" : "baton: ended at once\n")) << master.errors();
  EXPECT_TRUE(eventually([&] { return is_over(pid); })) << "what a command has started outlives it";
}

constexpr char kNoted[] = R"(
version: 1
modules:
  a: { run: "touch began; while [ ! -e go ]; do sleep 0.05; done" }
  b: { needs: [a], idempotent: false, run: ls }
)";

// Its master waits for the coordinator to hear that the module begins.
TEST(ProcessesWhoseCoordinatorHangs, SayWhatTheyWaitForWhenTheyAreStopped) {  // P7 P16
  const Yard yard(kNoted);
  Served server(BATON_PROGRAM);
  crash::Child master(yard.run({"--connect", server.address(), "--run", "r", "--timeout", "10m"}));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(yard.path() + "/began"); }));
  server.pause();
  std::ofstream(yard.path() + "/go").close();
  ASSERT_TRUE(eventually([&] { return !yard.contents(".baton/runs/r/journal").empty(); }));
  master.signal(SIGINT);
  EXPECT_TRUE(has_said(master,
                       "baton: stopping as soon as the coordinator, which does not answer, is told or given "
                       "up; Ctrl-C again ends it at once\n"))
      << master.errors();
  master.signal(SIGINT);
  EXPECT_EQ(master.wait(crash::after_ms(30'000)).code, 130);
  server.go_on();
}

TEST(ProcessesOfAWorkerThatIsStopped, EndAtTheSecondSignalToo) {  // P7 P16
  const Yard yard(kStubborn);
  Served server(BATON_PROGRAM);
  crash::Child master(yard.run({"--connect", server.address(), "--only-master", "--run", "r"}));
  crash::Child worker(yard.worker(server.address()));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(yard.path() + "/began"); }));
  worker.signal(SIGHUP);  // its terminal was closed
  EXPECT_TRUE(has_said(worker, "stopping, with what it runs; Ctrl-C again ends it at once"))
      << worker.errors();
  worker.signal(SIGINT);
  EXPECT_EQ(worker.wait(crash::after_ms(30'000)).code, 130);
  std::string pid = yard.contents("pid");
  pid.pop_back();
  EXPECT_TRUE(eventually([&] { return is_over(pid); }));
}

// The script ends at once when it is asked to; what it has started does not.
constexpr char kLeftBehind[] = R"(
version: 1
modules:
  tidy:
    stop_grace: 1h
    run: |
      (trap 'until [ -e go ]; do sleep 0.01; done; touch tidied; exit' TERM; touch began; while :; do sleep 0.01; done) &
      echo $$ > script; wait
)";

TEST(ProcessesThatAScriptLeavesBehind, HaveTheRestOfItsGrace) {  // P7
  const Yard yard(kLeftBehind);
  crash::Child master(yard.run({}));
  ASSERT_TRUE(eventually([&] {
    return std::filesystem::exists(yard.path() + "/began") && yard.contents("script").ends_with('\n');
  }));
  master.signal(SIGINT);
  std::string script = yard.contents("script");
  script.pop_back();
  ASSERT_TRUE(eventually([&] { return is_over(script); }));
  std::ofstream(yard.path() + "/go") << "";
  EXPECT_EQ(master.wait(crash::after_ms(30'000)).code, 3);
  EXPECT_TRUE(std::filesystem::exists(yard.path() + "/tidied")) << "it was killed before its time";
}

constexpr char kStaysBehind[] = R"(
version: 1
modules:
  stay:
    stop_grace: 100ms
    run: |
      (trap '' TERM; exec sleep 1000) &
      echo $! > pid; touch began; wait
)";

TEST(ProcessesThatAScriptLeavesBehind, AreKilledAfterIt) {  // P7
  const Yard yard(kStaysBehind);
  crash::Child master(yard.run({}));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(yard.path() + "/began"); }));
  master.signal(SIGINT);
  EXPECT_EQ(master.wait(crash::after_ms(30'000)).code, 3);
  std::string pid = yard.contents("pid");
  pid.pop_back();
  EXPECT_TRUE(eventually([&] { return is_over(pid); }));
}

}  // namespace
}  // namespace baton::pipeline
