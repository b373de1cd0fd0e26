// Whatever is done to a real server and its clients: nothing acknowledged is lost, nothing is there that
// nobody asked for, no task is completed twice, and the log explains every reply.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "base/mutant.h"
#include "tests/chaos/ordeal.h"

namespace baton::chaos {
namespace {

void print_complaints(const Tally& tally) {
  for (std::size_t at = 0; at < tally.complaints.size() && at < 20; ++at)
    std::printf("  %s\n", tally.complaints[at].c_str());
  std::fflush(stdout);
}

void expect_nothing_wrong(const Tally& tally) {
  std::printf("%s", tally.summary().c_str());
  EXPECT_EQ(tally.lost, 0u);
  EXPECT_EQ(tally.phantom, 0u);
  EXPECT_EQ(tally.doubly_completed, 0u);
  EXPECT_TRUE(tally.complaints.empty());
  print_complaints(tally);
}

// A run counts only if something was asked, and something was done to those who did.
void expect_it_counts(const Tally& tally) {
  EXPECT_GE(tally.operations, 100u * tally.rounds) << "too little was asked";
  EXPECT_GE(tally.submitted, 10u * tally.rounds) << "too little was acknowledged";
  EXPECT_GE(tally.unknown, tally.rounds) << "too few outcomes were unknown";
  EXPECT_GE(tally.repeated_work, tally.rounds) << "too few leases ended before the work did";
  EXPECT_GE(tally.stale_writes, tally.rounds / 5) << "too few came back too late";
}

Tally ordeal(Setting setting, std::uint64_t seed, unsigned rounds = 4) {
  const Tally tally = run_ordeal({.setting = setting, .seed = seed, .rounds = rounds});
  if (tally.rounds == 0) return tally;
  expect_nothing_wrong(tally);
  expect_it_counts(tally);
  return tally;
}

// X2
TEST(Chaos, OfKillsLosesNothing) {
  const Tally tally = ordeal(Setting::plain, 1);
  EXPECT_EQ(tally.faults.at("killed"), tally.rounds);
}

// X2
TEST(Chaos, OfPowerCutsLosesNothing) {
  const Tally tally = ordeal(Setting::power, 2);
  EXPECT_EQ(tally.faults.at("power cut"), tally.rounds);
}

// X2
TEST(Chaos, OfClocksLosesNothing) {
  const Tally tally = ordeal(Setting::clock, 3);
  EXPECT_GE(tally.faults.at("clock moved"), tally.rounds);
}

// X2
TEST(Chaos, OfFullDisksLosesNothing) {
  const Tally tally = ordeal(Setting::small_disk, 5);
  if (tally.rounds == 0) GTEST_SKIP() << "no file system can be mounted here";
  EXPECT_GE(tally.faults.at("disk full"), 1u);
}

// And all this would be noticed if it were not so.
bool is_noticed(Setting setting, Mutant mutant) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Tally tally =
        run_ordeal({.setting = setting, .seed = seed, .rounds = 3, .mutant = static_cast<int>(mutant)});
    if (tally.complaints.empty()) continue;
    std::printf("seed %d: %s\n", static_cast<int>(seed), tally.complaints.front().c_str());
    return true;
  }
  return false;
}

TEST(Chaos, NoticesAnswersThatDoNotWaitForTheDisk) {
  EXPECT_TRUE(is_noticed(Setting::power, Mutant::m1_reply_before_flush));
}
TEST(Chaos, NoticesCompletionsWithoutALease) {
  EXPECT_TRUE(is_noticed(Setting::plain, Mutant::m9_complete_without_lease_check));
}
TEST(Chaos, NoticesThatARepeatedCompletionIsCalledCancelled) {
  EXPECT_TRUE(is_noticed(Setting::plain, Mutant::m17_duplicate_complete_answers_cancelled));
}

TEST(Long, Chaos) {
  if (std::getenv("BATON_LONG") == nullptr) GTEST_SKIP() << "set BATON_LONG=1";
  constexpr unsigned kRounds = 500, kRoundsEach = 10;
  Tally all;
  for (std::uint64_t seed = 100; all.rounds < kRounds; ++seed) {
    for (const Setting setting : {Setting::plain, Setting::power, Setting::clock, Setting::small_disk}) {
      const Tally tally = run_ordeal({.setting = setting, .seed = seed, .rounds = kRoundsEach});
      print_complaints(tally);
      all.add(tally);
    }
  }
  expect_nothing_wrong(all);
  expect_it_counts(all);
  for (const char* fault :
       {"killed", "power cut", "clock moved", "delayed", "byte at a time", "half open", "reset",
        "cut in the middle", "refused connections", "server paused", "worker paused"})
    EXPECT_GE(all.faults[fault], kRounds / 10) << fault;
  EXPECT_GE(all.faults["power cut in a flush"], all.faults["power cut"] / 20);
  if (all.faults.contains("disk full")) {
    EXPECT_GE(all.faults["refused for want of space"], all.faults["disk full"]);
  }
}

}  // namespace
}  // namespace baton::chaos
