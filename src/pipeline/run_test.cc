#include "pipeline/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <semaphore>
#include <thread>

#include "pipeline/inbox.h"
#include "pipeline/testing.h"

namespace baton::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct BuildInfo {
  std::string version;
  std::vector<std::string> files;
};
BATON_FIELDS(BuildInfo, version, files)

const ModuleReport& module(const RunReport& report, const std::string& id) {
  for (const ModuleReport& one : report.modules) {
    if (one.id == id) return one;
  }
  ADD_FAILURE() << "no module " << id;
  return report.modules.front();
}

RunReport run(const Pipeline& pipeline, RunOptions options = {}) {
  const auto graph = Graph::of(pipeline.definition());
  if (!graph) throw std::logic_error(describe(graph.error().front()));
  if (options.site.capabilities.empty()) options.site.capabilities = detected_capabilities();
  return run(*graph, std::move(options));
}

TEST(ARun, HandsResultsToThoseWhoNeedThem) {  // P12
  Pipeline pipeline("release");
  std::string published;
  auto build = pipeline.add("build").run([](Context&) -> BuildInfo { return {"1.4", {"a", "b"}}; });
  auto count =
      pipeline.add("count", build).run([](Context&, const BuildInfo& info) { return info.files.size(); });
  pipeline.add("publish", count, build).run([&](Context&, std::size_t files, const BuildInfo& info) {
    published = info.version + " with " + std::to_string(files);
  });
  const RunReport report = run(pipeline);
  EXPECT_EQ(report.outcome, RunOutcome::succeeded);
  EXPECT_EQ(published, "1.4 with 2");
}

TEST(ARun, HandsOnWhatMayBeMissingOrHaveFailed) {  // P12 P13
  Pipeline pipeline("release");
  pipeline.on_failure(OnFailure::finish);
  auto fine = pipeline.add("fine").run([](Context&) { return 1; });
  auto lint =
      pipeline.add("lint").allow_failure().run([](Context&) -> int { throw std::runtime_error("untidy"); });
  auto skipped = pipeline.add("skipped").run([](Context& context) -> int { context.skip("not today"); });
  std::string seen;
  pipeline.add("look", maybe(fine), maybe(lint), settled(lint), settled(skipped))
      .run([&](Context&, const int* a, const int* b, const Outcome<int>& c, const Outcome<int>& d) {
        seen = std::to_string(*a) + (b ? "value " : " none ") + c.failure.message + ", " + d.skipped_because;
      });
  const RunReport report = run(pipeline);
  EXPECT_EQ(seen, "1 none untidy, not today");
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << "a failure that may be does not spoil the run";
  EXPECT_EQ(module(report, "lint").status, ModuleStatus::ignored_failure);
}

struct Compile {
  static constexpr std::string_view id = "compile";
  static constexpr std::array required_capabilities = {"linux"};
  BuildInfo operator()(Context&) const { return {"2.0", {}}; }
};
struct Check {
  static constexpr std::string_view id = "check";
  static constexpr std::array matrix_targets = {"linux", "windows"};
  void configure(ModuleSpec& spec) const { spec.priority = Priority::high; }
  std::string operator()(Context& context, const BuildInfo& info) const {
    return *context.matrix_target() + " " + info.version;
  }
};

TEST(AModule, MayBeAClass) {  // P9
  Pipeline pipeline("classes");
  auto compile = pipeline.add<Compile>();
  auto check = pipeline.add<Check>(compile);
  std::vector<std::string> seen;
  pipeline.add("all", check).pin_to_master().run([&](Context&, const MatrixResults<std::string>& results) {
    for (const Outcome<std::string>& one : results)
      seen.push_back(one.target + ": " + (one.value ? *one.value : one.skipped_because));
  });
  EXPECT_EQ(run(pipeline).outcome, RunOutcome::succeeded);
  EXPECT_THAT(seen,
              ElementsAre("linux: linux 2.0",
                          "windows: this machine lacks windows"));  // alone, a machine skips what it cannot
}

TEST(AModule, MayKeepAResultThatCannotTravel) {  // P10
  Pipeline pipeline("local");
  auto handle = pipeline.add("open").pin_to_master().run([](Context&) { return std::make_unique<int>(7); });
  int seen = 0;
  pipeline.add("use", handle).pin_to_master().run([&](Context&, const std::unique_ptr<int>& value) {
    seen = *value;
  });
  EXPECT_EQ(run(pipeline).outcome, RunOutcome::succeeded);
  EXPECT_EQ(seen, 7);
}

TEST(AModule, IsTriedAgainAsOftenAsItMay) {  // P13
  Pipeline pipeline("retries");
  std::atomic<int> calls = 0;
  pipeline.add("flaky").retry(3, milliseconds(1)).run([&](Context&) {
    if (++calls < 3) throw std::runtime_error("not yet");
  });
  const RunReport report = run(pipeline);
  EXPECT_EQ(report.outcome, RunOutcome::succeeded);
  EXPECT_EQ(module(report, "flaky").tries, 3U);
}

TEST(AModule, IsNotTriedAgainForWhatNoRetryMends) {  // P13
  Pipeline pipeline("retries");
  pipeline.add("hopeless")
      .retry(3, milliseconds(1), [](const ModuleFailure& failure) { return failure.exit_code == 75; })
      .run([](Context& context) { context.shell("echo wrong input >&2; exit 2"); });
  const RunReport report = run(pipeline);
  EXPECT_EQ(report.outcome, RunOutcome::failed);
  const ModuleReport& hopeless = module(report, "hopeless");
  EXPECT_EQ(hopeless.tries, 1U);
  EXPECT_EQ(hopeless.failure,
            (ModuleFailure{FailureKind::exit_code, "sh exited with code 2", "wrong input\n", 2}));
}

TEST(AModule, IsTriedAgainForWhatIsSaidAtTheEndOfALongFailure) {  // P13
  const std::string reason = std::string(20 << 10, 'x') + ": try again";
  const auto may_pass = [](const ModuleFailure& failure) { return failure.message.ends_with("try again"); };
  Pipeline pipeline("retries");
  pipeline.add("flaky").retry(1, milliseconds(1), may_pass).run([&](Context&) {
    throw std::runtime_error(reason);
  });
  const RunReport report = run(pipeline);
  EXPECT_EQ(module(report, "flaky").tries, 2U);
  EXPECT_TRUE(module(report, "flaky").failure.message == reason) << "it is not cut either";
}

TEST(AModule, WhosePredicatesThrowHasFailedAndIsNotTriedAgain) {  // P13
  const auto throws = [](const ModuleFailure&) -> bool { throw std::logic_error("cannot say"); };
  Pipeline pipeline("retries");
  pipeline.add("odd").retry(3, milliseconds(1), throws).allow_failure_when(throws).run([](Context&) {
    throw std::runtime_error("wrong");
  });
  const RunReport report = run(pipeline);
  EXPECT_EQ(report.outcome, RunOutcome::failed);
  EXPECT_EQ(module(report, "odd").tries, 1U);
  EXPECT_EQ(module(report, "odd").failure.message, "wrong");
}

TEST(AModule, ThatIsSkippedInTheEndHasNotFailed) {  // P13
  Pipeline pipeline("retries");
  int calls = 0;
  pipeline.add("odd").retry(1, milliseconds(1)).run([&](Context& context) {
    if (++calls == 1) throw std::runtime_error("first");
    context.skip("second");
  });
  const RunReport report = run(pipeline);
  EXPECT_EQ(module(report, "odd").status, ModuleStatus::skipped);
  EXPECT_EQ(module(report, "odd").reason, "second");
  EXPECT_EQ(module(report, "odd").failure, ModuleFailure());
}

TEST(AModule, HasItsWholeTimeInEveryTry) {  // P13
  Pipeline pipeline("retries");
  std::atomic<int> calls = 0;
  pipeline.add("slow-at-first")
      .timeout(milliseconds(50))
      .retry(1, milliseconds(1))
      .run([&](Context& context) {
        if (++calls == 1) context.exec({"sleep", "100"});
        if (context.stop().stop_requested()) throw std::runtime_error("stopped before it began");
      });
  const RunReport report = run(pipeline);
  EXPECT_EQ(report.outcome, RunOutcome::succeeded);
  EXPECT_EQ(module(report, "slow-at-first").tries, 2U);
}

TEST(ACommand, IsKilledWithAllItStartedWhenTimeIsUp) {  // P13
  Pipeline pipeline("timeouts");
  pipeline.add("slow").timeout(milliseconds(50)).stop_grace(milliseconds(50)).run([](Context& context) {
    context.shell("trap '' TERM; sleep 100 & sleep 100; sleep 100");
  });
  const RunReport report = run(pipeline);
  EXPECT_EQ(module(report, "slow").status, ModuleStatus::timed_out);
  EXPECT_EQ(module(report, "slow").failure.message, "it took longer than 50 ms and was stopped");
  EXPECT_LT(report.took, seconds(20));
}

TEST(ACommand, ThatNeverFallsSilentIsStoppedWhenTimeIsUp) {  // P13
  class Slow : public RunObserver {
   public:
    // Slower than the command, so that there is always something more to read.
    void said(const LogLine&) override { std::this_thread::sleep_for(std::chrono::microseconds(20)); }
  } slow;
  Pipeline pipeline("timeouts");
  pipeline.add("loud").timeout(milliseconds(50)).run([](Context& context) {
    context.exec({"yes", "and another thing"});
  });
  const RunReport report = run(pipeline, {.observer = &slow});
  EXPECT_EQ(module(report, "loud").failure.message, "it took longer than 50 ms and was stopped");
}

TEST(AModule, ThatDoesNotListenIsNotWaitedForForEver) {  // P13 P17
  // Its thread is still at work when the run is over, so what it works with is never taken away.
  static std::atomic<bool> go_on = false;
  static std::atomic<bool> is_over = false;
  static auto& pipeline = *new Pipeline("deaf");
  pipeline.on_failure(OnFailure::finish);
  pipeline.add("deaf").timeout(milliseconds(1)).stop_grace(Duration{}).run([](Context& context) {
    go_on.wait(false);
    for (std::size_t i = 0; i < 2 * Inbox::kChatterMax; ++i) context.log("is anybody there?");
    is_over = true;
    is_over.notify_all();
  });
  pipeline.add("other").run(do_nothing);
  static const auto& graph = *new Graph(*Graph::of(pipeline.definition()));
  const RunReport report = run(graph, RunOptions{.jobs = 1});
  EXPECT_EQ(module(report, "deaf").failure.message,
            "it took longer than 1 ms and did not react to being asked to stop");
  EXPECT_EQ(module(report, "deaf").tries, 1U) << "it counts as never begun";
  EXPECT_EQ(module(report, "other").status, ModuleStatus::succeeded) << "its place is free again";
  go_on = true;
  go_on.notify_all();
  is_over.wait(false);
}

// Modules are asked to stop by the thread that takes in what they say.
TEST(ARun, IsNotHeldUpByWhatAModuleSaysWhenItIsAskedToStop) {  // P7
  class Patient : public RunObserver {
   public:
    void stopping(std::size_t) override {
      is_stopping.release();
      has_said_all.acquire();
    }
    void said(const LogLine& line) override { heard_farewell |= line.text == "farewell"; }
    std::binary_semaphore is_stopping{0}, has_said_all{0};
    bool heard_farewell = false;
  } observer;
  std::stop_source stop;
  Pipeline pipeline("talkative");
  pipeline.add("m").run([&](Context& context) {
    const std::stop_callback on_stop(context.stop(), [&] { context.log("farewell"); });
    stop.request_stop();
    observer.is_stopping.acquire();
    for (std::size_t i = 0; i < Inbox::kChatterMax; ++i) context.log("as much as there is room for");
    observer.has_said_all.release();
    context.exec({"sleep", "100"});
  });
  EXPECT_EQ(run(pipeline, {.jobs = 1, .stop = stop.get_token(), .observer = &observer}).outcome,
            RunOutcome::cancelled);
  EXPECT_TRUE(observer.heard_farewell);
}

TEST(ARun, ThatIsStoppedStillCleansUp) {  // P7
  std::stop_source stop;
  Pipeline pipeline("stopped");
  bool cleaned = false;
  auto slow = pipeline.add("slow").run([&](Context& context) {
    stop.request_stop();
    context.exec({"sleep", "100"});
  });
  auto later = pipeline.add("later", slow).run(do_nothing);
  pipeline.add("cleanup", settled(later)).always_run().run([&](Context&, const Outcome<None>& outcome) {
    cleaned = outcome.status == ModuleStatus::cancelled;
  });
  const RunReport report = run(pipeline, {.stop = stop.get_token()});
  EXPECT_EQ(report.outcome, RunOutcome::cancelled);
  EXPECT_EQ(module(report, "slow").status, ModuleStatus::cancelled);
  EXPECT_EQ(module(report, "cleanup").status, ModuleStatus::succeeded);
  EXPECT_TRUE(cleaned);
}

TEST(ACommand, IsNotBegunOnceItsModuleIsToStop) {  // P7
  std::stop_source stop;
  Pipeline pipeline("stopped");
  pipeline.add("m").run([&](Context& context) {
    std::binary_semaphore heard(0);
    const std::stop_callback on_stop(context.stop(), [&] { heard.release(); });
    stop.request_stop();
    heard.acquire();
    context.exec({"/no/such/program"});
  });
  const RunReport report = run(pipeline, {.stop = stop.get_token()});
  EXPECT_EQ(module(report, "m").failure.message, "/no/such/program was not begun");
}

TEST(Hooks, AreCalledAroundTheBody) {  // P13
  std::string calls;
  Pipeline pipeline("hooks");
  pipeline.on_failure(OnFailure::finish);
  const Hooks hooks{
      .before = [&](Context&) { calls += "before "; },
      .after = [&](Context&,
                   const Settlement& end) { calls += "after:" + std::string(word(end.status)) + " "; },
      .failed = [&](Context&, const Settlement&) { calls += "failed "; },
      .skipped = [&](Context&, const Settlement&) { calls += "skipped "; }};
  auto fine = pipeline.add("fine").hooks(hooks).run([&](Context&) { calls += "body "; });
  auto bad = pipeline.add("bad", fine).hooks(hooks).allow_failure().run([](Context&) {
    throw std::runtime_error("x");
  });
  auto left = pipeline.add("left", bad)
                  .hooks(hooks)
                  .skip_when([](Context&) { return std::optional<std::string>("why not"); })
                  .run(do_nothing);
  (void)left;
  const RunReport report = run(pipeline, {.jobs = 1});
  EXPECT_EQ(calls, "before body after:succeeded before failed after:ignored failure skipped ");
  EXPECT_EQ(module(report, "left").reason, "why not");
}

TEST(AModule, RunsIfOneOfItsConditionsHolds) {  // P13
  Pipeline pipeline("conditions");
  const auto yes = [](Context&) { return true; };
  const auto no = [](Context&) { return false; };
  pipeline.add("one").run_if_any({no, yes}, "neither").run(do_nothing);
  pipeline.add("none").run_if_any({no, no}, "neither").run(do_nothing);
  pipeline.add("unless").skip_unless(no, "it is not so").run(do_nothing);
  const RunReport report = run(pipeline);
  EXPECT_EQ(module(report, "one").status, ModuleStatus::succeeded);
  EXPECT_EQ(module(report, "none").reason, "neither");
  EXPECT_EQ(module(report, "unless").reason, "it is not so");
}

TEST(ABeforeHook, MaySkipTheModule) {  // P13
  Pipeline pipeline("hooks");
  bool ran = false;
  pipeline.add("m").hooks({.before = [](Context& context) { context.skip("not today"); }}).run([&](Context&) {
    ran = true;
  });
  const RunReport report = run(pipeline);
  EXPECT_EQ(module(report, "m").status, ModuleStatus::skipped);
  EXPECT_EQ(module(report, "m").reason, "not today");
  EXPECT_FALSE(ran);
}

class Listener : public RunObserver {
 public:
  void said(const LogLine& line) override { lines.push_back(line.module + ": " + line.text); }
  std::vector<std::string> lines;
};
TEST(WhatIsSaid, ReachesTheObserverInOrderAndWithoutSecrets) {  // P16
  Pipeline pipeline("secrets");
  pipeline.add("talk").needs_secret("TOKEN").run([](Context& context) {
    context.log("the token is " + context.secret("TOKEN"));
    context.shell("echo one; echo \"two $TOKEN\"; printf three",
                  {.environment = {{"TOKEN", context.secret("TOKEN")}}});
  });
  Listener listener;
  RunOptions options{.observer = &listener};
  options.site.secrets.add("TOKEN", "hunter22");
  EXPECT_EQ(run(pipeline, std::move(options)).outcome, RunOutcome::succeeded);
  EXPECT_THAT(listener.lines,
              ElementsAre("talk: the token is ***", "talk: one", "talk: two ***", "talk: three"));
}

TEST(ACommand, IsLookedForOnThePathThatItIsGiven) {  // P14
  Pipeline pipeline("paths");
  std::string said;
  pipeline.add("m").run([&](Context& context) {
    const std::string folder = context.temporary_directory();
    for (const char* name : {"baton-test-tool", "uname"}) {
      std::ofstream(folder + "/" + name) << "echo \"mine $1\"\n";  // a script that names no program
      ::chmod((folder + "/" + name).c_str(), 0700);
    }
    const CommandOptions with{.environment = {{"PATH", folder}}};
    for (const char* name : {"baton-test-tool", "uname"}) said += context.exec({name, name}, with).output;
    said += context.shell("uname again", with).output;  // the shell is found elsewhere
    context.exec({"baton-test-tool"});
  });
  const RunReport report = run(pipeline);
  EXPECT_EQ(said, "mine baton-test-tool\nmine uname\nmine again\n");
  // It is not on ours.
  EXPECT_THAT(module(report, "m").failure.message, HasSubstr("baton-test-tool"));
}

// Each piece that is read of it ends within the secret.
TEST(ASecret, IsMaskedWhereALongLineIsCut) {  // P16
  Pipeline pipeline("secrets");
  pipeline.add("talk").run([](Context& context) {
    std::string text(65533, 'x');
    for (int i = 0; i < 40'000; ++i) text += "hunter22";
    context.exec({"cat"}, {.input = text});
  });
  Listener listener;
  RunOptions options{.observer = &listener};
  options.site.secrets.add("TOKEN", "hunter22");
  EXPECT_EQ(run(pipeline, std::move(options)).outcome, RunOutcome::succeeded);
  EXPECT_GT(listener.lines.size(), 1U) << "it was not cut";
  for (const std::string& line : listener.lines)
    EXPECT_EQ(line.find_first_not_of("x*", std::string("talk: ").size()), std::string::npos)
        << line.substr(0, 20) << " … " << line.substr(line.size() - 20);
}

TEST(ASecret, IsMaskedWithOthersThatOverlapIt) {  // P16
  Secrets secrets;
  secrets.add("ONE", "hunter22");
  secrets.add("TWO", "r22-and-more");
  secrets.add("THREE", "nter");
  secrets.add("LINES", "windows\r\nbelow");
  EXPECT_EQ(secrets.mask("a hunter22-and-more, b"), "a ***, b");
  EXPECT_EQ(secrets.mask("enter hunter2"), "e*** hu***2");
  EXPECT_EQ(secrets.mask("windows are below"), "*** are ***");
}

// Wherever it is cut, one of the two goes on behind that.
TEST(ASecret, IsMaskedWithOthersWhereALongLineIsCut) {  // P16
  Pipeline pipeline("secrets");
  pipeline.add("talk").run([](Context& context) {
    for (std::size_t before = 0; before < std::string("hunter22-and-more").size(); ++before) {
      std::string text(before, 'x');
      for (int i = 0; i < 12'000; ++i) text += "hunter22-and-more";
      context.exec({"cat"}, {.input = text});
    }
  });
  Listener listener;
  RunOptions options{.observer = &listener};
  options.site.secrets.add("ONE", "hunter22");
  options.site.secrets.add("TWO", "r22-and-more");
  EXPECT_EQ(run(pipeline, std::move(options)).outcome, RunOutcome::succeeded);
  for (const std::string& line : listener.lines)
    EXPECT_EQ(line.find_first_not_of("x*", std::string("talk: ").size()), std::string::npos)
        << line.substr(0, 20) << " … " << line.substr(line.size() - 20);
}

TEST(ASecret, IsNotInTheEnvironmentOfModulesThatDoNotAskForIt) {  // P16
  ::setenv("BATON_TEST_SECRET", "hunter22", 1);
  Pipeline pipeline("secrets");
  const std::string count = "printf %s \"${BATON_TEST_SECRET:-}\" | wc -c | tr -d ' '";
  pipeline.add("nosy").run([=](Context& context) { context.shell(count); });
  pipeline.add("meant").needs_secret("BATON_TEST_SECRET").run([=](Context& context) {
    context.shell(count, {.environment = {{"BATON_TEST_SECRET", context.secret("BATON_TEST_SECRET")}}});
  });
  Listener listener;
  RunOptions options{.jobs = 1, .observer = &listener};
  options.site.secrets.add("BATON_TEST_SECRET", "hunter22");
  EXPECT_EQ(run(pipeline, std::move(options)).outcome, RunOutcome::succeeded);
  EXPECT_THAT(listener.lines, ::testing::UnorderedElementsAre("nosy: 0", "meant: 8"));
  ::unsetenv("BATON_TEST_SECRET");
}

TEST(ASecret, IsMaskedInWhateverIsToldOfAModule) {  // P16
  Pipeline pipeline("secrets");
  pipeline.on_failure(OnFailure::finish);
  pipeline.add("throws").run([](Context&) { throw std::runtime_error("no hunter22 here"); });
  pipeline.add("skips").run([](Context& context) { context.skip("not with hunter22"); });
  // Its last words are 4096 bytes, and begin in the middle of the secret.
  pipeline.add("fails").run(
      [](Context& context) { context.shell("printf hunter22 >&2; printf '%4092s' x >&2; exit 1"); });
  RunOptions options;
  options.site.secrets.add("TOKEN", "hunter22");
  const RunReport report = run(pipeline, std::move(options));
  EXPECT_EQ(module(report, "throws").failure.message, "no *** here");
  EXPECT_EQ(module(report, "skips").reason, "not with ***");
  EXPECT_THAT(module(report, "fails").failure.detail, Not(HasSubstr("er22")));
}

TEST(ASecret, HasToBeDeclaredAndKnown) {  // P14
  Pipeline pipeline("secrets");
  pipeline.on_failure(OnFailure::finish);
  pipeline.add("undeclared").run([](Context& context) { (void)context.secret("TOKEN"); });
  pipeline.add("unknown").needs_secret("TOKEN").run([](Context& context) { (void)context.secret("TOKEN"); });
  const RunReport report = run(pipeline);
  EXPECT_THAT(module(report, "undeclared").failure.message, HasSubstr("not one that the module declares"));
  EXPECT_THAT(module(report, "unknown").failure.message, HasSubstr("not known on master"));
}

TEST(Modules, RunAsManyAtATimeAsThereAreJobs) {
  Pipeline pipeline("parallel");
  std::barrier together(3);
  for (int i = 0; i < 3; ++i)
    pipeline.add("m" + std::to_string(i)).run([&](Context&) { together.arrive_and_wait(); });
  EXPECT_EQ(run(pipeline, {.jobs = 3}).outcome, RunOutcome::succeeded);
}

TEST(AModule, DoesNotWaitForAPlaceForEver) {  // P13
  Pipeline pipeline("queue");
  pipeline.on_failure(OnFailure::finish);
  pipeline.add("slow").exclusive("db").run([](Context& context) {
    context.shell("while [ ! -e \"$GO\" ]; do sleep 0.02; done",
                  {.environment = {{"GO", context.parameter("go").value()}}});
  });
  pipeline.add("late").exclusive("db").queue_timeout(milliseconds(10)).run(do_nothing);
  const std::string go = ::testing::TempDir() + "queue-timeout-" + std::to_string(::getpid());
  class Opener : public RunObserver {
   public:
    explicit Opener(std::string path) : path_(std::move(path)) {}
    void changed(const ModuleReport& report, const std::shared_ptr<const void>&) override {
      if (report.id == "late" && is_final(report.status)) std::fclose(std::fopen(path_.c_str(), "w"));
    }

   private:
    const std::string path_;
  } opener(go);
  RunOptions options{.jobs = 2, .observer = &opener};
  options.site.parameters["go"] = go;
  const RunReport report = run(pipeline, std::move(options));
  std::remove(go.c_str());
  EXPECT_EQ(module(report, "late").failure.message,
            "it has waited for longer than 10 ms, for lock 'db', which slow has");
  EXPECT_EQ(module(report, "slow").status, ModuleStatus::succeeded);
}

TEST(ACommand, NeedNotReadItsInput) {
  Pipeline pipeline("input");
  pipeline.add("m").run(
      [](Context& context) { context.exec({"true"}, {.input = std::string(std::size_t{1} << 20, 'x')}); });
  EXPECT_EQ(run(pipeline).outcome, RunOutcome::succeeded);
}

TEST(ACommand, SaysWhichFolderIsMissing) {
  Pipeline pipeline("folders");
  pipeline.add("m").run([](Context& context) { context.exec({"true"}, {.directory = "/nowhere"}); });
  EXPECT_THAT(module(run(pipeline), "m").failure.message, HasSubstr("the folder /nowhere"));
}

TEST(AResultFromBefore, ThatCannotBeReadFailsWhoeverNeedsIt) {  // P17
  Pipeline pipeline("again");
  auto build = pipeline.add("build").run([](Context&) { return 1; });
  pipeline.add("use", build).run([](Context&, int) {});
  const RunReport report =
      run(pipeline, {.restored = {{"build", {.value = {"\"text\"", {}}, .artifacts = {}}}}});
  EXPECT_EQ(module(report, "use").failure.kind, FailureKind::decode);
}

TEST(ARun, TakesWhatIsKnownFromBefore) {  // P17
  Pipeline pipeline("again");
  int calls = 0;
  auto build = pipeline.add("build").run([&](Context&) { return ++calls; });
  int seen = 0;
  pipeline.add("use", build).run([&](Context&, int value) { seen = value; });
  const RunReport report = run(pipeline, {.restored = {{"build", {.value = {"41", {}}, .artifacts = {}}}}});
  EXPECT_EQ(module(report, "build").status, ModuleStatus::restored);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(seen, 41);
}

}  // namespace
}  // namespace baton::pipeline
