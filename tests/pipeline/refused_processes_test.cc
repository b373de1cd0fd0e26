// Runs that may not begin: one line says why and what to do, and the exit code tells it from a failure.
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "tests/pipeline/redis_server.h"
#include "tests/pipeline/yard.h"

namespace baton::pipeline {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kOne[] = "version: 1\nmodules: { a: { run: 'echo a >> ran' } }";

// Of standard error, and nothing on standard output. Behind what makes no sense comes where to look it up.
std::string only_line(const crash::Ran& ran) {
  EXPECT_THAT(ran.lines, IsEmpty());
  EXPECT_EQ(std::ranges::count(ran.errors, '\n'), ran.exit.code == 64 ? 2 : 1) << ran.errors;
  return ran.errors;
}

TEST(ProcessesThatAreRefused, SayThatTheRunIsOver) {  // P5 P16
  const Yard yard(kOne);
  Served server(BATON_PROGRAM);
  const auto run = [&](const std::string& where) {
    return crash::run(yard.run({"--connect", where, "--run", "once"}));
  };
  EXPECT_EQ(run(server.address()).exit.code, 0);
  const crash::Ran again = run(server.address());
  EXPECT_EQ(again.exit.code, 2);
  EXPECT_THAT(only_line(again), HasSubstr("run once is over: give each run its own id"));
  EXPECT_EQ(yard.contents("ran"), "a\n");
  const std::string folder = "dir:" + yard.path() + "/shared";
  EXPECT_EQ(run(folder).exit.code, 0);
  const crash::Ran there = run(folder);
  EXPECT_EQ(there.exit.code, 2);
  EXPECT_THAT(only_line(there), HasSubstr("is over")) << "nor is a master waited for that has ended";
}

TEST(ProcessesThatAreRefused, SayThatTheRunHasNotBegun) {  // P16
  const Yard yard(kOne);
  Served server(BATON_PROGRAM);
  const crash::Ran worker =
      crash::run(yard.worker(server.address(), {"--run", "nobody", "--wait", "1ms", "--quiet"}));
  EXPECT_EQ(worker.exit.code, 4);
  EXPECT_THAT(only_line(worker), HasSubstr("run nobody did not begin within 1ms: start its master"));
}

TEST(ProcessesThatAreRefused, SayThatNobodyAnswers) {  // P16
  const Yard yard(kOne);
  for (const std::vector<std::string>& which : {std::vector<std::string>{}, {"--run", "one"}}) {
    std::vector<std::string> how = {"--timeout", "1s", "--quiet"};
    how.insert(how.end(), which.begin(), which.end());
    const crash::Ran worker = crash::run(yard.worker("127.0.0.1:1", how));
    EXPECT_EQ(worker.exit.code, 69) << worker.errors;
    EXPECT_THAT(only_line(worker), HasSubstr("Connection refused"));
  }
}

// Whoever reads it does not know of payloads.
TEST(ProcessesThatAreRefused, SayThatTheirPipelineIsTooLarge) {  // P14 P16
  const Yard yard(std::string(kOne) + "\n#" + std::string(300'000, 'x'));
  Served server(BATON_PROGRAM);
  const crash::Ran master = crash::run(yard.run({"--connect", server.address()}));
  EXPECT_EQ(master.exit.code, 2);
  EXPECT_THAT(only_line(master), HasSubstr("the pipeline, which goes to all workers, is too large"));
  EXPECT_EQ(yard.contents("ran"), "");
}

TEST(ProcessesThatAreRefused, SayThatTheirIndexIsTaken) {  // P11 P16
  const Yard yard("version: 1\nmodules: { a: { run: 'touch began; exec sleep 1000' } }");
  Served server(BATON_PROGRAM);
  crash::Child master(yard.run({"--connect", server.address(), "--run", "taken", "--only-master"}));
  const auto worker = yard.baton({"worker", "--connect", server.address(), "--run", "taken", "--index", "1"});
  crash::Child first(worker);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(yard.path() + "/began"); }));
  const crash::Ran second = crash::run(worker);
  EXPECT_EQ(second.exit.code, 2);
  EXPECT_THAT(second.errors, HasSubstr("worker 1 is registered already, by another process that is still "
                                       "there: give each its own index"));
  master.signal(SIGINT);
  EXPECT_EQ(master.wait(crash::after_ms(30'000)).code, 3) << master.errors();
}

TEST(ProcessesThatAreRefused, SayThatTheyHaveToBeReservedForSomething) {  // P8 P16
  const Yard yard(kOne);
  const crash::Ran worker = crash::run(yard.worker("127.0.0.1:1", {"--reserved"}));
  EXPECT_EQ(worker.exit.code, 64);
  EXPECT_THAT(only_line(worker), HasSubstr("name what it is reserved for with --cap"));
}

TEST(ProcessesThatAreRefused, SayWhatATokenIsNeededFor) {  // P16
  const Yard yard(kOne);
  std::ofstream(yard.path() + "/tokens") << "someone " << std::string(64, '0') << " default=work\n";
  Served server(BATON_PROGRAM, {"--tokens", yard.path() + "/tokens"});
  const crash::Ran master = crash::run(yard.run({"--connect", server.address()}));
  EXPECT_EQ(master.exit.code, 77) << master.errors;
  EXPECT_THAT(only_line(master), HasSubstr("--token-file"));
  const crash::Ran worker = crash::run(yard.worker(server.address()));
  EXPECT_EQ(worker.exit.code, 77) << worker.errors;
  EXPECT_THAT(only_line(worker), HasSubstr("a worker needs the permissions"));
}

TEST(ProcessesThatAreRefused, SayWhatIsWrongBeforeAnythingIsDone) {  // P14 P16
  const Yard yard(kOne),
      with_artifact("version: 1\nmodules: { a: { run: 'echo a > ran', produces: { r: [ran] } } }");
  RedisServer redis;
  const std::string at_redis = "redis://" + redis.path();
  const auto refused = [&](const Yard& where, const std::vector<std::string>& words, int code) {
    const crash::Ran ran = crash::run(where.run(words));
    EXPECT_EQ(ran.exit.code, code) << ran.errors;
    EXPECT_EQ(where.contents("ran"), "");
    return only_line(ran);
  };
  EXPECT_THAT(refused(yard, {"--connect", at_redis}, 64), HasSubstr("--run"));
  EXPECT_THAT(refused(with_artifact, {"--connect", at_redis, "--run", "r"}, 2),
              AllOf(HasSubstr("a produces artifacts"), HasSubstr("--blobs")));
  EXPECT_THAT(refused(yard, {"--connect", "dir:" + yard.path() + "/no/such/run"}, 2),
              HasSubstr(yard.path() + "/no/such, which is no folder"));
  EXPECT_THAT(refused(yard, {"--connect", "dir:"}, 64), HasSubstr("as dir:/srv/run"));
  EXPECT_THAT(refused(yard, {"--connect", "somewhere"}, 64), HasSubstr("somewhere"));
  EXPECT_THAT(refused(yard, {"--only-master"}, 64), HasSubstr("--workers N or --connect"));
  EXPECT_THAT(refused(yard, {"--report", "/no/where.html"}, 73), HasSubstr("/no/where.html"));
  const crash::Ran half = crash::run(yard.run({"--param", "q"}));
  EXPECT_EQ(half.exit.code, 64);
  EXPECT_THAT(half.errors, AllOf(HasSubstr("--param takes NAME=VALUE, and 'q' is not of that form"),
                                 HasSubstr("run --help")));
  EXPECT_THAT(refused(yard, {"--cap", "docker gpu"}, 64), HasSubstr("--cap 'docker gpu' is no capability"));
  EXPECT_THAT(refused(yard, {"--lost-after", "0s"}, 64), HasSubstr("--lost-after is 100ms at least"));
  EXPECT_EQ(crash::run(yard.worker("127.0.0.1:1", {"--cap", "docker gpu"})).exit.code, 64);
  EXPECT_THAT(refused(yard, {"--param", "q=1"}, 64),
              HasSubstr("baton: --param q: there is no such parameter"));
  EXPECT_THAT(refused(yard, {"--module", "b"}, 64), HasSubstr("baton: there is no module 'b'"));
  EXPECT_THAT(refused(yard, {"--skip-module", "a"}, 64), HasSubstr("baton: nothing is left to run"));
  const crash::Ran folder = crash::run(yard.baton({"run", yard.path()}));
  EXPECT_EQ(folder.exit.code, 66);
  EXPECT_THAT(folder.errors, HasSubstr("is a folder"));
  const crash::Ran nothing = crash::run(yard.baton({"run", yard.path() + "/none.yaml"}));
  EXPECT_EQ(nothing.exit.code, 66);
  EXPECT_THAT(nothing.errors, HasSubstr("/none.yaml cannot be read: No such file or directory"));
}

TEST(ProcessesThatLookAtAPipeline, DoWithoutTheParametersThatItNeedsToRun) {  // P14
  const Yard yard(R"(version: 1
params: { who: { required: true }, how: { choices: [well, badly] } }
modules: { a: { run: 'echo ${params.who} ${params.how}' } }
)");
  for (const char* look : {"validate", "plan", "graph"}) {
    const crash::Ran looked = crash::run(yard.baton({"pipeline", look, yard.path() + "/pipeline.yaml"}));
    EXPECT_EQ(looked.exit.code, 0) << looked.errors;
    EXPECT_THAT(looked.errors, AllOf(HasSubstr("parameter 'who' has to be given: --param who=…"),
                                     HasSubstr("parameter 'how' has to be given: --param how=…")));
  }
  const crash::Ran given =
      crash::run(yard.baton({"pipeline", "validate", yard.path() + "/pipeline.yaml", "--param", "how=so"}));
  EXPECT_EQ(given.exit.code, 64) << given.errors;
  EXPECT_EQ(crash::run(yard.run({})).exit.code, 2);
}

TEST(ProcessesThatHaveNothingToRun, SaySo) {  // P8
  const Yard yard(R"(version: 1
name: idle
modules: { a: { caps: [gpu], run: ls }, b: { needs: [a], run: ls } }
)");
  const crash::Ran ran = crash::run(yard.run({}));
  EXPECT_EQ(ran.exit.code, 0);
  ASSERT_THAT(ran.lines, Not(IsEmpty()));
  EXPECT_EQ(ran.lines.back(), "idle: nothing ran: all 2 modules were skipped; a: this machine lacks gpu");
}

TEST(ProcessesThatAreRefused, NameEverySecretThatIsMissing) {  // P14
  const Yard yard(R"(version: 1
secrets: [BATON_TEST_KEY, BATON_TEST_TOKEN]
modules:
  build: { run: 'echo a >> ran' }
  sign: { needs: [build], secrets: [BATON_TEST_KEY], run: ls }
  push: { needs: [sign], pin: master, secrets: [BATON_TEST_KEY, BATON_TEST_TOKEN], run: ls }
)");
  const std::string missing = " is not set here: set it in the environment";
  const auto of_sign = HasSubstr(":5:37: sign: secret 'BATON_TEST_KEY'" + missing);
  const auto of_push = AllOf(HasSubstr(":6:49: push: secret 'BATON_TEST_KEY'" + missing),
                             HasSubstr(":6:65: push: secret 'BATON_TEST_TOKEN'" + missing));
  const crash::Ran ran = crash::run(yard.run({}));
  EXPECT_EQ(ran.exit.code, 2);
  EXPECT_THAT(ran.errors, AllOf(of_sign, of_push));
  EXPECT_EQ(crash::run(yard.run({"--workers", "1"})).exit.code, 2);
  // Elsewhere somebody may have what is not pinned here.
  const crash::Ran shared = crash::run(yard.run({"--connect", "dir:" + yard.path() + "/run"}));
  EXPECT_EQ(shared.exit.code, 2);
  EXPECT_THAT(shared.errors, of_push);
  EXPECT_EQ(yard.contents("ran"), "");
  const crash::Ran looked_at =
      crash::run(yard.baton({"pipeline", "validate", yard.path() + "/pipeline.yaml"}));
  EXPECT_EQ(looked_at.exit.code, 0) << "another machine may have them";
  EXPECT_THAT(looked_at.errors, AllOf(of_sign, of_push));
}

TEST(ProcessesThatAreRefused, DoNotMissTheSecretOfWhatMayBeSkipped) {  // P14
  const Yard yard(R"(version: 1
secrets: [BATON_TEST_KEY]
modules:
  build: { run: 'echo a >> ran' }
  sign: { needs: [build], if: exists(none), secrets: [BATON_TEST_KEY], run: ls }
  push: { needs: [sign], secrets: [BATON_TEST_KEY], run: ls }
  paint: { caps: [gpu], secrets: [BATON_TEST_KEY], run: ls }
)");
  const crash::Ran ran = crash::run(yard.run({}));
  EXPECT_EQ(ran.exit.code, 0) << ran.errors;
  EXPECT_THAT(ran.errors, HasSubstr("sign: secret 'BATON_TEST_KEY' is not set here"));
  EXPECT_EQ(yard.contents("ran"), "a\n");
}

TEST(ProcessesThatAreRefused, DoNotMissTheSecretOfWhatMayFail) {  // P14
  const Yard yard(R"(version: 1
secrets: [BATON_TEST_KEY]
modules:
  sign: { allow_failure: true, secrets: [BATON_TEST_KEY], run: ls }
  push: { needs: [sign], run: 'echo a >> ran' }
)");
  const crash::Ran ran = crash::run(yard.run({}));
  EXPECT_EQ(ran.exit.code, 0) << ran.errors;
  EXPECT_THAT(ran.errors, HasSubstr("sign: secret 'BATON_TEST_KEY' is not set here"));
  EXPECT_EQ(yard.contents("ran"), "a\n");
  const Yard other(R"(version: 1
secrets: [BATON_TEST_KEY]
modules: { sign: { allow_failure: [75], secrets: [BATON_TEST_KEY], run: ls } }
)");
  EXPECT_EQ(crash::run(other.run({})).exit.code, 2) << "it would fail in another way";
}

// The master that began the run had the secret, and its records are gone.
TEST(ProcessesThatAreRefused, DoNotMissTheSecretOfWhatTheCoordinatorMayKnow) {  // P14 P17
  Served server(BATON_PROGRAM);
  for (const bool is_at_server : {true, false}) {
    const Yard yard(R"(version: 1
secrets: [BATON_TEST_KEY]
modules:
  sign: { pin: master, secrets: [BATON_TEST_KEY], run: 'true' }
  wait: { needs: [sign], run: 'touch began; test -e goes-on || exec sleep 1000' }
)");
    const std::string where = is_at_server ? server.address() : "dir:" + yard.path() + "/meet";
    const std::vector<std::string> how = {"--connect", where, "--run", "goes-on", "--lost-after", "1s"};
    crash::ChildOptions begins = yard.run(how);
    begins.environment = {{"BATON_TEST_KEY", "0123456789"}};
    crash::Child master(begins);
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(yard.path() + "/began"); }));
    master.signal(SIGKILL);
    master.wait(crash::after_ms(30'000));
    std::filesystem::remove_all(yard.path() + "/.baton");
    std::ofstream(yard.path() + "/goes-on") << "";
    const crash::Ran ran = crash::run(yard.run(how));
    EXPECT_NE(ran.exit.code, 2) << "it went on, with what the first one could still publish";
    EXPECT_THAT(ran.lines, Contains("pipeline: 2 modules, run goes-on"));
    EXPECT_THAT(ran.errors, HasSubstr("sign: secret 'BATON_TEST_KEY' is not set here"));
  }
}

TEST(ProcessesThatAreRefused, SayThatNoCoordinatorIsThere) {  // P11 P16
  const Yard yard(kOne);
  RedisServer redis;
  const crash::Ran worker = crash::run(yard.worker("127.0.0.1:" + std::to_string(redis.port())));
  EXPECT_EQ(worker.exit.code, 2) << worker.errors;
  EXPECT_THAT(only_line(worker), HasSubstr("no baton coordinator"));
}

// At the first answer: nobody waits until a request may have taken long enough.
TEST(ProcessesThatAreRefused, TellARedisFromACoordinator) {  // P2 P16
  const Yard yard(kOne);
  RedisServer redis;
  Served server(BATON_PROGRAM);
  const auto refused = [](crash::ChildOptions how) {
    how.environment = {{"BATON_TOKEN", "baton_a-token"}};
    const crash::Ran ran = crash::run(how);
    EXPECT_EQ(ran.exit.code, 2) << ran.errors;
    return only_line(ran);
  };
  const std::string at_redis = "127.0.0.1:" + std::to_string(redis.port());
  const std::vector<std::string> how = {"--run", "r", "--timeout", "1h"};
  const auto with = [&](const std::string& where) {
    std::vector<std::string> all = how;
    all.insert(all.end(), {"--connect", where});
    return all;
  };
  EXPECT_THAT(refused(yard.run(with(at_redis))), HasSubstr("no baton coordinator"));
  EXPECT_THAT(refused(yard.worker(at_redis, how)), HasSubstr("no baton coordinator"));
  const std::string at_server = "redis://" + server.address();
  EXPECT_THAT(refused(yard.run(with(at_server))), HasSubstr("no Redis; a baton server is named without"));
  EXPECT_THAT(refused(yard.worker(at_server, how)), HasSubstr("no Redis; a baton server is named without"));
  EXPECT_EQ(yard.contents("ran"), "");
}

TEST(ProcessesThatAreRefused, DoNotWorkInAFolderThatIsNotThere) {  // P11 P16
  const Yard yard(kOne);
  const crash::Ran worker =
      crash::run(yard.baton({"worker", "--connect", "127.0.0.1:1", "--dir", "nowhere"}));
  EXPECT_EQ(worker.exit.code, 64) << worker.errors;
  EXPECT_THAT(only_line(worker), HasSubstr("baton: --dir nowhere: there is no such folder"));
}

TEST(ProcessesThatAreRefused, TellProgramsToo) {  // P16
  const Yard yard(kOne), broken("version: 1\nmodules: { a: { rnu: ls }, b: { needs: [c], run: ls } }");
  const auto said = [](const crash::ChildOptions& options, int code) {
    const crash::Ran ran = crash::run(options);
    EXPECT_EQ(ran.exit.code, code) << ran.errors;
    EXPECT_EQ(ran.lines.size(), 1U) << ran.errors;
    const auto value = from_json(ran.lines.empty() ? "" : ran.lines.front());
    const Value* error = value ? value->field("error") : nullptr;
    return error != nullptr ? *error->field("code")->text() + " " + *error->field("message")->text() : "";
  };
  EXPECT_THAT(said(broken.run({"--json"}), 2),
              AllOf(HasSubstr("INVALID_REQUEST"), HasSubstr("'rnu'"), HasSubstr("\n"), HasSubstr("'c'")));
  EXPECT_THAT(said(yard.run({"--json", "--report", "/no/where.html"}), 73), HasSubstr("IO_FAILED"));
  EXPECT_THAT(said(yard.baton({"run", "--json", yard.path() + "/none.yaml"}), 66), HasSubstr("none.yaml"));
  EXPECT_THAT(said(yard.run({"--json", "--connect", "127.0.0.1:1"}), 4), HasSubstr("UNAVAILABLE"));
  EXPECT_THAT(said(yard.baton({"pipeline", "rerun", "--json", "--dir", yard.path()}), 1),
              HasSubstr("NOT_FOUND"));
}

TEST(ProcessesThatAreRefused, SayWhatAPasswordIsNeededFor) {  // P16
  const Yard yard(kOne);
  RedisServer redis({"--requirepass", "secret"});
  const crash::Ran ran = crash::run(yard.run({"--connect", "redis://" + redis.path(), "--run", "r"}));
  EXPECT_EQ(ran.exit.code, 77);
  EXPECT_THAT(only_line(ran), HasSubstr("redis://:PASSWORD@"));
  const crash::Ran worker = crash::run(yard.worker("redis://" + redis.path(), {"--run", "r"}));
  EXPECT_EQ(worker.exit.code, 77);
  EXPECT_THAT(only_line(worker), HasSubstr("redis://:PASSWORD@"));
}

// On the command line of its workers everybody would see it.
TEST(ProcessesWithAPassword, ShowItToNobody) {  // P11 P16
  const Yard yard(R"(
version: 1
modules: { a: { run: 'tr "\\0" "\\n" < /proc/$PPID/cmdline > command; env > environment' } }
)");
  RedisServer redis({"--requirepass", "hunter22"});
  const std::string where = "redis://:hunter22@" + redis.path();
  crash::ChildOptions how = yard.run({"--connect", where, "--run", "r", "--only-master", "--workers", "1"});
  how.environment = {{"BATON_CONNECT", "127.0.0.1:1"}};
  const crash::Ran ran = crash::run(how);
  EXPECT_EQ(ran.exit.code, 0) << ran.errors;
  EXPECT_THAT(yard.contents("command"), AllOf(HasSubstr("worker\n"), Not(HasSubstr("hunter22"))));
  EXPECT_THAT(yard.contents("environment"),
              AllOf(HasSubstr("BATON_CONNECT=127.0.0.1:1\n"), Not(HasSubstr("hunter22"))));
}

// Its workers know the run by its name alone, and that is the first one's.
TEST(ProcessesThatAreRefused, LetNoWorkersOfTheirsTakePart) {  // P5 P11
  const Yard yard(kOne);
  Served server(BATON_PROGRAM);
  std::vector<std::string> how = {"--connect", server.address(), "--run", "shared", "--lost-after",
                                  "1s",        "--only-master"};
  crash::Child first(yard.run(how));
  ASSERT_TRUE(eventually([&] { return !yard.contents(".baton/runs/shared/progress").empty(); }));
  how.insert(how.end(), {"--workers", "1"});
  EXPECT_EQ(crash::run(yard.run(how)).exit.code, 2);
  EXPECT_EQ(yard.contents("ran"), "");
  first.signal(SIGINT);
  EXPECT_EQ(first.wait(crash::after_ms(30'000)).code, 3);
}

TEST(ProcessesThatAreRefused, NameWhatDiffersWhereTwoRunOnePipeline) {  // P1 P5
  const Yard first("version: 1\nname: p\nmodules: { a: { run: 'touch began; exec sleep 1000' } }");
  const Yard second("version: 1\nname: p\nmodules: { b: { run: 'true' } }");
  Served server(BATON_PROGRAM);
  const auto how =
      std::vector<std::string>{"--connect", server.address(), "--run", "shared", "--lost-after", "1s"};
  crash::Child master(first.run(how));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(first.path() + "/began"); }));
  const crash::Ran other = crash::run(second.run(how));
  EXPECT_EQ(other.exit.code, 2);
  EXPECT_THAT(only_line(other), HasSubstr("run shared was begun with another pipeline"));
  const crash::Ran same = crash::run(first.run(how));
  EXPECT_EQ(same.exit.code, 2);
  EXPECT_THAT(same.errors, HasSubstr("run shared has a master that is still there"));
  EXPECT_THAT(same.lines, ::testing::ElementsAre(HasSubstr("waiting for up to 1 s for its lease to end")));
  master.signal(SIGINT);
  EXPECT_EQ(master.wait(crash::after_ms(30'000)).code, 3);
}

}  // namespace
}  // namespace baton::pipeline
