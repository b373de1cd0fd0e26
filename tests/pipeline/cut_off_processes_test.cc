// Workers that are there and cannot be heard: cut off for a moment, cut off for too long, stopped.
#include <csignal>

#include "tests/pipeline/yard.h"
#include "tests/proxy.h"

namespace baton::pipeline {
namespace {

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

  const Yard yard_{kKept};
  Served server_{BATON_PROGRAM};
};

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
  go();
  crash::Child heir(worker(server_.address(), "2s", {"--quiet"}));
  crash::Exit exit;
  const Value report = report_of(master, exit);
  EXPECT_EQ(exit.code, 0) << master.errors() << to_json(report);
  EXPECT_EQ(number_of(report, "a", "attempt"), 2);
  EXPECT_EQ(yard_.contents("ran"), "begun\nbegun\n");
  proxy.set({});
  EXPECT_EQ(cut_off.wait(crash::after_ms(60'000)).code, 0) << cut_off.errors();
}

TEST_F(ProcessesThatAreCutOff, LoseTheirModuleWhileTheyAreStopped) {  // P4 P6 E8
  crash::Child master(this->master("2s"));
  crash::Child stopped(worker(server_.address(), "2s"));
  ASSERT_TRUE(has_begun());
  stopped.stop();
  go();
  crash::Child heir(worker(server_.address(), "2s", {"--quiet"}));
  crash::Exit exit;
  const Value report = report_of(master, exit);
  EXPECT_EQ(exit.code, 0) << master.errors() << to_json(report);
  EXPECT_EQ(number_of(report, "a", "attempt"), 2);
  EXPECT_EQ(yard_.contents("ran"), "begun\nbegun\n");
  stopped.signal(SIGCONT);
  EXPECT_EQ(stopped.wait(crash::after_ms(60'000)).code, 0) << stopped.errors();
}

}  // namespace
}  // namespace baton::pipeline
