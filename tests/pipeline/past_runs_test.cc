// What is remembered of runs: `baton pipeline list`, `why` and `logs`.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>

#include "pipeline/records.h"
#include "tests/pipeline/yard.h"

namespace baton::pipeline {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// `baton pipeline` in the folder of the yard.
crash::Ran asked(const Yard& yard, std::vector<std::string> words) {
  words.insert(words.begin(), "pipeline");
  words.insert(words.end(), {"--dir", yard.path()});
  return crash::run(yard.baton(std::move(words)));
}

TEST(APastRun, TellsOfAllInstancesOfAMatrix) {  // P9 P16
  const Yard yard(R"(
version: 1
modules:
  test: { matrix: { cc: [gcc, clang], opt: [O0, O2] }, run: 'echo ${matrix.cc} at ${matrix.opt}' }
)");
  EXPECT_EQ(crash::run(yard.run({"--module", "test[gcc,O0]", "--module", "test[clang,O2]"})).exit.code, 0);
  EXPECT_THAT(asked(yard, {"why", "test"}).lines,
              ElementsAre(StartsWith("test[gcc,O0] succeeded"), StartsWith("test[gcc,O2] was left out"),
                          StartsWith("test[clang,O0] was left out"), StartsWith("test[clang,O2] succeeded")));
  EXPECT_THAT(asked(yard, {"logs", "test"}).lines, AllOf(Contains("gcc at O0"), Contains("clang at O2")));
}

TEST(APastRun, IsToldFromOneThatNeverWas) {  // P16
  const Yard yard("version: 1\nmodules: { build: { run: 'true' } }");
  EXPECT_EQ(crash::run(yard.run({})).exit.code, 0);
  const auto refusal = [&](const std::vector<std::string>& words) {
    const crash::Ran ran = asked(yard, words);
    EXPECT_EQ(ran.exit.code, 1);
    return ran.errors;
  };
  EXPECT_THAT(refusal({"why", "build", "--run", "zzz"}), HasSubstr("there is no run 'zzz'"));
  EXPECT_THAT(refusal({"logs", "build", "--run", "zzz"}), HasSubstr("there is no run 'zzz'"));
  EXPECT_THAT(refusal({"why", "biuld"}), AllOf(HasSubstr("biuld is no module"), HasSubstr("'build'")));
  EXPECT_THAT(refusal({"logs", "biuld"}), HasSubstr("biuld is no module"));
  EXPECT_THAT(asked(yard, {"logs", "build"}).errors, HasSubstr("build said nothing"));
}

TEST(APastRun, IsSaidToBeUnknownWhereThereIsNone) {  // P16
  const Yard yard("version: 1\nmodules: { build: { run: 'true' } }");
  const crash::Ran none = asked(yard, {"list"});
  EXPECT_EQ(none.exit.code, 0);
  EXPECT_THAT(none.lines, ElementsAre());
  EXPECT_THAT(none.errors, HasSubstr("nothing is known of a run in " + yard.path() + "/.baton; say where"));
}

TEST(APastRun, IsListedWithHowItEnded) {  // P16
  const Yard yard(R"(
version: 1
timeout: 1s
modules: { a: { run: '[ -e quick ] || exec sleep 1000' }, b: { needs: [a], run: '[ -e good ]' } }
)");
  const crash::Ran late = crash::run(yard.run({"--run", "late"}));
  EXPECT_EQ(late.exit.code, 3);
  EXPECT_THAT(late.lines.back(), HasSubstr("cancelled after 1s (the run took longer than 1 s)"));
  EXPECT_THAT(asked(yard, {"why", "a"}).lines.front(), HasSubstr("the run took longer than 1 s"));
  std::ofstream(yard.path() + "/quick").close();
  EXPECT_EQ(crash::run(yard.run({"--run", "bad"})).exit.code, 1);
  std::ofstream(yard.path() + "/good").close();
  EXPECT_EQ(crash::run(yard.run({"--run", "good"})).exit.code, 0);
  EXPECT_THAT(asked(yard, {"list"}).lines,
              ElementsAre(HasSubstr("began"), AllOf(HasSubstr("late "), HasSubstr(" cancelled ")),
                          AllOf(HasSubstr("bad "), HasSubstr(" failed ")),
                          AllOf(HasSubstr("good "), HasSubstr(" succeeded "))));
  const auto last = from_json(asked(yard, {"list", "--json"}).lines.back());
  ASSERT_TRUE(last);
  EXPECT_EQ(*last->field("run")->text(), "good");
  EXPECT_EQ(*last->field("state")->text(), "succeeded");
}

TEST(APastRun, IsInterruptedOnceItsMasterWasKilled) {  // P16 P17
  const Yard yard(
      "version: 1\nmodules: { a: { run: 'touch began; exec sleep 1000' }, b: { needs: [a], run: ls } }");
  crash::Child master(yard.run({"--run", "killed"}));
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(yard.path() + "/began"); }));
  EXPECT_THAT(asked(yard, {"list"}).lines.back(), HasSubstr(" running "));
  const crash::Ran twice = crash::run(yard.run({"--run", "killed"}));
  EXPECT_EQ(twice.exit.code, 2);
  EXPECT_THAT(twice.errors, HasSubstr("run killed is under way"));
  master.signal(SIGKILL);
  master.wait(crash::after_ms(10'000));
  EXPECT_THAT(asked(yard, {"list"}).lines.back(), HasSubstr(" interrupted "));
  EXPECT_THAT(asked(yard, {"why", "a"}).lines,
              ElementsAre(HasSubstr("a was running when the master of run killed ended without a word")));
  EXPECT_THAT(asked(yard, {"why", "b"}).lines, ElementsAre(StartsWith("b was waiting when the master")));
}

TEST(APastRun, IsRepeatedUnderTheNameThatIsGiven) {  // P16
  const Yard yard("version: 1\nmodules: { a: { run: '[ -e good ]' } }");
  EXPECT_EQ(crash::run(yard.run({"--run", "first"})).exit.code, 1);
  std::ofstream(yard.path() + "/good").close();
  const crash::Ran again = asked(yard, {"rerun", "--failed", "--run", "second", "--json"});
  EXPECT_EQ(again.exit.code, 0) << again.errors;
  ASSERT_EQ(again.lines.size(), 1U) << "with --json there is the report and nothing else";
  const auto report = from_json(again.lines.front());
  ASSERT_TRUE(report) << again.lines.front();
  EXPECT_EQ(*report->field("run")->text(), "second");
  EXPECT_THAT(asked(yard, {"list"}).lines.back(), StartsWith("second "));
}

TEST(APastRun, IsRepeatedWhereItsFileLiesWhereverOneIs) {  // P16
  const Yard yard("version: 1\nmodules: { a: { run: 'echo ran >> here' } }");
  const auto shell = [&](const std::string& line) {
    return crash::run({.command = {"/bin/sh", "-c", line, BATON_PROGRAM, yard.path()}});
  };
  EXPECT_EQ(shell("cd $1 && $0 run pipeline.yaml").exit.code, 0);
  const crash::Ran again = shell("cd / && $0 pipeline rerun --dir $1");
  EXPECT_EQ(again.exit.code, 0) << again.errors;
  EXPECT_THAT(again.lines, ::testing::Not(Contains(HasSubstr("has changed"))));
  EXPECT_EQ(yard.contents("here"), "ran\nran\n");
  EXPECT_THAT(shell("cd $1 && $0 pipeline list").lines.back(), ::testing::EndsWith(" pipeline.yaml"));
}

TEST(APastRun, IsRepeatedByWhoeverCanDoWhatItCouldThen) {  // P16
  const Yard yard("version: 1\nmodules: { a: { caps: [gpu], run: 'echo ran >> here; [ -e good ]' } }");
  EXPECT_EQ(crash::run(yard.run({"--cap", "gpu"})).exit.code, 1);
  std::ofstream(yard.path() + "/good").close();
  EXPECT_EQ(asked(yard, {"rerun", "--failed"}).exit.code, 0);
  EXPECT_EQ(yard.contents("here"), "ran\nran\n");
}

TEST(APastRun, IsNotGoneOnWithByOtherModules) {  // P17
  const Yard yard("version: 1\nmodules: { a: { idempotent: false, run: 'echo ran >> here; false' } }");
  EXPECT_EQ(crash::run(yard.run({"--run", "r"})).exit.code, 1);
  std::ofstream(yard.path() + "/pipeline.yaml")
      << "version: 1\nmodules: { a: { idempotent: false, run: 'echo ran >> here' }, b: { run: 'true' } }";
  const crash::Ran other = crash::run(yard.run({"--run", "r"}));
  EXPECT_EQ(other.exit.code, 2);
  EXPECT_THAT(other.errors, HasSubstr("run 'r' was of other modules"));
  EXPECT_EQ(yard.contents("here"), "ran\n");
}

TEST(APastRun, IsGoneOnWithWithoutBeginningTwiceWhatMayNotBe) {  // P17
  const Yard yard(R"(
version: 1
on_failure: continue
modules:
  bad: { idempotent: false, run: 'echo bad >> ran; false' }
  late: { idempotent: false, timeout: 50ms, stop_grace: 10ms, run: 'echo late >> ran; exec sleep 1000' }
  again: { run: 'echo again >> ran; [ -e good ]' }
  publish: { needs: [{ id: again, when: settled }], idempotent: false, run: 'echo publish >> ran' }
)");
  const auto goes_on = [&] {
    std::ofstream(yard.path() + "/ran").close();
    crash::Child master(yard.run({"--run", "r", "--json"}));
    crash::Exit exit;
    const Value report = report_of(master, exit);
    EXPECT_EQ(exit.code, 1);
    return statuses(report);
  };
  EXPECT_EQ(crash::run(yard.run({"--run", "r"})).exit.code, 1);
  std::ofstream(yard.path() + "/good").close();
  using Statuses = std::map<std::string, std::string>;
  EXPECT_EQ(
      goes_on(),
      (Statuses{{"bad", "failed"}, {"late", "timed out"}, {"again", "succeeded"}, {"publish", "restored"}}));
  EXPECT_EQ(yard.contents("ran"), "again\n");
  EXPECT_EQ(
      goes_on(),
      (Statuses{{"bad", "failed"}, {"late", "timed out"}, {"again", "restored"}, {"publish", "restored"}}));
  EXPECT_EQ(yard.contents("ran"), "") << "it is remembered for as long as the run is";
}

TEST(APastRun, IsGoneOnWithByBeginningWhatWasNotBegun) {  // P17
  const Yard yard(R"(
version: 1
modules:
  a: { run: '[ -e good ]' }
  b: { needs: [a], idempotent: false, run: 'echo ran >> here' }
)");
  EXPECT_EQ(crash::run(yard.run({"--run", "r"})).exit.code, 1);
  std::ofstream(yard.path() + "/good").close();
  EXPECT_EQ(crash::run(yard.run({"--run", "r"})).exit.code, 0);
  EXPECT_EQ(yard.contents("here"), "ran\n");
}

TEST(APastRun, IsGoneOnWithBehindALineThatIsTorn) {  // P17
  const Yard yard("version: 1\nmodules: { a: { run: 'echo a >> here; [ -e good ]' } }");
  EXPECT_EQ(crash::run(yard.run({"--run", "r"})).exit.code, 1);
  for (const char* name : {"journal", "progress"})
    std::ofstream(yard.path() + "/.baton/runs/r/" + name, std::ios::app) << R"({"module":"a","sta)";
  std::ofstream(yard.path() + "/good").close();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(crash::run(yard.run({"--run", "r"})).exit.code, 0);
  EXPECT_EQ(yard.contents("here"), "a\na\n") << "it has succeeded, and nobody knew";
}

TEST(APastRun, IsGoneOnWithByWorkersToo) {  // P11 P17
  const Yard yard(R"(
version: 1
modules:
  once: { idempotent: false, run: 'echo once >> here' }
  a: { needs: [once], run: 'echo a >> here; [ -e good ]' }
)");
  const auto goes_on = [&] {
    return crash::run(yard.run({"--run", "r", "--workers", "1", "--only-master"}), 60'000);
  };
  EXPECT_EQ(goes_on().exit.code, 1);
  std::ofstream(yard.path() + "/good").close();
  const crash::Ran again = goes_on();
  EXPECT_EQ(again.exit.code, 0) << again.errors;
  EXPECT_EQ(yard.contents("here"), "once\na\na\n");
}

TEST(APastRun, HasOneMasterHoweverManyAreStartedAtOnce) {  // P17
  const Yard yard(
      "version: 1\nmodules: { a: { run: 'echo ran >> here; until [ -e go ]; do sleep 0.01; done' } }");
  const crash::Ran ran = crash::run({.command = {"/bin/sh", "-c", R"(cd $1
    master() { $0 run pipeline.yaml --run r; echo $? >> codes; }
    for one in 1 2 3; do master & done
    for turn in $(seq 1000); do [ -e codes ] && [ $(wc -l < codes) = 2 ] && break; sleep 0.01; done
    touch go; wait; sort codes >&2)",
                                                 BATON_PROGRAM, yard.path()}});
  EXPECT_TRUE(ran.errors.ends_with("0\n2\n2\n")) << ran.errors;
  EXPECT_THAT(ran.errors, HasSubstr("run r is under way in"));
  EXPECT_EQ(yard.contents("here"), "ran\n");
}

// What it made may be gone, as it is with the run of a server: that is no reason to repeat what nobody asks
// for.
TEST(APastRun, IsRepeatedAsFarAsWhatItMadeIsGoneAndAskedFor) {  // P16 P17
  const Yard yard(R"(
version: 1
on_failure: continue
modules:
  publish: { idempotent: false, run: 'echo publish >> ran', produces: { note: [ran] } }
  gen: { run: 'echo gen >> ran; date +%N > stamp', produces: { stamp: [stamp] } }
  ok: { needs: [gen], consumes: { gen/stamp: a }, run: 'echo ok >> ran' }
  bad: { needs: [gen], consumes: { gen/stamp: b }, run: 'echo bad >> ran; [ -e good ]' }
)");
  const auto repeated = [&] {
    std::ofstream(yard.path() + "/ran").close();
    asked(yard, {"rerun", "--failed", "-j", "1"});
    return yard.contents("ran");
  };
  EXPECT_EQ(crash::run(yard.run({"-j", "1"})).exit.code, 1);
  EXPECT_EQ(repeated(), "bad\n");
  std::filesystem::remove_all(yard.path() + "/.baton/blobs");
  EXPECT_THAT(repeated(), ::testing::AnyOf("gen\nok\nbad\n", "gen\nbad\nok\n"));
}

// A clean-up, say, has something to do again.
TEST(APastRun, IsRepeatedWithWhatComesBehindWhatIsRepeated) {  // P16
  const Yard yard(R"(
version: 1
modules:
  a: { run: 'echo a >> ran' }
  b: { needs: [a], run: 'echo b >> ran; [ -e good ]' }
  clean: { needs: [{ id: b, when: settled }], always: true, run: 'echo clean >> ran' }
)");
  EXPECT_EQ(crash::run(yard.run({})).exit.code, 1);
  EXPECT_EQ(yard.contents("ran"), "a\nb\nclean\n");
  std::ofstream(yard.path() + "/good").close();
  const crash::Ran again = asked(yard, {"rerun", "--failed"});
  EXPECT_EQ(again.exit.code, 0) << again.errors;
  EXPECT_EQ(yard.contents("ran"), "a\nb\nclean\nb\nclean\n");
  EXPECT_THAT(again.lines, ::testing::Not(Contains(HasSubstr("has changed"))));
  std::ofstream(yard.path() + "/pipeline.yaml", std::ios::app) << "# better\n";
  EXPECT_THAT(asked(yard, {"rerun"}).lines, Contains(HasSubstr("pipeline.yaml has changed since")));
}

TEST(APastRun, SaysNothingOfHowLongModulesOfAnotherFileTake) {  // P16
  const Yard yard("version: 1\nmodules: { a: { run: ls } }");
  EXPECT_EQ(crash::run(yard.run({})).exit.code, 0);
  EXPECT_TRUE(Records::history(yard.path(), yard.path() + "/pipeline.yaml").contains("a"));
  EXPECT_FALSE(Records::history(yard.path(), yard.path() + "/another.yaml").contains("a"));
}

TEST(APastRun, ShowsNoSecretsAndOnlyToWhoeverRanIt) {  // P16
  const Yard yard(R"(
version: 1
secrets: [BATON_TEST_TOKEN]
modules:
  a: { secrets: [BATON_TEST_TOKEN], run: 'echo where=at-$BATON_TEST_TOKEN >> "$BATON_OUTPUT"', outputs: [where] }
  b: { needs: [a], env: { WHERE: "${needs.a.outputs.where}" }, run: 'printenv WHERE | tr a-z A-Z > upper' }
)");
  crash::ChildOptions options = yard.run({"--json", "--run", "secret"});
  options.environment = {{"BATON_TEST_TOKEN", "hunter\"22"}};
  crash::Child master(options);
  crash::Exit exit;
  const std::string report = to_json(report_of(master, exit));
  EXPECT_EQ(exit.code, 0);
  EXPECT_THAT(report, AllOf(HasSubstr("at-***"), ::testing::Not(HasSubstr("hunter"))));
  EXPECT_THAT(yard.contents(".baton/runs/secret/report.json"), HasSubstr("at-***"));
  EXPECT_EQ(yard.contents("upper"), "AT-HUNTER\"22\n") << "whoever needs it gets it as it is";
  EXPECT_EQ(std::filesystem::status(yard.path() + "/.baton").permissions(),
            std::filesystem::perms::owner_all);
}

// The one machine does not know the secrets of the other.
TEST(APastRun, ShowsNoSecretsThatOneMachineAloneHas) {  // P16
  const Yard yard(R"(
version: 1
secrets: [BATON_TEST_FAR, BATON_TEST_NEAR]
modules:
  far: { caps: [far], secrets: [BATON_TEST_FAR], run: 'echo where=at-$BATON_TEST_FAR >> "$BATON_OUTPUT"', outputs: [where] }
  near:
    needs: [far]
    pin: master
    secrets: [BATON_TEST_NEAR]
    run: 'echo "near: ${needs.far.outputs.where}"; echo again=${needs.far.outputs.where} >> "$BATON_OUTPUT"; [ -n "$BATON_TEST_NEAR" ]'
    outputs: [again]
  echo: { needs: [near], caps: [far], run: 'echo "echo: swordfish, ${needs.near.outputs.again}"; exit 1' }
)");
  crash::ChildOptions options =
      yard.run({"--connect", "dir:" + yard.path() + "/meet", "--json", "--run", "secret"});
  options.environment = {{"BATON_TEST_NEAR", "swordfish"}};
  crash::Child master(options);
  crash::ChildOptions far = yard.worker("dir:" + yard.path() + "/meet", {"--cap", "far"});
  far.environment = {{"BATON_TEST_FAR", "hunter22"}};
  crash::Child worker(far);
  crash::Exit exit;
  const std::string report = to_json(report_of(master, exit));
  EXPECT_EQ(exit.code, 1) << master.errors();
  EXPECT_THAT(report, AllOf(HasSubstr(R"("where":"at-***")"), HasSubstr(R"("again":"at-***")"),
                            HasSubstr("echo: ***, at-***"), ::testing::Not(HasSubstr("hunter22")),
                            ::testing::Not(HasSubstr("swordfish"))));
  EXPECT_THAT(asked(yard, {"logs", "near"}).lines, ElementsAre("near: at-***"));
  EXPECT_THAT(asked(yard, {"logs", "echo"}).lines, ElementsAre("echo: ***, at-***"));
}

TEST(APastRun, HasTheOutputsOfModulesInItsReport) {  // P16
  const Yard yard(R"(
version: 1
modules: { a: { run: 'echo version=1.4 >> "$BATON_OUTPUT"', outputs: [version] } }
)");
  crash::Child master(yard.run({"--json"}));
  crash::Exit exit;
  const Value report = report_of(master, exit);
  EXPECT_EQ(exit.code, 0);
  const Value& module = report.field("modules")->list()->front();
  ASSERT_NE(module.field("result"), nullptr) << to_json(report);
  EXPECT_EQ(*module.field("result")->field("outputs")->field("version")->text(), "1.4");
  for (const char* time : {"queue_ms", "transfer_ms", "took_ms"}) EXPECT_GE(number_of(report, "a", time), 0);
  EXPECT_NE(report.field("times"), nullptr);
}

}  // namespace
}  // namespace baton::pipeline
