#include "pipeline/pipeline_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/carried.h"
#include "pipeline/execute.h"
#include "pipeline/expression.h"
#include "pipeline/file_module.h"
#include "pipeline/folder_blobs.h"
#include "pipeline/graph.h"
#include "pipeline/run.h"
#include "tests/temporary_directory.h"

namespace baton::pipeline {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> problems(const std::string& text,
                                  const std::map<std::string, std::string>& given = {}) {
  std::vector<std::string> all;
  const auto file = PipelineFile::parse(text, "ci.yaml", given);
  if (file) return all;
  for (const Problem& problem : file.error()) all.push_back(describe(problem));
  return all;
}

struct Ran {
  RunReport report;
  std::vector<std::string> said;
};
class Listener : public RunObserver {
 public:
  explicit Listener(std::vector<std::string>& said) : said_(said) {}
  void said(const LogLine& line) override { said_.push_back(line.module + ": " + line.text); }

 private:
  std::vector<std::string>& said_;
};
Ran run_file(const std::string& text, RunOptions options = {}) {
  auto file = PipelineFile::parse(text, "ci.yaml");
  if (!file) throw std::logic_error(describe(file.error().front()));
  Ran ran;
  Listener listener(ran.said);
  options.observer = &listener;
  options.site.parameters = file->values;
  options.site.capabilities = {"linux"};
  ran.report = run(*Graph::of(file->definition), std::move(options));
  return ran;
}

TEST(APipelineFile, RunsItsCommandsAndHandsOnTheirOutputs) {  // P14
  const Ran ran = run_file(R"(
version: 1
name: release
params: { config: { default: Release, choices: [Debug, Release] } }
vars: { greeting: hello }
env: { WHO: world }
modules:
  build:
    run: |
      echo "config ${params.config} for $WHO in $BATON_MODULE"
      echo "version=1.4" >> "$BATON_OUTPUT"
    outputs: [version]
  test:
    needs: [build]
    matrix: { os: [linux], cc: [gcc, clang], exclude: [{ cc: clang, os: linux }], include: [{ os: linux, cc: tcc }], caps: ["{os}"] }
    run: echo "${vars.greeting} ${matrix.cc} ${needs.build.outputs.version} $BATON_NEEDS_BUILD_VERSION $BATON_MATRIX_OS ${HOME:+home}"
  words: { needs: build, cmd: [printf, "%s|", "a b", "${params.config}"] }
  never: { needs: [build], if: '${params.config} == "Debug"', run: exit 1 }
  after: { needs: [{ id: never, optional: true }], skip_if: success(never), steps: [{ name: one, run: echo 1 }, { run: echo 2 }] }
)",
                           {.jobs = 1});
  EXPECT_EQ(ran.report.outcome, RunOutcome::succeeded);
  EXPECT_THAT(ran.said, Contains("build: config Release for world in build"));
  EXPECT_THAT(ran.said, Contains("test[linux,gcc]: hello gcc 1.4 1.4 linux home"));
  EXPECT_THAT(ran.said, Contains("test[linux,tcc]: hello tcc 1.4 1.4 linux home"));
  EXPECT_THAT(ran.said, Contains("words: a b|Release|"));
  EXPECT_THAT(ran.said, Contains("after: -- one"));
  EXPECT_THAT(ran.said, Contains("after: 2"));
  for (const ModuleReport& module : ran.report.modules) {
    if (module.id == "never") {
      EXPECT_THAT(module.reason, HasSubstr("does not hold"));
    }
  }
}

TEST(APipelineFile, TellsEverythingThatIsWrongWithItsPlace) {  // P14
  EXPECT_THAT(
      problems(R"(version: 1
naem: release
params: { config: { choices: [Debug, Release] } }
secrets: [TOKEN]
modules:
  build:
    run: make ${parms.config} ${params.confg} ${SHELL_KNOWS} ${needs.test.outputs.x}
    timeout: 30
    retry: { max: 2, on: [sometimes] }
  test:
    needs: [biuld]
    runs: make test
    always: yes
    priority: urgent
  deploy:
    cmd: make
    secrets: [TOKEM]
    if: '${params.config} == '
)"),
      ElementsAre(
          "ci.yaml:2:1: there is no key 'naem' here (did you mean 'name'?)",
          "ci.yaml:3:11: parameter 'config' has to be given: --param config=…",
          "ci.yaml:7:15: build: ${parms.config}: there is no 'parms' (did you mean 'params'?)",
          "ci.yaml:7:31: build: ${params.confg} is not known (did you mean 'config'?)",
          "ci.yaml:7:62: build: ${needs.test.outputs.x}: the module does not need 'test'",
          "ci.yaml:8:14: build: timeout has to be a time with its unit, as 30s, 5m or 1h30m",
          "ci.yaml:9:26: build: retries are on any, timeout, lost or exit:CODE, from 1 to 255, and "
          "'sometimes' is none of "
          "these",
          "ci.yaml:11:5: test: it needs one of `run` (a script), `cmd` (a list of words) and `steps`",
          "ci.yaml:11:13: test: it needs 'biuld', which does not exist (did you mean 'build'?)",
          "ci.yaml:12:5: test: there is no key 'runs' here (did you mean 'run'?)",
          "ci.yaml:13:13: test: always has to be true or false",
          "ci.yaml:14:15: test: priority has to be one of low, normal, high, critical",
          "ci.yaml:16:10: deploy: cmd has to be a list: the program and its arguments",
          "ci.yaml:17:15: deploy: secret 'TOKEM' is not among `secrets` at the top (did you mean 'TOKEN'?)",
          "ci.yaml:18:9: deploy: '${params.config} == ': something is missing at the end"));
}

TEST(APipelineFile, KeepsSecretsOutOfCommands) {  // P14
  EXPECT_THAT(
      problems(R"(version: 1
secrets: [TOKEN]
env: { COPY: "${env.TOKEN}" }
modules:
  upload: { secrets: [TOKEN], if: "${env.TOKEN} != ''", cmd: [upload, "${env.TOKEN}"] }
)"),
      ElementsAre(HasSubstr("upload: ${env.TOKEN} is a secret"), HasSubstr("${env.TOKEN} is a secret")));
}

TEST(AVariable, IsThereOrHasADefault) {  // P14
  ::setenv("BATON_TEST_SET", "set", 1);
  ::setenv("BATON_TEST_EMPTY", "", 1);
  const Ran ran = run_file(R"(
version: 1
on_failure: continue
modules:
  set: { run: "echo ${env.BATON_TEST_SET}${env.BATON_TEST_SET:-no}, ${env.BATON_TEST_EMPTY}${env.BATON_TEST_EMPTY:-empty}" }
  otherwise: { cmd: [echo, "${env.BATON_TEST_TYPO:-a default}${env.BATON_TEST_TYPO:-}"] }
  typo: { env: { X: "${env.BATON_TEST_TYPO}" }, run: ls }
  asks: { if: "${env.BATON_TEST_TYPO} == '' && ${env.BATON_TEST_TYPO:-x} == x", run: echo asked }
)");
  EXPECT_THAT(ran.said,
              ::testing::UnorderedElementsAre("set: setset, empty", "otherwise: a default", "asks: asked"));
  EXPECT_EQ(ran.report.modules[2].failure.message,
            "${env.BATON_TEST_TYPO} is not set on master: set it there, or give a default: "
            "${env.BATON_TEST_TYPO:-…}");
  ::unsetenv("BATON_TEST_SET");
  ::unsetenv("BATON_TEST_EMPTY");
}

TEST(AVariable, AloneMayHaveADefault) {  // P14
  EXPECT_THAT(problems(R"(version: 1
params: { x: 1 }
modules:
  a: { run: "echo ${params.x:-2} ${env.HOME:-${params.x}}" }
)"),
              ElementsAre("ci.yaml:4:19: a: ${params.x:-2}: only variables may have a default here, as "
                          "${env.NAME:-default}",
                          "ci.yaml:4:34: a: ${env.HOME:-${params.x}: a default is plain text"));
}

TEST(AVariable, ThatHasNoDefaultIsNotedWithItsPlace) {  // P14
  const auto file = PipelineFile::parse(R"(version: 1
modules:
  a: { if: "${env.ASKED} == 1", run: "echo ${env.NEEDED} ${env.GIVEN:-}" }
)",
                                        "ci.yaml");
  ASSERT_TRUE(file);
  std::vector<std::string> all;
  for (const AskedVariable& one : file->variables) all.push_back(one.name + " " + describe(one.if_unset));
  EXPECT_THAT(
      all, ElementsAre("NEEDED ci.yaml:3:44: a: ${env.NEEDED} is not set here; where it is not, the module "
                       "fails, unless a default is given: ${env.NEEDED:-…}",
                       "ASKED ci.yaml:3:13: a: ${env.ASKED} is not set here; where it is not, it counts as "
                       "empty, unless a default is given: ${env.ASKED:-…}"));
}

TEST(APipelineFile, RefusesWhatSurprises) {  // P14
  EXPECT_THAT(problems("version: 1\nmodules:\n  a: &x { run: ls }\n  b: *x\n"),
              Contains(HasSubstr("an anchor")));
  EXPECT_THAT(problems("version: 1\nversion: 1\nmodules: { a: { run: ls } }\n"),
              ElementsAre("ci.yaml:2:1: 'version' is there twice"));
  EXPECT_THAT(problems("version: 1\nmodules: { a: { run: !!str ls } }\n"), ElementsAre(HasSubstr("a tag")));
  EXPECT_THAT(problems("version: 2\nmodules: { a: { run: ls } }\n"),
              ElementsAre("ci.yaml:1:10: version has to be 1"));
  EXPECT_THAT(problems("modules: { a: { run: ls } }\n"), ElementsAre(HasSubstr("`version: 1` is missing")));
  EXPECT_THAT(problems("version: 1\nmodules:\n\ta: 1\n"),
              ElementsAre(AllOf(HasSubstr("ci.yaml:3:"), HasSubstr("this line is indented with a tab"))));
  EXPECT_THAT(problems("version: 1\nmodules:\n  a: b: c\n"), ElementsAre(Not(HasSubstr("tab"))));
  EXPECT_THAT(problems("version: 1\n---\nversion: 1\n"), Contains(HasSubstr("a second document")));
  EXPECT_THAT(problems("version: 1\nmodules: {}\n"), ElementsAre("there are no modules"));
  EXPECT_THAT(problems("version: 1\nmodules: { a: { run: ls } }", {{"x", "1"}}),
              ElementsAre("--param x: there is no such parameter"));
  EXPECT_THAT(
      problems("version: 1\nparams: { x: { default: a, choices: [a, b] } }\nmodules: { a: { run: ls } }",
               {{"x", "c"}}),
      ElementsAre("--param x: parameter 'x' is one of a, b, and 'c' is not"));
}

TEST(APipelineFile, PassesNothingOverInSilence) {  // P14
  const auto of_module = [](const std::string& keys) {
    return problems(
        "version: 1\nmodules:\n  b: { run: ls, outputs: [version], matrix: [linux] }\n"
        "  c: { run: ls, outputs: [version] }\n  a: " +
        keys + "\n");
  };
  EXPECT_THAT(of_module("{ run: ls, needs: { id: d } }"), ElementsAre(HasSubstr("it needs 'd'")));
  EXPECT_THAT(of_module("{ run: ls, needs: { id: b } }"), ElementsAre());
  EXPECT_THAT(of_module("{ steps: make }"), ElementsAre(HasSubstr("steps has to be a list")));
  EXPECT_THAT(of_module("{ steps: [] }"), ElementsAre(HasSubstr("steps has to be a list")));
  EXPECT_THAT(of_module("{ run: [] }"), ElementsAre(HasSubstr("run is empty")));
  EXPECT_THAT(of_module("{ run: '' }"), ElementsAre(HasSubstr("run is empty")));
  EXPECT_THAT(of_module("{ run: ls, produces: [x] }"), ElementsAre(HasSubstr("produces has to be a map")));
  EXPECT_THAT(of_module("{ run: ls, consumes: [x] }"), ElementsAre(HasSubstr("consumes has to be a map")));
  EXPECT_THAT(of_module("{ run: ls, outputs: { v: int } }"),
              ElementsAre(HasSubstr("outputs has to be text, and this is a map")));
  EXPECT_THAT(of_module("{ needs: c, run: 'echo ${needs.c.outputs.verison}' }"),
              ElementsAre(HasSubstr("c does not declare it under `outputs` (did you mean 'version'?)")));
  EXPECT_THAT(of_module("{ needs: b, run: 'echo ${needs.b.status}' }"),
              ElementsAre(HasSubstr("b is a matrix, so say which of it: b[TARGET]")));
  EXPECT_THAT(of_module("{ needs: b, run: 'echo ${needs.b[linux].outputs.version}' }"), ElementsAre());
  EXPECT_THAT(problems("version: 1\nparams: [x]\nmodules: { a: { run: ls } }\n"),
              ElementsAre("ci.yaml:2:9: params has to be a map, and this is a list"));
  EXPECT_THAT(
      problems("version: 1\ndefaults: { timeuot: 5m }\nmodules: { a: { run: ls }, b: { run: ls } }\n"),
      ElementsAre("ci.yaml:2:13: there is no key 'timeuot' here (did you mean 'timeout'?)"));
}

TEST(APipelineFile, TakesWhatModulesHaveInCommonFromDefaults) {  // P14
  const auto file = PipelineFile::parse(
      "version: 1\ndefaults: { timeout: 5m, caps: [linux] }\nmodules:\n  a: { run: ls }\n  b: { run: ls, "
      "timeout: 1h }\n",
      "ci.yaml");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->definition.modules[0].timeout, minutes(5));
  EXPECT_EQ(file->definition.modules[1].timeout, hours(1));
  EXPECT_THAT(file->definition.modules[1].capabilities, ElementsAre("linux"));
}

TEST(AnOutput, HasToBeDeclaredAndWritten) {  // P14
  const Ran ran = run_file(R"(
version: 1
on_failure: continue
modules:
  forgets: { run: "true", outputs: [version] }
  invents: { run: 'echo other=1 >> "$BATON_OUTPUT"' }
)");
  EXPECT_EQ(ran.report.modules[0].failure.message,
            "output 'version' is declared, and was not written to $BATON_OUTPUT");
  EXPECT_EQ(ran.report.modules[1].failure.message,
            "output 'other' was written and is not declared under `outputs`");
}

TEST(AnExitCode, IsANumber) {  // P14
  for (const char* code : {"x", "300", "0", "-1"}) {
    const auto file = PipelineFile::parse(
        std::string("version: 1\nmodules: { a: { run: ls, allow_failure: [") + code + "] } }", "p.yaml", {});
    ASSERT_FALSE(file) << code;
    EXPECT_THAT(describe(file.error().front()), HasSubstr("is no exit code from 1 to 255"));
  }
}

TEST(AnExitCode, MayBeAllowedOrTriedAgain) {  // P14
  const Ran ran = run_file(R"(
version: 1
on_failure: continue
modules:
  soft: { run: exit 75, allow_failure: [75] }
  hard: { run: exit 76, allow_failure: [75] }
  again: { run: exit 3, retry: { max: 2, delay: 1ms, on: ["exit:03"] } }
  once: { run: exit 4, retry: { max: 2, delay: 1ms, on: ["exit:3"] } }
  late: { run: sleep 100, timeout: 20ms, stop_grace: 10ms, retry: { max: 2, delay: 1ms, on: [timeout] } }
)");
  EXPECT_EQ(ran.report.modules[0].status, ModuleStatus::ignored_failure);
  EXPECT_EQ(ran.report.modules[1].status, ModuleStatus::failed);
  EXPECT_EQ(ran.report.modules[2].tries, 3U);
  EXPECT_EQ(ran.report.modules[3].tries, 1U);
  EXPECT_EQ(ran.report.modules[4].tries, 3U);
  EXPECT_EQ(ran.report.modules[4].status, ModuleStatus::timed_out);
}

// What is looked for before its result is taken from an earlier run. Nothing: it never is.
std::optional<std::vector<std::string>> looked_for(const std::string& condition) {
  const auto file = PipelineFile::parse(
      "version: 1\nparams: { out: { default: build } }\nmodules:\n  a: { run: ls }\n  b: { needs: [a], "
      "inputs: "
      "[x], matrix: { os: [linux] }, run: ls, if: \"" +
          condition + "\" }\n",
      "ci.yaml");
  if (!file) throw std::logic_error(describe(file.error().front()));
  const CacheInputs& cache = file->definition.modules[1].cache;
  return cache.empty() ? std::nullopt : std::optional(cache.existence);
}
TEST(ACondition, IsPartOfWhatACachedResultDependsOn) {  // P14 P15
  EXPECT_THAT(*looked_for("exists(${params.out}/my file)"), ElementsAre("build/my file"));
  EXPECT_THAT(*looked_for("exists('${matrix.os}') || ${needs.a.status} == failed"),
              ElementsAre("${matrix.os}"));
  EXPECT_FALSE(looked_for("exists(${needs.a.status})")) << "what it asks for is known too late";
}

TEST(ACondition, IsAskedOnceHoweverOftenItsModuleIsTried) {  // P13 P14
  const TemporaryDirectory folder;
  RunOptions options;
  options.site.directory = folder.path();
  const Ran ran = run_file(R"(
version: 1
modules:
  m: { skip_if: exists(made), retry: { max: 2, delay: 1ms }, run: "touch made && false" }
)",
                           std::move(options));
  EXPECT_EQ(ran.report.outcome, RunOutcome::failed);
  EXPECT_EQ(ran.report.modules[0].status, ModuleStatus::failed);
  EXPECT_EQ(ran.report.modules[0].tries, 3U);
}

TEST(ACondition, IsAskedBeforeArtifactsAreFetched) {  // P14 P15
  const TemporaryDirectory folder;
  TemporaryBlobs blobs;
  RunOptions options;
  options.site.directory = folder.path();
  options.site.blobs = &blobs;
  const Ran ran = run_file(R"(
version: 1
modules:
  build: { run: exit 1, allow_failure: true, produces: { bin: [app] } }
  test: { needs: [build], if: success(build), consumes: { build/bin: x }, run: ls }
)",
                           std::move(options));
  EXPECT_EQ(ran.report.outcome, RunOutcome::succeeded);
  EXPECT_EQ(ran.report.modules[1].status, ModuleStatus::skipped) << ran.report.modules[1].failure.message;
}

class FarBlobs : public TemporaryBlobs {
 public:
  Status pour(const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) override {
    ++fetched;
    return TemporaryBlobs::pour(blob, into, stop);
  }
  int fetched = 0;
};
class AlwaysWanted : public Supervisor {
 public:
  std::stop_token next_try(Duration) override { return {}; }
  bool is_late() override { return false; }
};
// What a module with this condition comes to, on a machine that has not fetched what it needs, and how often
// that was fetched.
std::pair<ModuleStatus, int> executed_elsewhere(const std::string& condition) {
  const auto file = PipelineFile::parse(
      "version: 1\nmodules:\n  a: { run: ls, outputs: [x] }\n  b: { needs: [a], run: ls, if: \"" + condition +
          "\" }\n",
      "ci.yaml");
  if (!file) throw std::logic_error(describe(file.error().front()));
  const Graph graph = *Graph::of(file->definition);
  FarBlobs blobs;
  const CommandOutputs outputs{.outputs = {{"x", std::string(kInlineBytesMax, 'x')}}, .secrets = {}};
  const ResultType type = result_type<CommandOutputs>();
  const auto carried = carry(type, &outputs, &blobs, {});
  Site site;
  site.blobs = &blobs;
  ModuleOrder order{.node = &graph[1]};
  order.inputs = {{{.module = "a", .status = ModuleStatus::succeeded}}};
  order.large = {{.type = &type, .blob = *carried->blob}};
  AlwaysWanted supervisor;
  const ModuleResult result = execute(site, order, supervisor);
  return {result.status, blobs.fetched};
}
TEST(ACondition, FetchesLargeResultsOnlyToLookAtThem) {  // P12 P14
  EXPECT_EQ(executed_elsewhere("failed(a)"), std::pair(ModuleStatus::skipped, 0));
  EXPECT_EQ(executed_elsewhere("${needs.a.status} == failed"), std::pair(ModuleStatus::skipped, 0));
  EXPECT_EQ(executed_elsewhere("${needs.a.outputs.x} == y"), std::pair(ModuleStatus::skipped, 1));
  EXPECT_EQ(executed_elsewhere("success(a) && ${needs.a.outputs.x} != y"),
            std::pair(ModuleStatus::succeeded, 1));
}

Result<bool> holds(const std::string& condition) {
  return evaluate(
      condition, [](const Reference& reference) -> Result<std::string> { return reference.rest; },
      [](const Asked& asked) -> Result<bool> {
        return asked.argument == "yes" || asked.argument == "a b/(yes)";
      });
}
TEST(ACondition, IsReadAsItLooks) {  // P14
  EXPECT_TRUE(*holds("${params.a} == a && !(${params.b} == 'a') || false"));
  EXPECT_TRUE(*holds("success(yes) && !failed(no)"));
  EXPECT_TRUE(*holds("${env.x} != \"y\""));
  EXPECT_TRUE(*holds("'${params.a}-${params.b}' == \"a-b\"")) << "also where it is quoted";
  EXPECT_TRUE(*holds("exists(${params.yes}) && exists( '${vars.yes}' ) && success( \"yes\" )"));
  EXPECT_TRUE(*holds("exists('${vars.a} b/(yes)')")) << "a path may have anything in it";
  EXPECT_TRUE(*holds("success(y es) && !exists(y es) && !exists(a b)"));
  EXPECT_FALSE(*holds("false || 0"));
  EXPECT_FALSE(*holds("!${env.x}"));
  EXPECT_EQ(holds("a ==").error().message, "something is missing at the end");
  EXPECT_EQ(holds("(a").error().message, "a ) is missing");
  EXPECT_EQ(holds("a b").error().message, "'b' is too much");
  EXPECT_EQ(holds("a = b").error().message, "'= b' is too much: values are compared with ==");
  EXPECT_EQ(holds("succes(a)").error().message, "there is no succes() (did you mean 'success'?)");
  EXPECT_EQ(holds("exists(a").error().message, "a ) is missing behind exists(");
  EXPECT_EQ(holds("exists('a' b)").error().message, "a ) is missing behind exists(");
  EXPECT_EQ(holds("'a").error().message, "a quotation mark is missing");
  EXPECT_EQ(holds("a ; b").error().message, "'; b' is too much");
  EXPECT_EQ(holds(std::string(100, '!') + "a").error().message, "too deep");
}

}  // namespace
}  // namespace baton::pipeline
