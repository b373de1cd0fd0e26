// Pipelines with a server, a master and workers that are processes, and are killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "tests/pipeline/redis_server.h"
#include "tests/pipeline/yard.h"
#include "tests/served.h"
#include "tests/temporary_directory.h"

namespace baton::pipeline {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kSpread[] = R"(
version: 1
name: spread
modules:
  build: { run: 'echo "version=1.4" >> "$BATON_OUTPUT"', outputs: [version] }
  test: { needs: [build], matrix: [windows, macos], run: 'echo "$BATON_TARGET ${needs.build.outputs.version}"' }
  publish: { needs: [test], pin: master, run: "true" }
)";

void runs_at(const std::string& where, const std::vector<std::string>& more) {
  const Yard yard(kSpread);
  std::vector<std::string> with = {"--connect", where, "--json", "--run", "spread"};
  crash::Child master(yard.run(with));
  std::vector<std::string> as_windows = more, as_mac = more;
  as_windows.insert(as_windows.end(), {"--cap", "windows"});
  as_mac.insert(as_mac.end(), {"--cap", "macos"});
  crash::Child windows(yard.worker(where, as_windows)), mac(yard.worker(where, as_mac));
  crash::Exit exit;
  const Value report = report_of(master, exit);
  EXPECT_EQ(exit.code, 0) << master.errors() << to_json(report);
  EXPECT_EQ(statuses(report)["test[windows]"], "succeeded");
  EXPECT_EQ(statuses(report)["test[macos]"], "succeeded");
}

TEST(APipelineOfProcesses, MeetsAtAServer) {  // P2 P8 P11
  Served server(BATON_PROGRAM);
  runs_at(server.address(), {"--run", "spread"});
}
TEST(APipelineOfProcesses, MeetsInAFolder) {  // P2
  TemporaryDirectory shared;
  runs_at("dir:" + shared.path() + "/run", {});
}
TEST(APipelineOfProcesses, MeetsAtRedis) {  // P2
  RedisServer server;
  runs_at("redis://" + server.path(), {"--run", "spread"});
}

TEST(APipelineOfProcesses, KeepsAReservedWorkerForWhatNamesIt) {  // P8 P11
  const Yard yard(R"(
version: 1
modules:
  build: { run: "true" }
  more: { needs: [build], caps: [linux], run: "true" }
  render: { needs: [build], caps: [gpu], run: "true" }
)");
  Served server(BATON_PROGRAM);
  crash::Child master(yard.run({"--connect", server.address(), "--run", "kept", "--json", "--only-master"}));
  crash::Child reserved(yard.worker(
      server.address(), {"--run", "kept", "--cap", "gpu", "--reserved", "--index", "1", "--slots", "4"}));
  crash::Child other(yard.worker(server.address(), {"--run", "kept", "--index", "2"}));
  crash::Exit exit;
  const Value report = report_of(master, exit);
  EXPECT_EQ(exit.code, 0) << master.errors() << to_json(report);
  std::map<std::string, std::string> where;
  for (const Value& module : *report.field("modules")->list())
    where[*module.field("id")->text()] = *module.field("worker")->text();
  EXPECT_EQ(where, (std::map<std::string, std::string>{
                       {"build", "worker 2"}, {"more", "worker 2"}, {"render", "worker 1"}}));
  EXPECT_THAT(to_json(report), HasSubstr(R"("capabilities":["gpu","linux"],"reserved":true)"));
  EXPECT_THAT(to_json(report), HasSubstr(R"("capabilities":["linux"],"reserved":false)"));
}

TEST(APipelineOfProcesses, StartsItsOwnWorkers) {  // P11
  const Yard yard(kSpread);
  const crash::Ran ran =
      crash::run(yard.run({"--workers", "2", "--cap", "windows", "--cap", "macos"}), 60'000);
  EXPECT_EQ(ran.exit.code, 0) << ran.errors;
  EXPECT_THAT(ran.lines.back(), HasSubstr("spread succeeded"));
}

TEST(APipelineOfProcesses, HasAsManyPlacesAtItsOwnWorkersAsThereAreProcessors) {  // P11
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "there is one processor";
  const Yard yard(R"(
version: 1
modules:
  a: { timeout: 20s, run: 'touch a; until [ -e b ]; do sleep 0.01; done' }
  b: { timeout: 20s, run: 'touch b; until [ -e a ]; do sleep 0.01; done' }
)");
  const crash::Ran ran = crash::run(yard.run({"--workers", "1", "--only-master"}), 60'000);
  EXPECT_EQ(ran.exit.code, 0) << ran.errors;
}

TEST(APipelineOfProcesses, SaysByItsExitCodeHowItEnded) {  // P16
  const auto code = [](const std::string& text) { return crash::run(Yard(text).run({"-j", "2"})).exit.code; };
  EXPECT_EQ(code("version: 1\nmodules: { a: { run: 'true' } }"), 0);
  EXPECT_EQ(code("version: 1\nmodules: { a: { run: 'false' } }"), 1);
  EXPECT_EQ(code("version: 1\nmodules: { a: { runn: 'false' } }"), 2);
  const Yard yard("version: 1\nmodules: { a: { run: 'sleep 100' } }");
  crash::Child stopped(yard.run({}));
  stopped.listen(crash::after_ms(30'000),
                 [](const std::string& line) { return line.find("1 module") == std::string::npos; });
  stopped.signal(SIGINT);
  EXPECT_EQ(stopped.wait(crash::after_ms(30'000)).code, 3);
  const crash::Ran lost = crash::run(yard.run({"--connect", "127.0.0.1:1", "--timeout", "1s"}));
  EXPECT_EQ(lost.exit.code, 4) << lost.errors;
}

// Workers are killed at random and replaced. Every module has one result in the end, whoever brought it.
void survives_kills(int kills) {
  std::ostringstream text;
  text << "version: 1\ndefaults: { retry: { max: 1000, on: [lost] } }\nmodules:\n";
  const int modules = 20 * kills / 3;
  for (int i = 0; i < modules; ++i)
    text << "  m" << i << ": { run: 'sleep 0.1; echo m" << i << " >> ran' }\n";
  text << "  last: { needs: [m0, m1], run: 'echo last >> ran' }\n";
  const Yard yard(text.str());
  Served server(BATON_PROGRAM);
  crash::Child master(yard.run(
      {"--connect", server.address(), "--only-master", "--lost-after", "1s", "--json", "--run", "killed"}));
  const crash::ChildOptions worker =
      yard.worker(server.address(), {"--quiet", "--run", "killed", "--slots", "2"}, "1s");
  std::vector<std::unique_ptr<crash::Child>> workers;
  for (int i = 0; i < 4; ++i) workers.push_back(std::make_unique<crash::Child>(worker));
  std::mt19937 dice(1);
  for (int i = 0; i < kills; ++i) {
    // Until something has been done since the last one: a kill is to hit somebody at work.
    const std::string before = yard.contents("ran");
    ASSERT_TRUE(eventually([&] { return yard.contents("ran") != before; })) << "nothing is done any more";
    auto& victim = workers[dice() % workers.size()];
    victim->signal(SIGKILL);
    victim->wait(crash::after_ms(10'000));
    victim = std::make_unique<crash::Child>(worker);
  }
  crash::Exit exit;
  const Value report = report_of(master, exit);
  EXPECT_EQ(exit.code, 0) << master.errors() << to_json(report);
  const auto ended = statuses(report);
  EXPECT_EQ(ended.size(), static_cast<std::size_t>(modules) + 1);
  std::int64_t attempts_max = 0;
  for (const auto& [id, status] : ended) {
    EXPECT_EQ(status, "succeeded") << id;
    attempts_max = std::max(attempts_max, number_of(report, id, "attempt"));
  }
  EXPECT_GT(attempts_max, 1) << "no kill has hit anybody at work";
}
TEST(APipelineOfProcesses, SurvivesKilledWorkers) { survives_kills(6); }  // P4 P6
TEST(Long, PipelineSurvivesAHundredKills) {                               // P4
  if (std::getenv("BATON_LONG") == nullptr) GTEST_SKIP() << "takes minutes; BATON_LONG=1 runs it";
  survives_kills(100);
}

TEST(APipelineOfProcesses, GoesOnAfterAKillOfItsMaster) {  // P17
  const Yard yard(R"(
version: 1
modules:
  first: { run: 'echo first >> ran' }
  second: { needs: [first], run: 'echo second >> ran; while [ ! -e go ]; do sleep 0.05; done' }
  third: { needs: [second], run: 'echo third >> ran' }
)");
  Served server(BATON_PROGRAM);
  const std::vector<std::string> how = {"--connect", server.address(), "--only-master", "--lost-after",
                                        "1s",        "--json",         "--run",         "again"};
  auto master = std::make_unique<crash::Child>(yard.run(how));
  crash::Child worker(yard.worker(server.address(), {"--quiet", "--run", "again"}));
  ASSERT_TRUE(eventually([&] { return yard.contents("ran").find("second") != std::string::npos; }));
  master->signal(SIGKILL);
  master->wait(crash::after_ms(10'000));
  std::ofstream(yard.path() + "/go").close();
  master = std::make_unique<crash::Child>(yard.run(how));
  crash::Exit exit;
  const Value report = report_of(*master, exit);
  EXPECT_EQ(exit.code, 0) << master->errors() << to_json(report);
  EXPECT_EQ(yard.contents("ran"), "first\nsecond\nthird\n") << "something was run twice";
}

TEST(APipelineOfProcesses, GoesOnAfterAKillOfTheServer) {  // P4
  const Yard yard(R"(
version: 1
modules:
  first: { run: 'echo first >> ran; while [ ! -e go ]; do sleep 0.05; done' }
  second: { needs: [first], run: 'echo second >> ran' }
)");
  TemporaryDirectory data;
  Served server(BATON_PROGRAM, {}, {.directory = data.path() + "/data"});
  // The next server listens where this one did, as it would.
  const std::string address = server.address();
  crash::Child master(
      yard.run({"--connect", address, "--only-master", "--lost-after", "5s", "--json", "--run", "again"}));
  crash::Child worker(yard.worker(address, {"--quiet", "--run", "again"}));
  ASSERT_TRUE(eventually([&] { return !yard.contents("ran").empty(); }));
  server.kill();
  crash::Child next(
      yard.baton({"serve", "--data", data.path() + "/data", "--listen", address, "--http", "127.0.0.1:0"}));
  std::ofstream(yard.path() + "/go").close();
  crash::Exit exit;
  const Value report = report_of(master, exit);
  EXPECT_EQ(exit.code, 0) << master.errors() << to_json(report);
  EXPECT_EQ(statuses(report)["second"], "succeeded");
}

TEST(APastRun, IsRememberedAndRepeatedWhereItFailed) {  // P16
  const Yard yard(R"(
version: 1
name: again
modules:
  build: { run: 'echo build >> ran; echo built it', outputs: [] }
  test: { needs: [build], run: 'echo test >> ran; test -e fixed' }
  publish: { needs: [test], run: 'echo publish >> ran' }
)");
  EXPECT_EQ(crash::run(yard.run({})).exit.code, 1);
  const auto said = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "pipeline");
    words.insert(words.end(), {"--dir", yard.path()});
    return crash::run(yard.baton(words)).lines;
  };
  EXPECT_THAT(said({"logs", "build"}), Contains("built it"));
  EXPECT_THAT(said({"why", "publish"}), Contains(HasSubstr("it needs test, which failed")));
  std::ofstream(yard.path() + "/fixed").close();
  const auto again = said({"rerun", "--failed"});
  EXPECT_THAT(again.back(), HasSubstr("again succeeded"));
  EXPECT_EQ(yard.contents("ran"), "build\ntest\ntest\npublish\n");
}

TEST(APastRun, SaysWhatItsModulesWaitForWhileItRuns) {  // P8 P16
  const Yard yard(R"(
version: 1
modules:
  first: { run: 'while [ ! -e go ]; do sleep 0.05; done', priority: high }
  second: { run: "true" }
  third: { needs: [first], run: "true" }
  fourth: { caps: [gpu], allow_failure: true, run: "true" }
)");
  TemporaryDirectory shared;
  crash::Child master(yard.run(
      {"--connect", "dir:" + shared.path() + "/run", "-j", "1", "--report", yard.path() + "/run.html"}));
  const auto why = [&](const std::string& module) {
    const auto lines = crash::run(yard.baton({"pipeline", "why", module, "--dir", yard.path()})).lines;
    return lines.empty() ? std::string() : lines.front();
  };
  EXPECT_TRUE(eventually([&] { return why("first").find("first is running") == 0; })) << why("first");
  EXPECT_THAT(why("second"), HasSubstr("waits for a free place: nothing is before it"));
  EXPECT_THAT(why("third"), HasSubstr("for first"));
  EXPECT_TRUE(eventually([&] { return why("fourth").find("nobody has gpu") != std::string::npos; }))
      << why("fourth");
  EXPECT_THAT(crash::run(yard.baton({"pipeline", "why", "fifth", "--dir", yard.path()})).errors,
              HasSubstr("is no module of run"));
  std::ofstream(yard.path() + "/go").close();
  EXPECT_TRUE(eventually([&] { return why("third").find("third succeeded") == 0; })) << why("third");
  master.signal(SIGINT);  // nobody will ever have gpu
  EXPECT_EQ(master.wait(crash::after_ms(30'000)).code, 3);
  EXPECT_THAT(yard.contents("run.html"), HasSubstr("cancelled"));
}

}  // namespace
}  // namespace baton::pipeline
