// Every bit, every length, every sector of a small log: damage is refused or harmless.
#include <gtest/gtest.h>

#include "tests/sim/damage_check.h"

namespace baton::sim {
namespace {

void expect_detected(const DamageCheck& check, std::uint64_t cases_at_least) {
  EXPECT_FALSE(check.violation) << *check.violation;
  EXPECT_GE(check.cases, cases_at_least);
  EXPECT_GT(check.refused, check.cases / 100);
  testing::Test::RecordProperty("cases", static_cast<int>(check.cases));
}

TEST(ClosedLog, RefusesOrIsUnharmedByAnyFlippedBit) {
  expect_detected(check_flipped_bits(Ending::closed), 60'000);
}
TEST(KilledLog, RefusesOrIsUnharmedByAnyFlippedBit) {
  expect_detected(check_flipped_bits(Ending::killed), 60'000);
}

TEST(ClosedLog, RefusesOrIsUnharmedByAnyCut) { expect_detected(check_cut_files(Ending::closed), 60'000); }
TEST(KilledLog, RefusesOrIsUnharmedByAnyCut) { expect_detected(check_cut_files(Ending::killed), 60'000); }

TEST(ClosedLog, RefusesOrIsUnharmedByAnySectorsOfZeros) {
  expect_detected(check_zeroed_sectors(Ending::closed), 300);
}
TEST(KilledLog, LosesAtMostItsLastBatchToSectorsOfZeros) {
  expect_detected(check_zeroed_sectors(Ending::killed), 300);
}

TEST(Log, RefusesABatchOfAnotherEpochThanItsSegment) {
  const DamageCheck check = check_foreign_epoch();
  EXPECT_FALSE(check.violation) << *check.violation;
  EXPECT_EQ(check.refused, 1u);
}

}  // namespace
}  // namespace baton::sim
