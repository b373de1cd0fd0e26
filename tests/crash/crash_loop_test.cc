// Nothing acknowledged is lost, nothing appears that nobody asked for, and no task has two holders, wherever
// the process is killed or the power cut. And the loop that says so would notice if it were not true.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/mutant.h"
#include "tests/crash/crash_loop.h"

namespace baton::crash {
namespace {

// A run counts only if it tested something.
void expect_nothing_lost(const LoopResult& result, unsigned acks_per_round = 50) {
  std::printf("%s\n", result.summary().c_str());
  EXPECT_EQ(result.tally.lost, 0u);
  EXPECT_EQ(result.tally.phantom, 0u);
  EXPECT_EQ(result.tally.doubly_valid, 0u);
  EXPECT_GE(result.tally.acks, acks_per_round * result.rounds) << "too little was acknowledged";
  EXPECT_GE(result.tally.snapshots, result.rounds) << "too few snapshots were made";
  EXPECT_GT(result.tally.unknown, result.rounds / 10) << "too few kills came between an entry and its answer";
  EXPECT_GT(result.verified, 0u);
}

void expect_power_was_cut(const LoopResult& result) {
  EXPECT_GE(result.killed_in_flush, result.rounds / 10) << "too few kills hit a running flush";
  EXPECT_GT(result.sectors_early, result.rounds);
}

TEST(KilledProcess, LosesNothingItAcknowledged) {
  const LoopResult result = run_crash_loop({.cut = Cut::kill, .seed = 1});
  expect_nothing_lost(result);
  EXPECT_EQ(result.refused_starts, 0u);
}

TEST(PowerCut, LosesNothingThatWasAcknowledged) {
  const LoopResult result = run_crash_loop({.cut = Cut::power, .seed = 2});
  expect_nothing_lost(result);
  expect_power_was_cut(result);
  EXPECT_EQ(result.refused_starts, 0u);
}

TEST(FailedSync, EndsTheProcessAndWhatItLostWasNeverAcknowledged) {
  const LoopResult result = run_crash_loop({.cut = Cut::power, .seed = 3, .fail_syncs = true});
  expect_nothing_lost(result, 20);  // most rounds end within a hundred syncs
  EXPECT_GE(result.ended_with_74, result.rounds / 4);
}

bool is_noticed(LoopOptions options, Mutant mutant) {
  options.worker = BATON_MUTANT_WORKER;
  options.mutant = static_cast<int>(mutant);
  options.stop_early = true;
  const LoopResult result = run_crash_loop(options);
  std::printf("%s\n", result.summary().c_str());
  return !result.tally.complaints.empty();
}

TEST(CrashLoop, NoticesAnswersThatDoNotWaitForTheDisk) {
  EXPECT_TRUE(is_noticed({.cut = Cut::power, .seed = 4}, Mutant::m1_reply_before_flush));
}
TEST(CrashLoop, NoticesAnIgnoredSyncError) {
  EXPECT_TRUE(is_noticed({.cut = Cut::power, .seed = 5, .fail_syncs = true}, Mutant::m2_ignore_sync_error));
}
TEST(CrashLoop, NoticesASyncThatIsTriedAgain) {
  EXPECT_TRUE(
      is_noticed({.cut = Cut::power, .seed = 6, .fail_syncs = true}, Mutant::m3_retry_sync_after_error));
}
TEST(CrashLoop, NoticesANewSegmentWhoseDirectoryIsNotSynced) {
  EXPECT_TRUE(is_noticed({.cut = Cut::power, .seed = 7}, Mutant::m4_skip_directory_sync_on_rotation));
}
// The kernel outlives a killed process, so faults in syncing show only when the power goes.
TEST(CrashLoop, SeesNoSyncFaultInAPlainKill) {
  const LoopOptions options{.cut = Cut::kill, .seed = 8, .rounds = 10};
  EXPECT_FALSE(is_noticed(options, Mutant::m2_ignore_sync_error));
  EXPECT_FALSE(is_noticed(options, Mutant::m4_skip_directory_sync_on_rotation));
}
TEST(CrashLoop, IsSilentAboutTheMutantBuildWithoutAFault) {
  EXPECT_FALSE(is_noticed({.cut = Cut::power, .seed = 9, .rounds = 10}, Mutant::none));
}

class Long : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("BATON_LONG") == nullptr) GTEST_SKIP() << "set BATON_LONG=1";
  }
  static constexpr unsigned kRounds = 2000;
  static constexpr unsigned kPerDirectory = 40;
};

TEST_F(Long, KilledProcess) {
  expect_nothing_lost(run_crash_loop(
      {.cut = Cut::kill, .seed = 11, .rounds = kRounds, .rounds_per_directory = kPerDirectory}));
}
TEST_F(Long, PowerCut) {
  const LoopResult result = run_crash_loop(
      {.cut = Cut::power, .seed = 12, .rounds = kRounds, .rounds_per_directory = kPerDirectory});
  expect_nothing_lost(result);
  expect_power_was_cut(result);
}
TEST_F(Long, FailedSync) {
  expect_nothing_lost(
      run_crash_loop({.cut = Cut::power, .seed = 13, .rounds = kRounds / 4, .fail_syncs = true}), 20);
}

}  // namespace
}  // namespace baton::crash
