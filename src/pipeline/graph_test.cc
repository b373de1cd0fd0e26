#include "pipeline/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/testing.h"

namespace baton::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::vector<std::string> ids(const Graph& graph) {
  std::vector<std::string> all;
  for (const GraphNode& node : graph.nodes()) all.push_back(node.id);
  return all;
}

TEST(Graph, SpreadsAMatrixIntoItsInstances) {  // P9
  Sketch sketch;
  sketch.add("test").targets = {{"Windows", {"Windows"}}, {"linux", {"linux"}}};
  sketch.definition.modules.back().capabilities = {"Docker"};
  sketch.add("publish", {"test"});
  const Graph graph = sketch.graph();
  EXPECT_THAT(ids(graph), ElementsAre("test[Windows]", "test[linux]", "publish"));
  EXPECT_THAT(graph[0].capabilities, ElementsAre("docker", "windows"));  // P8
  EXPECT_THAT(graph[2].needs[0].on, ElementsAre(0, 1));
}

TEST(Graph, HasTheInstancesOfAMatrixThatWereChosen) {  // P9
  Sketch sketch;
  sketch.add("fetch").targets = {{"a", {}}, {"b", {}}};
  sketch.add("build", {"fetch"}).targets = {{"gcc,O0", {}}, {"gcc,O2", {}}};
  sketch.add("test", {"build"});
  const auto chosen = [&](const Selection& selection) {
    const auto graph = Graph::of(sketch.definition, selection);
    return graph ? ids(*graph) : std::vector<std::string>{describe(graph.error().front())};
  };
  EXPECT_THAT(chosen({.modules = {"build[gcc,O0]"}}), ElementsAre("fetch[a]", "fetch[b]", "build[gcc,O0]"));
  EXPECT_THAT(chosen({.modules = {"build"}}),
              ElementsAre("fetch[a]", "fetch[b]", "build[gcc,O0]", "build[gcc,O2]"));
  EXPECT_THAT(chosen({.modules = {"fetch[a]", "build"}}),
              ElementsAre("fetch[a]", "fetch[b]", "build[gcc,O0]", "build[gcc,O2]"));
  EXPECT_THAT(chosen({.modules = {"build[gcc,O1]"}}),
              ElementsAre("there is no module 'build[gcc,O1]' (did you mean 'build[gcc,O0]'?)"));
  const auto graph = Graph::of(sketch.definition, {.skip_modules = {"build[gcc,O0]"}});
  EXPECT_TRUE((*graph)[*graph->find("build[gcc,O0]")].left_out);
  EXPECT_FALSE((*graph)[*graph->find("build[gcc,O2]")].left_out);
}

TEST(Graph, NamesThePartInWhichAnotherDiffers) {  // P1 P5
  const auto parts = [](auto change) {
    Sketch sketch;
    sketch.add("build");
    sketch.add("test", {"build"});
    change(sketch);
    return sketch.graph().parts();
  };
  const GraphParts same = parts([](Sketch&) {});
  EXPECT_EQ(difference(same, parts([](Sketch&) {})), "");
  EXPECT_EQ(difference(same, parts([](Sketch& sketch) { sketch.add("more"); })), "other modules");
  EXPECT_EQ(
      difference(same, parts([](Sketch& sketch) { sketch.definition.modules[1].capabilities = {"gpu"}; })),
      "other capabilities");
  EXPECT_EQ(difference(same, parts([](Sketch& sketch) { sketch.definition.modules[1].needs.clear(); })),
            "other needs");
}

TEST(AMatrixOfAxes, HasEveryCombination) {  // P9
  const auto targets = combinations({{"os", {"linux", "windows"}}, {"cc", {"gcc", "clang"}}}, {"os"});
  std::vector<std::string> names;
  for (const Target& one : targets) names.push_back(one.name);
  EXPECT_THAT(names, ElementsAre("linux,gcc", "linux,clang", "windows,gcc", "windows,clang"));
  EXPECT_THAT(targets[3].capabilities, ElementsAre("windows"));
  EXPECT_EQ(targets[3].axes.at("cc"), "clang");
}

TEST(Graph, TellsEverythingThatIsWrongAtOnce) {
  Sketch sketch;
  sketch.add("build", {"buidl"});
  sketch.add("test", {"build", "buil"}).pool = "emulators";
  sketch.add("test");
  sketch.add("self", {"self"});
  sketch.add("has space").capabilities = {"two words"};
  sketch.add("matrix").targets = {{"a", {}}, {"a", {}}};
  sketch.definition.modules.back().allow_failure_on = {"b"};
  sketch.add("likes").preferred = {"gpu", "big disk"};
  sketch.add("late").timeout = Duration{-1};
  sketch.add("bodiless").body = nullptr;
  sketch.definition.pools["emulator"] = 1;
  EXPECT_THAT(
      sketch.problems(),
      UnorderedElementsAre(
          "build: it needs 'buidl', which does not exist (did you mean 'build'?)",
          "test: it needs 'buil', which does not exist (did you mean 'build'?)",
          "test: there is no pool 'emulators' (did you mean 'emulator'?)",
          "test: there is another module with this id", "self: it needs itself",
          "has space: an id is 1 to 100 printable ASCII characters without spaces and brackets, and 'has "
          "space' is "
          "not",
          "has space: 'two words' is not a capability: 1 to 128 printable ASCII characters without spaces",
          "likes: 'big disk', which it prefers, is not a capability: 1 to 128 printable ASCII characters "
          "without spaces",
          "matrix: target 'a' is there twice",
          "matrix: it may fail on 'b', which is none of its targets (did you mean 'a'?)",
          "late: a timeout is 0 to 30 days", "bodiless: it has no body: a declaration ends with run(…)"));
}

TEST(Graph, ShowsTheWayOfACycle) {
  Sketch sketch;
  sketch.add("a", {"c"});
  sketch.add("b", {"a"});
  sketch.add("c", {"b"});
  EXPECT_THAT(sketch.problems(), ElementsAre("a: it needs itself in the end: a -> c -> b -> a"));
}

TEST(Graph, ChecksWhereArtifactsComeFrom) {  // P15
  Sketch sketch;
  sketch.add("build").produces = {{"bin", {"out"}}, {"bin", {"out"}}};
  sketch.add("lint").produces = {{"report", {"r"}}};
  ModuleSpec& test = sketch.add("test", {"build"});
  test.consumes = {{"build", "binn", ""}, {"lint", "report", ""}, {"nobody", "x", ""}};
  sketch.add("publish", {"test"}).consumes = {{"build", "bin", ""}};
  EXPECT_THAT(
      sketch.problems(),
      ElementsAre(
          "build: it produces 'bin' twice",
          "test: it consumes 'binn' of 'build', which produces no such artifact (did you mean 'bin'?)",
          "test: it consumes 'report' of 'lint' without needing that module: nothing says that it has run",
          "test: it consumes 'x' of 'nobody', which does not exist"));
}

TEST(Graph, BringsAlongWhatTheChosenRequire) {  // P13
  Sketch sketch;
  sketch.add("build").category = "compile";
  sketch.add("test", {"build"}).category = "check";
  sketch.add("lint").category = "check";
  sketch.add("publish", {"test"}).needs.push_back({.on = "lint", .kind = NeedKind::optional});
  EXPECT_THAT(ids(sketch.graph({.modules = {"test"}})), ElementsAre("build", "test"));
  EXPECT_THAT(ids(sketch.graph({.modules = {"publish"}})), ElementsAre("build", "test", "publish"));
  EXPECT_THAT(ids(sketch.graph({.categories = {"check"}})), ElementsAre("build", "test", "lint"));
  EXPECT_THAT(sketch.problems({.categories = {"chekc"}}),
              ElementsAre("there is no category 'chekc' (did you mean 'check'?)"));
  EXPECT_THAT(sketch.problems({.skip_modules = {"publish"}, .skip_categories = {"check", "compile"}}),
              ElementsAre("nothing is left to run"));
}

TEST(Graph, SelectsNeedsByTagAndCategory) {
  Sketch sketch;
  sketch.add("a").tags = {"slow"};
  sketch.add("b").category = "checks";
  ModuleSpec& all = sketch.add("all");
  all.needs = {{.on = "slow", .by = NeedBy::tag}, {.on = "checks", .by = NeedBy::category}};
  const Graph graph = sketch.graph();
  EXPECT_THAT(graph[2].needs[0].on, ElementsAre(0));
  EXPECT_THAT(graph[2].needs[1].on, ElementsAre(1));
  all.needs = {{.on = "fast", .by = NeedBy::tag}};
  EXPECT_THAT(sketch.problems(), ElementsAre("all: no module has the tag 'fast' that it needs"));
}

TEST(Graph, HasAFingerprintOfWhatHasToBeTheSame) {  // P11
  const auto print = [](auto change) {
    Sketch sketch;
    sketch.add("a").result.schema = "text";
    sketch.add("b", {"a"});
    change(sketch);
    return sketch.graph().fingerprint();
  };
  const auto same = print([](Sketch&) {});
  EXPECT_EQ(print([](Sketch& sketch) { sketch.definition.modules[0].timeout = seconds(1); }), same);
  EXPECT_NE(print([](Sketch& sketch) { sketch.definition.modules[0].result.schema = "bool"; }), same);
  EXPECT_NE(print([](Sketch& sketch) { sketch.definition.modules[1].needs.clear(); }), same);
  EXPECT_NE(print([](Sketch& sketch) { sketch.definition.modules[0].capabilities = {"gpu"}; }), same);
  EXPECT_NE(print([](Sketch& sketch) { sketch.definition.modules[0].targets = {{"x", {}}}; }), same);
}

TEST(Capabilities, AreComparedWithoutRegardToCase) {  // P8
  EXPECT_TRUE(covers(canonical({"Docker", "LINUX", "gpu"}), canonical({"linux", "docker"})));
  EXPECT_FALSE(covers(canonical({"docker"}), canonical({"docker", "linux"})));
  EXPECT_TRUE(covers(canonical({}), canonical({})));
}

}  // namespace
}  // namespace baton::pipeline
