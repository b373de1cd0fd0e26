// Each deliberate fault in the log has to be noticed by one of the checks. A fault that goes unnoticed
// means that a check has lost its teeth.
#include <gtest/gtest.h>

#include <ostream>

#include "base/mutant.h"
#include "tests/sim/crash_check.h"
#include "tests/sim/damage_check.h"

namespace baton::sim {
namespace {

struct Fault {
  Mutant mutant;
  const char* name;
  std::optional<std::string> (*check)();
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

std::optional<std::string> power_cuts() { return check_power_cuts({.operations_max = 3}).violation; }
std::optional<std::string> failures() { return check_failures({.operations_max = 3}).violation; }
std::optional<std::string> flipped_bits() { return check_flipped_bits(Ending::killed).violation; }
std::optional<std::string> zeroed_sectors() { return check_zeroed_sectors(Ending::killed).violation; }
std::optional<std::string> foreign_epoch() { return check_foreign_epoch().violation; }

class LogMutant : public testing::TestWithParam<Fault> {};

TEST_P(LogMutant, IsNoticed) {
  active_mutant = GetParam().mutant;
  const auto violation = GetParam().check();
  active_mutant = Mutant::none;
  ASSERT_TRUE(violation);
  std::printf("%s\n", violation->c_str());
  EXPECT_FALSE(GetParam().check()) << "the check complains without the fault, too";
}

INSTANTIATE_TEST_SUITE_P(
    All, LogMutant,
    testing::Values(Fault{Mutant::m2_ignore_sync_error, "IgnoreSyncError", failures},
                    Fault{Mutant::m3_retry_sync_after_error, "RetrySync", failures},
                    Fault{Mutant::m4_skip_directory_sync_on_rotation, "SkipDirectorySync", power_cuts},
                    Fault{Mutant::m5_truncate_at_mid_log_damage, "TruncateAtDamage", flipped_bits},
                    Fault{Mutant::m6_zero_header_ends_the_log, "ZeroHeaderEndsTheLog", zeroed_sectors},
                    Fault{Mutant::m7_reuse_the_old_tail, "ReuseTheOldTail", power_cuts},
                    Fault{Mutant::m8_no_padding_between_batches, "NoPadding", power_cuts},
                    Fault{Mutant::m20_epoch_not_checked, "EpochNotChecked", foreign_epoch},
                    Fault{Mutant::m27_same_batch_record_counts_as_evidence, "SameBatchEvidence", power_cuts}),
    [](const auto& fault) { return std::string(fault.param.name); });

}  // namespace
}  // namespace baton::sim
