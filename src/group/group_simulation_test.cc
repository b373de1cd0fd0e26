// Whatever happens to ranks and their coordinator, by chance: what has to hold of it is in
// group_simulation.h.
#include "group/group_simulation.h"

#include <gtest/gtest.h>

namespace baton::group {
namespace {

std::size_t simulate(Chances chances, std::size_t (Simulation::*count)() const) {
  std::size_t counted = 0;
  for (std::uint64_t seed = 1; seed <= 1'000 && !::testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Simulation simulation(seed, static_cast<Rank>(1 + seed % 5), chances);
    simulation.run();
    counted += (simulation.*count)();
  }
  return counted;
}

// C1
TEST(GroupSimulation, AllRanksGoThroughAllOperationsInStep) { simulate({}, &Simulation::restarts); }

TEST(GroupSimulation, WhatIsLostIsSaidAgain) {
  simulate({.word_lost = 50, .answer_lost = 200}, &Simulation::restarts);
}

// C3
TEST(GroupSimulation, AfterARestartTheRanksGoOnWhereTheyWere) {
  const Chances chances{.word_lost = 50, .answer_lost = 200, .crash = 25, .stop = 25};
  EXPECT_GT(simulate(chances, &Simulation::restarts), 1'000U);
}

// C3: whoever missed an answer that the others got gets that answer
TEST(GroupSimulation, WhoMissedAnAnswerGetsWhatTheOthersGot) {
  const Chances chances{.answer_lost = 300, .crash = 60, .stop = 40};
  EXPECT_GT(simulate(chances, &Simulation::told_from_memory), 1'000U);
}

// C2
TEST(GroupSimulation, WhoComesTooLateIsNamedAndHearsOfIt) {
  EXPECT_GT(simulate({.word_lost = 20, .answer_lost = 100, .late = 30}, &Simulation::timeouts), 1'000U);
}

// C2, C3: also by a coordinator that knows of it only what ranks remember
TEST(GroupSimulation, WhatFailedBeforeARestartHasFailedAfterIt) {
  const Chances chances{.word_lost = 20, .answer_lost = 100, .crash = 20, .stop = 20, .late = 30};
  EXPECT_GT(simulate(chances, &Simulation::timeouts), 1'000U);
}

// C2, C3
TEST(GroupSimulation, TheDeadAreToldOfAndReplaced) {
  const Chances chances{.word_lost = 20, .answer_lost = 100, .crash = 3, .stop = 2, .death = 10, .late = 10};
  EXPECT_GT(simulate(chances, &Simulation::deaths), 1'000U);
}

}  // namespace
}  // namespace baton::group
