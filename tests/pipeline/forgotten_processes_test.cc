// A server forgets finished tasks after a while, and a run may last longer than that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "client/client.h"
#include "pipeline/server_coordinator.h"
#include "tests/pipeline/yard.h"

namespace baton::pipeline {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kForgetful = {"--retention-age", "100ms"};

bool is_forgotten(client::Client& somebody, const std::string& key) {
  return eventually([&] {
    const auto task = somebody.get("key:" + key);
    return !task && task.error().code == Errc::not_found;
  });
}

TEST(ProcessesThatAreForgotten, BeginNothingTwiceThatMayNotBe) {  // P17
  const Yard yard(R"(
version: 1
on_failure: continue
modules:
  mine: { pin: master, idempotent: false, run: 'echo mine >> ran' }
  far: { needs: [mine], caps: [far], idempotent: false, run: 'echo far >> ran; while [ ! -e go ]; do sleep 0.05; done' }
)");
  Served server(BATON_PROGRAM, kForgetful);
  client::Client somebody({.addresses = {server.address()}});
  const crash::ChildOptions how =
      yard.run({"--connect", server.address(), "--lost-after", "1s", "--json", "--run", "old", "-j", "1"});
  crash::Child worker(yard.worker(server.address(), {"--quiet", "--run", "old", "--cap", "far"}));
  {
    crash::Child master(how);
    ASSERT_TRUE(eventually([&] { return yard.contents("ran") == "mine\nfar\n"; })) << master.errors();
    master.signal(SIGKILL);
    master.wait(crash::after_ms(10'000));
  }
  std::filesystem::remove_all(yard.path() + "/.baton");  // it is started again on another machine
  std::ofstream(yard.path() + "/go").close();
  ASSERT_TRUE(is_forgotten(somebody, "old/far"));
  crash::Child again(how);
  crash::Exit exit;
  const Value report = report_of(again, exit);
  EXPECT_EQ(exit.code, 1) << again.errors();
  EXPECT_EQ(statuses(report)["mine"], "restored");
  EXPECT_EQ(statuses(report)["far"], "failed");
  EXPECT_THAT(to_json(report), HasSubstr("it may not be begun twice"));
  EXPECT_EQ(yard.contents("ran"), "mine\nfar\n");
  EXPECT_TRUE(is_forgotten(somebody, "old/mine")) << "what a run has noted stays when the run is over";
}

// Nobody else is its master then, so what always runs is left to this one.
TEST(ProcessesThatAreForgotten, TidyUpIfTheirRunIsCancelledAtTheServer) {  // P7 P17
  const Yard yard(R"(
version: 1
modules:
  a: { run: 'touch began; exec sleep 1000' }
  tidy: { needs: [{ id: a, when: settled }], always: true, run: 'echo tidy >> ran' }
)");
  Served server(BATON_PROGRAM);
  client::Client somebody({.addresses = {server.address()}});
  crash::Child master(yard.run({"--connect", server.address(), "--lost-after", "1s", "--run", "r"}));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(yard.path() + "/began"); }));
  ASSERT_TRUE(somebody.cancel("key:r"));
  EXPECT_EQ(master.wait(crash::after_ms(30'000)).code, 4) << master.errors();
  EXPECT_EQ(yard.contents("ran"), "tidy\n");
}

TEST(ARunThatIsForgotten, IsOverForItsWorkers) {  // P6 P17
  Served server(BATON_PROGRAM, kForgetful);
  client::Client somebody({.addresses = {server.address()}});
  ServerCoordinatorOptions options{.run = "short"};
  options.client.addresses = {server.address()};
  ServerCoordinator master(options), worker(options);
  const WorkerRegistration self{.index = 1, .session = "one", .name = "one", .fingerprint = 7};
  ASSERT_TRUE(worker.register_worker(self, {}));
  const auto waits = worker.dequeue_module(self, {});
  ASSERT_TRUE(waits && std::holds_alternative<Empty>(*waits))
      << "there is no master yet, and that may change";
  ASSERT_TRUE(master.open_run({.session = "m", .name = "short", .fingerprint = 7}, {}));
  ASSERT_TRUE(worker.send_heartbeat({.index = 1, .session = "one"}, {}));
  ASSERT_TRUE(worker.say({{.module = "a", .lines = {"nobody takes this"}}}, {}));
  ASSERT_TRUE(master.close_run("over", {}));
  const auto waiting = somebody.tasks({.state = "waiting"});
  ASSERT_TRUE(waiting);
  EXPECT_TRUE(waiting->tasks.empty()) << waiting->tasks.front().queue << " waits for nobody";
  ASSERT_TRUE(is_forgotten(somebody, "short"));
  const auto reply = worker.send_heartbeat({.index = 1, .session = "one"}, {});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_TRUE(reply->closed);
  const auto closed = worker.dequeue_module(self, {});
  ASSERT_TRUE(closed) << closed.error().message;
  EXPECT_TRUE(std::holds_alternative<Closed>(*closed));
}

}  // namespace
}  // namespace baton::pipeline
