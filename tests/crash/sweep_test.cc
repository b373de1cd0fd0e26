// Every bit, every sector, every length, every file of a small data directory.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/crash/sweep.h"

namespace baton::crash {
namespace {

// Sanitizers are slow, and look for something else.
unsigned thin_out() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 41;
#else
  return 1;
#endif
}

void expect_detected(const Sweep& sweep, std::uint64_t cases_at_least) {
  std::printf("%s\n", sweep.summary().c_str());
  EXPECT_EQ(sweep.violation, "");
  EXPECT_GE(sweep.cases, cases_at_least / thin_out());
  EXPECT_GT(sweep.refused, sweep.cases / 100);
}

TEST(ClosedDirectory, IsRefusedOrUnharmedByAnyFlippedBit) {
  const Sweep sweep = Sweeper(Ending::closed, thin_out()).flipped_bits();
  expect_detected(sweep, 100'000);
  EXPECT_EQ(sweep.dropped, 0u);
}
TEST(KilledDirectory, IsRefusedOrUnharmedByAnyFlippedBit) {
  const Sweep sweep = Sweeper(Ending::killed, thin_out()).flipped_bits();
  expect_detected(sweep, 100'000);
  EXPECT_EQ(sweep.dropped, 0u);
}

TEST(ClosedDirectory, IsRefusedOrUnharmedByAnyZeroedSector) {
  const Sweep sweep = Sweeper(Ending::closed, 1).zeroed_sectors();
  expect_detected(sweep, 100);
  EXPECT_EQ(sweep.dropped, 0u);
}
TEST(KilledDirectory, LosesAtMostItsLastBatchToAZeroedSector) {
  expect_detected(Sweeper(Ending::killed, 1).zeroed_sectors(), 100);
}

TEST(ClosedDirectory, IsRefusedOrUnharmedWhenAnyFileIsCut) {
  const Sweep sweep = Sweeper(Ending::closed, thin_out()).cut_files();
  expect_detected(sweep, 5'000);
  EXPECT_EQ(sweep.dropped, 0u);
}
TEST(KilledDirectory, IsRefusedOrUnharmedWhenAnyFileIsCut) {
  const Sweep sweep = Sweeper(Ending::killed, thin_out()).cut_files();
  expect_detected(sweep, 5'000);
  EXPECT_EQ(sweep.dropped, 0u);
}

TEST(ClosedDirectory, IsRefusedOrUnharmedWhenFilesAreShuffled) {
  const Sweep sweep = Sweeper(Ending::closed, 1).shuffled_files();
  expect_detected(sweep, 50);
  EXPECT_EQ(sweep.dropped, 0u);
}
TEST(KilledDirectory, IsRefusedOrUnharmedWhenFilesAreShuffled) {
  const Sweep sweep = Sweeper(Ending::killed, 1).shuffled_files();
  expect_detected(sweep, 50);
  EXPECT_EQ(sweep.dropped, 0u);
}

}  // namespace
}  // namespace baton::crash
