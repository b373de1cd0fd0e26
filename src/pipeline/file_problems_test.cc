// What is said of a pipeline file that makes no sense: all of it at once, each where it is, and nothing that
// only follows from something else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/pipeline_file.h"

namespace baton::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> problems(const std::string& text) {
  std::vector<std::string> all;
  for (const Problem& problem : PipelineFile::read(text, "ci.yaml").problems)
    all.push_back(describe(problem));
  return all;
}

TEST(AFileThatMakesNoSense, IsToldAllOfThatAtOnce) {  // P14
  EXPECT_THAT(problems(R"(version: 1
version: 1
pools: { emulator: 2 }
modules:
  a: { needs: [c], run: ls, timeuot: 5m }
  b: { needs: [a, b], run: ls }
  c: { needs: [b, b], run: ls, pool: emulatro }
  d: { needs: [nowhere], run: 'echo ${params.x}', consumes: { a/bin: }, weight: 0 }
  e: { run: ls, pool: emulator, weight: 3, queue_timeout: 40d }
)"),
              ElementsAre("ci.yaml:2:1: 'version' is there twice",
                          "ci.yaml:5:3: a: it needs itself in the end: a -> c -> b -> a",
                          "ci.yaml:5:29: a: there is no key 'timeuot' here (did you mean 'timeout'?)",
                          "ci.yaml:6:19: b: it needs itself",
                          "ci.yaml:7:3: c: there is no pool 'emulatro' (did you mean 'emulator'?)",
                          "ci.yaml:7:19: c: it needs 'b' twice",
                          "ci.yaml:8:16: d: it needs 'nowhere', which does not exist",
                          "ci.yaml:8:37: d: ${params.x} is not known",
                          "ci.yaml:8:63: d: it consumes 'bin' of 'a', which produces no such artifact",
                          "ci.yaml:8:81: d: weight has to be a number from 1 to 1000000",
                          "ci.yaml:9:3: e: it takes 3 places in pool 'emulator', which has 2",
                          "ci.yaml:9:3: e: a queue timeout is 0 to 30 days"));
}

TEST(AFileThatMakesNoSense, IsToldNothingThatOnlyFollowsFromIt) {  // P14
  const std::string good = "  good: { run: ls, outputs: [x], produces: { bin: y } }\n";
  for (const std::string& text : std::vector<std::string>{
           "modules:\n  a: make\n  b: { needs: [a], consumes: { a/bin: }, run: 'echo ${needs.a.outputs.x}' "
           "}\n",
           "modules:\n" + good +
               "  b: { needs: [godo], run: 'echo ${needs.good.outputs.x} ${needs.godo.status}' }\n",
           "modules:\n" + good +
               "  b: { needs: [godo], skip_if: failed(good), consumes: { good/bin: }, run: ls }\n",
           "params: [x]\nmodules: { a: { run: 'echo ${params.x}' } }\n",
           "params: { x: { default: [1] } }\nmodules: { a: { run: 'echo ${params.x}' } }\n",
           "vars: { x: [1] }\nmodules: { a: { run: 'echo ${vars.x}' } }\n",
           "pools: [x]\nmodules: { a: { pool: x, run: ls } }\n",
           "pools: { x: many }\nmodules: { a: { pool: x, weight: 7, run: ls } }\n",
           "secrets: { x: y }\nmodules: { a: { secrets: [x], run: ls } }\n",
           "secrets: [x]\nmodules: { a: { secrets: { x: y }, run: ls } }\n",
           "secrets: [x]\nmodules: { a: { secrets: [y], run: ls } }\n",
           "modules:\n  a: { matrix: linux, run: 'echo ${matrix.target}' }\n  b: { needs: a, run: 'echo "
           "${needs.a[linux].status}' }\n",
           "modules: { a: { matrix: { os: [[x]] }, run: 'echo ${matrix.os}' } }\n",
           "defaults: { matrix: { os: [a], exclude: { os: a } } }\nmodules: { a: { run: ls }, b: { run: ls } "
           "}\n",
           "modules:\n  a: { run: ls, outputs: { x: y } }\n  b: { needs: a, run: 'echo ${needs.a.outputs.x}' "
           "}\n",
           "modules:\n  a: { run: ls, produces: [x] }\n  b: { needs: a, consumes: { a/x: }, run: ls }\n",
           "modules: { a: { steps: [make] } }\n",
           "modules: { a: { matrix: { os: [a, b], exclude: [{ os: [a] }] }, run: ls } }\n",
           "modules: { a: { matrix: { os: [a, b], include: [{ os: [c] }] }, run: ls } }\n",
           "modules: { a: { matrix: { os: [a, b], exclude: [a] }, run: ls } }\n",
           "modules:\n  a: { run: ls, produces: { x: y } }\n  b: { needs: a, consumes: { a/x: [y] }, run: ls "
           "}\n",
           "modules: { a: { run: ls, retry: { on: ['exit:7x'] } } }\n",
           "modules: { a: { run: ls, retry: { on: ['exit:999'] } } }\n",
           "modules: { a: { cmd: [[make]] } }\n",
           "modules: { a: { needs: [{ optional: true }], run: ls } }\n",
           "env: { X: '${vras.x}' }\nmodules: { a: { run: ls }, b: { run: ls } }\n",
       }) {
    const auto said = problems("version: 1\n" + text);
    EXPECT_EQ(said.size(), 1U) << text << ::testing::PrintToString(said);
  }
}

TEST(AQuoteThatIsNotClosed, IsToldWhereItBegins) {  // P14
  const std::string top = "version: 1\n";
  for (const auto& [text, where] : std::vector<std::pair<std::string, std::string>>{
           {"name: \"ci\n", "2:7"},
           {"\"modules:\n  a: { run: ls }\n", "2:1"},
           {"modules: { a: { run: 'ls } }\n", "2:22"},
           {"modules:\n  a:\n    run: 'it''s\n  b:\n    run: ls\n", "4:10"},
           {"modules:\n  a: { run: ls }\n  b: { run: \"a \\\" b }\n", "4:13"},
           {"modules: { ä: { run: 'ä } }\n", "2:23"},
           {"env:\n  A: ! 'x\nmodules:\n  a: { run: ls }\n", "3:6"},
           {"modules:\n  a:\n    run: !\n      \"ls\n  b:\n    run: ls\n", "4:10"},
       })
    EXPECT_THAT(problems(top + text), ElementsAre("ci.yaml:" + where + ": this quote is not closed")) << text;
  EXPECT_THAT(problems("\xef\xbb\xbf" + top + "modules: { 'a': { run: \"it's \\\"\" } }\n"), ElementsAre());
  EXPECT_THAT(problems(top + "modules: { a: { run: ! 'it''s' }, b: { run: ! it's } }\n"), ElementsAre());
  std::string wide = "\xff\xfe";  // UTF-16, in which nothing is where it would be in UTF-8
  for (const char one : "# it's so\n" + top + "name: x\nmodules: { a: { run: ls } }\n") wide += {one, '\0'};
  EXPECT_THAT(problems(wide), ElementsAre());
}

// Neither is it made first, for which there may not be memory, nor is each target looked at.
TEST(AMatrixThatIsFarTooLarge, IsToldSoAtOnce) {  // P9 P14
  const auto numbers = [](int count) {
    std::string list;
    for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + std::to_string(i);
    return "[" + list + "]";
  };
  const std::string top = "version: 1\nmodules:\n  a: { run: ls, matrix: ";
  EXPECT_THAT(problems(top + numbers(140'000) + " }\n"),
              ElementsAre("ci.yaml:3:3: a: a matrix of 140000 targets; the limit is 256"));
  EXPECT_THAT(problems(top + "{ x: " + numbers(200) + ", y: " + numbers(140'000) + " } }\n"),
              ElementsAre("ci.yaml:3:25: a: a matrix of more than 256 targets"));
}

TEST(AReference, IsComplainedOfWhereItStands) {  // P14
  EXPECT_THAT(problems(R"(version: 1
env: { WHO: "some ${vars.who}" }
vars: { where: here }
modules:
  block:
    run: |
      echo ${vars.where}

      echo ${vars.wehre} ${vars.where} ${vars.wehre}
  words: { cmd: [echo, "a\tb ${matrix.os}", '${run.name}'] }
  steps:
    steps:
      - run: echo one
      - { name: two, run: "echo ${env.}" }
  condition:
    needs: [block]
    if: success(words) && ${params.x} == 'y'
    skip_if: "exists(${params.w}) || '${params.z}' == ''"
    produces: { bin: [out, "out/${params.config}"] }
    dir: >-
      folded
      ${vars.wehre}
    run: ls
)"),
              ElementsAre(StartsWith("ci.yaml:2:19: block: ${vars.who} is not known"),
                          StartsWith("ci.yaml:9:12: block: ${vars.wehre}"),
                          StartsWith("ci.yaml:9:40: block: ${vars.wehre}"),
                          StartsWith("ci.yaml:10:30: words: ${matrix.os} is not known"),
                          StartsWith("ci.yaml:10:46: words: ${run.name} is not known"),
                          StartsWith("ci.yaml:14:33: steps: ${env.}: a name is missing behind the dot"),
                          StartsWith("ci.yaml:17:17: condition: success(words): the module does not need"),
                          StartsWith("ci.yaml:17:27: condition: ${params.x} is not known"),
                          StartsWith("ci.yaml:18:22: condition: ${params.w} is not known"),
                          StartsWith("ci.yaml:18:39: condition: ${params.z} is not known"),
                          StartsWith("ci.yaml:19:33: condition: ${params.config} is not known"),
                          StartsWith("ci.yaml:22:7: condition: ${vars.wehre} is not known")));
}

TEST(AReference, NamesATargetThatThereIs) {  // P9 P14
  const auto of = [](const std::string& script) {
    return problems(
        "version: 1\nmodules:\n  test: { matrix: [linux, windows], run: ls }\n  plain: { run: ls }\n"
        "  a: { needs: [test, plain], run: 'echo " +
        script + "' }\n");
  };
  EXPECT_THAT(of("${needs.test[linux].status}"), ElementsAre());
  EXPECT_THAT(of("${needs.test[linxu].status}"),
              ElementsAre(HasSubstr("'test' has no target 'linxu' (did you mean 'linux'?)")));
  EXPECT_THAT(of("${needs.plain[linux].status}"), ElementsAre(HasSubstr("'plain' has no target 'linux'")));
}

TEST(APathOfAnArtifact, DiffersByTargetAlone) {  // P14 P15
  EXPECT_THAT(
      problems("version: 1\nparams: { x: y }\nmodules:\n  a: { matrix: [linux], run: ls, produces: { r: "
               "['${matrix.target}', '${params.x}'] } }\n"),
      ElementsAre("ci.yaml:4:71: a: ${params.x}: a path of an artifact may have ${matrix.AXIS} in it alone"));
}

TEST(AnInput, HasNothingInItThatWouldNotBeReplaced) {  // P14 P15
  EXPECT_THAT(
      problems(
          "version: 1\nparams: { x: y }\nmodules:\n  a: { run: ls, inputs: [src, 'src/${params.x}'] }\n"),
      ElementsAre("ci.yaml:4:36: a: ${params.x}: nothing is replaced in `inputs`"));
}

TEST(AMatrix, PassesNothingOverInSilence) {  // P9 P14
  const auto of = [](const std::string& matrix) {
    return problems("version: 1\nmodules: { a: { matrix: " + matrix + ", run: ls } }\n");
  };
  EXPECT_THAT(of("linux"), ElementsAre(HasSubstr("matrix has to be a list of targets, or a map of axes")));
  EXPECT_THAT(of("[]"), ElementsAre(HasSubstr("matrix has to be a list of targets")));
  EXPECT_THAT(of("{ caps: [x] }"), ElementsAre(HasSubstr("a matrix without targets")));
  EXPECT_THAT(of("{ os: [a], exclude: [{ os: a }] }"), ElementsAre(HasSubstr("a matrix without targets")));
  EXPECT_THAT(of("{ os: [a, b], exclude: { os: a } }"),
              ElementsAre(HasSubstr("exclude has to be a list of `{AXIS: value}`")));
  EXPECT_THAT(of("{ os: [a, b], exclude: [a] }"),
              ElementsAre(HasSubstr("an item of exclude is `{AXIS: value}`")));
  EXPECT_THAT(of("{ os: [a, b], exclude: [{ so: a }] }"),
              ElementsAre("ci.yaml:2:51: a: the matrix has no axis 'so' (did you mean 'os'?)"));
  EXPECT_THAT(of("{ os: [a, b], caps: ['{so}'] }"), ElementsAre(HasSubstr("the matrix has no axis 'so'")));
  EXPECT_THAT(of("{ os: [a, b], include: [{ os: c, extra: d }], caps: ['{os}'] }"), ElementsAre());
}

TEST(ASecret, IsUsedBySomebody) {  // P14
  EXPECT_THAT(
      problems("version: 1\nsecrets: [TOKEN, KEY]\nmodules: { a: { secrets: [KEY], run: ls } }\n"),
      ElementsAre("ci.yaml:2:11: secret 'TOKEN' is used by no module: list it under `secrets` of those "
                  "that need it"));
}

}  // namespace
}  // namespace baton::pipeline
