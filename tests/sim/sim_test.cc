// The simulation itself: it is deterministic, its scenarios can be stored and shrunk, and those that once
// failed do so no more.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/sim/shrink.h"
#include "tests/sim/world.h"

namespace baton::sim {
namespace {

TEST(Scenario, ReadsBackWhatItWrote) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Scenario scenario = scenario_for(seed);
    const auto again = parse_scenario(to_text(scenario));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, scenario);
  }
}

TEST(Scenario, IsRefusedWithTheLineThatMakesNoSense) {
  EXPECT_FALSE(parse_scenario("seed x"));
  EXPECT_FALSE(parse_scenario("knob nonsense 1"));
  EXPECT_FALSE(parse_scenario("at 1 nonsense 0 0 0"));
  EXPECT_EQ(parse_scenario("seed 1\n\nwhat").error().message, "line 3 makes no sense: what");
}

TEST(Simulation, TakesTheSameCourseTwice) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Scenario scenario = scenario_for(seed);
    EXPECT_EQ(run(scenario).hash, run(scenario, true).hash) << "seed " << seed;
  }
}

TEST(Simulation, RunsLongEnoughAndCrashesOftenEnough) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto once = run(scenario_for(seed));
    EXPECT_FALSE(once.violation) << "seed " << seed << ": " << once.violation->id << ": "
                                 << once.violation->what;
    if (once.refused) continue;
    EXPECT_GE(once.steps, 2000);
    if (once.faults[Fault::power_cut] == 0) continue;
    EXPECT_GE(once.crashes, 3) << "seed " << seed;
  }
}

TEST(Canary, IsNoticedAndShrinksToAlmostNothing) {
  Scenario scenario = canary();
  const Scenario noise = scenario_for(8);
  for (const Item& item : noise.items) {
    if (item.kind == ItemKind::submit && item.at < 400) scenario.items.insert(scenario.items.begin(), item);
  }
  ASSERT_EQ(run(scenario).violation->id, "I2");
  const Shrunk small = shrink(scenario, "I2", 400);
  EXPECT_LE(small.scenario.items.size(), 2);
  EXPECT_EQ(run(small.scenario).violation->id, "I2");
}

std::vector<std::string> stored() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(BATON_SOURCE_DIR "/tests/sim/scenarios"))
    names.push_back(file.path().filename());
  std::ranges::sort(names);
  return names;
}

class StoredScenario : public testing::TestWithParam<std::string> {};

TEST_P(StoredScenario, FailsNoMore) {
  std::ifstream in(std::string(BATON_SOURCE_DIR "/tests/sim/scenarios/") + GetParam());
  const auto scenario = parse_scenario(std::string(std::istreambuf_iterator<char>(in), {}));
  ASSERT_TRUE(scenario);
  const auto once = run(*scenario);
  EXPECT_FALSE(once.violation) << once.violation->id << ": " << once.violation->what;
}

INSTANTIATE_TEST_SUITE_P(All, StoredScenario, testing::ValuesIn(stored()), [](const auto& named) {
  std::string name = named.param.substr(0, named.param.find('.'));
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace baton::sim
