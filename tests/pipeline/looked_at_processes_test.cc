// Commands that look at a pipeline file: what is wrong with it, and what would run.
#include <gmock/gmock.h>

#include "tests/pipeline/yard.h"

namespace baton::pipeline {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

crash::Ran look(const Yard& yard, const std::string& what, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"pipeline", what, yard.path() + "/pipeline.yaml"});
  return crash::run(yard.baton(std::move(more)));
}

// Each line of standard error without the path of the file.
std::vector<std::string> complaints(const Yard& yard, const crash::Ran& ran) {
  std::vector<std::string> all;
  std::istringstream errors(ran.errors);
  for (std::string line; std::getline(errors, line);)
    all.push_back(line.substr(line.find(yard.path()) == 0 ? yard.path().size() + 1 : 0));
  return all;
}

TEST(ProcessesThatLookAtAFile, TellAllThatIsWrongWithItAtOnce) {  // P8 P14
  const Yard yard(R"(version: 1
workers: [[linux], [linux, gpu]]
modules:
  a: { needs: [b], run: 'echo ${parms.x}' }
  b: { needs: [a], run: ls, caps: [docker] }
  c: { matrix: [linux, windows], run: ls, timeuot: 1s }
  d: { pin: master, caps: [docker], run: ls }
)");
  const crash::Ran ran = look(yard, "validate");
  EXPECT_EQ(ran.exit.code, 2);
  EXPECT_THAT(complaints(yard, ran),
              ElementsAre("pipeline.yaml:4:3: a: it needs itself in the end: a -> b -> a",
                          HasSubstr("pipeline.yaml:4:31: a: ${parms.x}"),
                          "pipeline.yaml:5:3: b: none of the workers has docker",
                          "pipeline.yaml:6:3: c[windows]: none of the workers has windows",
                          HasSubstr("pipeline.yaml:6:43: c: there is no key 'timeuot'")));
}

TEST(ProcessesThatLookAtAFile, TellNothingOfWhatIsLeftOut) {  // P8 P14
  const Yard yard("version: 1\nworkers: [[linux]]\nmodules: { a: { run: ls }, b: { caps: [gpu], run: ls } }");
  EXPECT_EQ(look(yard, "validate").exit.code, 2);
  EXPECT_EQ(look(yard, "validate", {"--module", "a"}).exit.code, 0);
  EXPECT_EQ(look(yard, "validate", {"--skip-module", "b"}).exit.code, 0);
}

// A name that is misspelt looks like one that another machine has.
TEST(ProcessesThatLookAtAFile, SayWhichVariablesAreNotSet) {  // P14
  const Yard yard(R"(version: 1
env: { ALL: "${env.BATON_TEST_TYPO}" }
modules:
  a: { run: "ls ${env.PATH} ${env.BATON_TEST_GIVEN:-}" }
  b: { run: "ls" }
  c: { if: "${env.BATON_TEST_ASKED} == 1", run: "ls" }
)");
  const auto is_said = ElementsAre(
      HasSubstr(
          "pipeline.yaml:2:14: a: ${env.BATON_TEST_TYPO} is not set here; where it is not, the module fails"),
      HasSubstr("pipeline.yaml:6:13: c: ${env.BATON_TEST_ASKED} is not set here"));
  const crash::Ran checked = look(yard, "validate");
  EXPECT_EQ(checked.exit.code, 0);
  EXPECT_THAT(complaints(yard, checked), is_said);
  EXPECT_THAT(complaints(yard, look(yard, "validate", {"--module", "b"})), ElementsAre(HasSubstr("TYPO")));
  const crash::Ran ran = crash::run(yard.run({}));
  EXPECT_EQ(ran.exit.code, 1);
  EXPECT_THAT(complaints(yard, ran), is_said);
}

TEST(ProcessesThatRunCommands, ShowWhatTheySayAsATerminalWould) {  // P16
  const Yard yard(R"(
version: 1
on_failure: continue
modules:
  a: { run: "printf ' 10 %%\\r100 %%\\r\\n\\033[31mred\\033[0m \\033[1'" }
  b: { cmd: [no-such-program] }
  c: { dir: nowhere, run: ls }
)");
  const crash::Ran ran = crash::run(yard.run({}));
  EXPECT_THAT(ran.lines, Contains("    | 100 %"));
  EXPECT_THAT(ran.lines, Contains("    | red "));
  EXPECT_THAT(ran.lines,
              Contains(HasSubstr(": the command could not be started: no-such-program: No such file")));
  EXPECT_THAT(ran.lines, Contains(HasSubstr(": the command could not be started: the folder ")));
}

TEST(ProcessesThatLookAtAFile, CutNothingWhereThereIsNoTerminal) {  // P16
  const std::string reason(200, 'x');
  const Yard yard("version: 1\nmodules: { a: { desc: " + reason + ", if: 'false && " + reason +
                  "', run: ls } }");
  EXPECT_THAT(look(yard, "plan").lines, Contains(HasSubstr(reason)));
  const crash::Ran ran = crash::run(yard.run({}));
  EXPECT_EQ(ran.exit.code, 0);
  EXPECT_THAT(ran.lines, Contains(::testing::AllOf(HasSubstr(" skipped  "), HasSubstr(reason))));
}

}  // namespace
}  // namespace baton::pipeline
