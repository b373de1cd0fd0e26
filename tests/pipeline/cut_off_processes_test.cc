// Those that cannot be heard: workers that are cut off for a moment or for too long, stopped or killed, and
// the coordinator.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>

#include "tests/pipeline/yard.h"
#include "tests/proxy.h"

namespace baton::pipeline {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kKept[] = R"(
version: 1
modules: { a: { run: 'echo begun >> ran; while [ ! -e go ]; do sleep 0.05; done' } }
)";

class ProcessesThatAreCutOff : public ::testing::Test {
 protected:
  crash::ChildOptions master(const std::string& lost_after) const {
    return yard_.run({"--connect", server_.address(), "--run", "cut", "--only-master", "--lost-after",
                      lost_after, "--json"});
  }
  crash::ChildOptions worker(const std::string& address, const std::string& lost_after,
                             const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"worker", "--connect",    address,   "--run",
                                      "cut",    "--lost-after", lost_after};
    words.insert(words.end(), more.begin(), more.end());
    return yard_.baton(words);
  }
  bool has_begun() const {
    return eventually([this] { return !yard_.contents("ran").empty(); });
  }
  void go() const { std::ofstream(yard_.path() + "/go").close(); }
  // Who had begun the module is not heard of any more.
  void expect_another_to_finish(crash::Child& master) const {
    go();
    crash::Child heir(worker(server_.address(), "2s", {"--quiet"}));
    crash::Exit exit;
    const Value report = report_of(master, exit);
    EXPECT_EQ(exit.code, 0) << master.errors() << to_json(report);
    EXPECT_EQ(number_of(report, "a", "attempt"), 2);
    EXPECT_EQ(yard_.contents("ran"), "begun\nbegun\n");
  }

  const Yard yard_{kKept};
  Served server_{BATON_PROGRAM};
};

TEST_F(ProcessesThatAreCutOff, AreLostWhenTheMasterSaysSo) {  // P6
  crash::Child master(this->master("2s"));
  crash::Child lost(worker(server_.address(), "1h", {"--quiet"}));
  ASSERT_TRUE(has_begun());
  lost.signal(SIGKILL);
  expect_another_to_finish(master);
}

TEST(ProcessesThatAreLost, AreReplacedWhereTheMasterIs) {  // P4 P6
  const Yard yard(R"(
version: 1
modules: { a: { matrix: { n: [1, 2] }, run: 'echo begun >> ran; while [ ! -e go ]; do sleep 0.05; done' } }
)");
  Served server(BATON_PROGRAM);
  crash::Child lost(yard.baton({"worker", "--connect", server.address(), "--run", "left", "--quiet"}));
  crash::Child master(
      yard.run({"--connect", server.address(), "--run", "left", "-j", "1", "--lost-after", "2s", "--json"}));
  ASSERT_TRUE(eventually([&] { return yard.contents("ran") == "begun\nbegun\n"; }));
  lost.signal(SIGKILL);
  std::ofstream(yard.path() + "/go").close();
  crash::Exit exit;
  const Value report = report_of(master, exit);
  EXPECT_EQ(exit.code, 0) << master.errors() << to_json(report);
  EXPECT_EQ(yard.contents("ran"), "begun\nbegun\nbegun\n");
}

// So many as were expected are left, and cannot do what is left behind.
TEST(ProcessesThatAreLost, AreReplacedThoughNobodyElseIsExpected) {  // P4 P6 P8
  const Yard yard(R"(
version: 1
modules:
  a: { caps: [far], matrix: { n: [1, 2] }, run: 'echo begun >> ran; while [ ! -e go ]; do sleep 0.05; done' }
)");
  Served server(BATON_PROGRAM);
  crash::Child left(yard.worker(server.address(), {"--run", "left", "--quiet"}));
  crash::Child master(yard.run({"--connect", server.address(), "--run", "left", "-j", "1", "--lost-after",
                                "2s", "--cap", "far", "--expect", "1"}));
  const auto is_alone = [](const std::string& line) { return line.find("is there: ") == std::string::npos; };
  ASSERT_TRUE(master.listen(crash::after_ms(30'000), is_alone)) << master.errors();
  crash::Child lost(yard.worker(server.address(), {"--run", "left", "--quiet", "--cap", "far"}));
  ASSERT_TRUE(eventually([&] { return yard.contents("ran") == "begun\nbegun\n"; }));
  lost.signal(SIGKILL);
  std::ofstream(yard.path() + "/go").close();
  EXPECT_EQ(master.wait(crash::after_ms(60'000)).code, 0) << master.errors();
  EXPECT_EQ(yard.contents("ran"), "begun\nbegun\nbegun\n");
}

TEST_F(ProcessesThatAreCutOff, KeepTheirModuleWhenTheyAreBackInTime) {  // P4 P6
  Proxy proxy(server_.port());
  crash::Child master(this->master("20s"));
  crash::Child cut_off(worker(proxy.address(), "20s", {"--quiet"}));
  ASSERT_TRUE(has_begun());
  proxy.set({.refuses = true});
  proxy.reset();
  const std::uint64_t before = proxy.connections();
  ASSERT_TRUE(eventually([&] { return proxy.connections() > before; })) << "it does not try again";
  proxy.set({});
  go();
  crash::Exit exit;
  const Value report = report_of(master, exit);
  EXPECT_EQ(exit.code, 0) << master.errors() << to_json(report);
  EXPECT_EQ(number_of(report, "a", "attempt"), 1);
  EXPECT_EQ(yard_.contents("ran"), "begun\n");
}

TEST_F(ProcessesThatAreCutOff, LoseTheirModuleAndHearOfItLater) {  // P4 P6
  Proxy proxy(server_.port());
  crash::Child master(this->master("2s"));
  crash::Child cut_off(worker(proxy.address(), "2s"));
  ASSERT_TRUE(has_begun());
  proxy.set({.refuses = true});
  proxy.reset();
  expect_another_to_finish(master);
  proxy.set({});
  EXPECT_EQ(cut_off.wait(crash::after_ms(60'000)).code, 0) << cut_off.errors();
}

TEST_F(ProcessesThatAreCutOff, LoseTheirModuleWhileTheyAreStopped) {  // P4 P6 E8
  crash::Child master(this->master("2s"));
  crash::Child stopped(worker(server_.address(), "2s"));
  ASSERT_TRUE(has_begun());
  stopped.stop();
  expect_another_to_finish(master);
  stopped.signal(SIGCONT);
  EXPECT_EQ(stopped.wait(crash::after_ms(60'000)).code, 0) << stopped.errors();
}

TEST(ProcessesThatAreLost, HaveNothingBegunAgainThatMustNotBe) {  // P4 P13
  const Yard yard(
      "version: 1\nmodules: { a: { idempotent: false, run: 'echo begun >> ran; exec sleep 1000' } }");
  Served server(BATON_PROGRAM);
  crash::Child master(yard.run(
      {"--connect", server.address(), "--run", "once", "--only-master", "--lost-after", "2s", "--json"}));
  const auto worker =
      yard.baton({"worker", "--connect", server.address(), "--run", "once", "--lost-after", "2s", "--quiet"});
  crash::Child victim(worker);
  ASSERT_TRUE(eventually([&] { return !yard.contents("ran").empty(); }));
  victim.signal(SIGKILL);
  crash::Child other(worker);
  crash::Exit exit;
  const Value report = report_of(master, exit);
  EXPECT_EQ(exit.code, 1) << master.errors() << to_json(report);
  EXPECT_THAT(to_json(report), HasSubstr(R"("kind":"worker lost")"));
  EXPECT_EQ(other.wait(crash::after_ms(30'000)).code, 0) << other.errors();
  EXPECT_EQ(yard.contents("ran"), "begun\n");
}

TEST(ProcessesThatAreLost, MakeTheirMasterEndIfTheyAreTheCoordinator) {  // P16 P17
  const Yard yard("version: 1\nmodules: { a: { run: 'touch began; exec sleep 1000' } }");
  Served server(BATON_PROGRAM);
  crash::Child master(yard.run({"--connect", server.address(), "--timeout", "2s", "--json"}));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(yard.path() + "/began"); }));
  server.kill();
  crash::Exit exit;
  const Value report = report_of(master, exit);
  EXPECT_EQ(exit.code, 4) << master.errors();
  EXPECT_EQ(statuses(report)["a"], "cancelled");
  EXPECT_THAT(to_json(report), HasSubstr("the coordinator was lost"));
}

// Whoever goes on without it cannot ask what became of what was handed out.
TEST(ProcessesThatAreLost, HaveNothingBegunAgainIfTheyAreTheCoordinator) {  // P17
  const Yard yard(R"(
version: 1
modules: { publish: { idempotent: false, run: 'echo begun >> ran; while [ ! -e go ]; do sleep 0.05; done' } }
)");
  Served server(BATON_PROGRAM);
  crash::Child master(
      yard.run({"--connect", server.address(), "--run", "r", "--only-master", "--timeout", "2s"}));
  crash::Child worker(yard.worker(server.address(), {"--run", "r", "--quiet"}));
  ASSERT_TRUE(eventually([&] { return !yard.contents("ran").empty(); }));
  server.kill();
  EXPECT_EQ(master.wait(crash::after_ms(30'000)).code, 4) << master.errors();
  std::ofstream(yard.path() + "/go").close();
  for (int again = 0; again < 2; ++again) {
    const crash::Ran alone = crash::run(yard.run({"--run", "r"}));
    EXPECT_EQ(alone.exit.code, 1) << alone.errors;
    EXPECT_THAT(alone.lines,
                Contains(HasSubstr("a worker may have begun it, and it may not be begun twice")));
  }
  EXPECT_EQ(yard.contents("ran"), "begun\n");
}

}  // namespace
}  // namespace baton::pipeline
