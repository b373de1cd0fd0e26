// The log against crashes, tried exhaustively within bounds. BATON_EXHAUSTIVE=1 widens them.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/sim/crash_check.h"

namespace baton::sim {
namespace {

CrashBounds bounds() {
  if (std::getenv("BATON_EXHAUSTIVE")) return {.operations_max = 4, .second_crash_one_in = 4};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return {.operations_max = 3, .second_crash_one_in = 64};  // many times slower
#else
  return {.operations_max = 4, .second_crash_one_in = 128};
#endif
}

void expect_no_violation(const CrashCheck& check) {
  std::printf("%llu sequences, %llu recoveries, %llu of recoveries that were interrupted\n",
              static_cast<unsigned long long>(check.sequences),
              static_cast<unsigned long long>(check.recoveries),
              static_cast<unsigned long long>(check.interrupted_recoveries));
  EXPECT_FALSE(check.violation) << *check.violation;
  EXPECT_GT(check.recoveries, 1000u);
}

TEST(Log, KeepsWhatItAcknowledgedThroughEveryPowerCut) { expect_no_violation(check_power_cuts(bounds())); }

TEST(Log, KeepsWhatItAcknowledgedWhenAnySyncOrOperationFails) {
  expect_no_violation(check_failures(bounds()));
}

}  // namespace
}  // namespace baton::sim
