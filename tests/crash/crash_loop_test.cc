// Nothing acknowledged is lost, nothing appears that nobody asked for, and no task has two holders, wherever
// the process is killed or the power cut.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/crash/crash_loop.h"

namespace baton::crash {
namespace {

void expect_nothing_lost(const LoopResult& result, std::uint64_t acks_at_least) {
  std::printf("%s\n", result.summary().c_str());
  EXPECT_EQ(result.tally.lost, 0u);
  EXPECT_EQ(result.tally.phantom, 0u);
  EXPECT_EQ(result.tally.doubly_valid, 0u);
  EXPECT_EQ(result.refused_starts, 0u);
  EXPECT_GE(result.tally.acks, acks_at_least) << "too little was acknowledged for the run to mean anything";
  EXPECT_GT(result.tally.unknown, 0u) << "no kill came between an entry and its answer";
}

TEST(KilledProcess, LosesNothingItAcknowledged) {
  const LoopResult result = run_crash_loop({.cut = Cut::kill, .seed = 1});
  expect_nothing_lost(result, 10'000);
}

TEST(PowerCut, LosesNothingThatWasAcknowledged) {
  const LoopResult result = run_crash_loop({.cut = Cut::power, .seed = 2});
  expect_nothing_lost(result, 10'000);
  EXPECT_GE(result.killed_in_flush, result.rounds / 10) << "too few kills hit a running flush";
  EXPECT_GT(result.sectors_early, 0u);
}

}  // namespace
}  // namespace baton::crash
