// sim_mutants: switches on one deliberate fault at a time and counts the seeds it takes until the simulation
// notices. A fault that nobody notices means that a check is missing or has lost its teeth.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/mutant.h"
#include "tests/sim/world.h"

namespace baton::sim {
namespace {

struct Row {
  Mutant mutant;
  std::string_view name;
  std::string_view elsewhere;  // why it is not for the simulation; empty: it is
};

constexpr Row kRows[] = {
    {Mutant::m1_reply_before_flush, "M1 reply before flush", ""},
    {Mutant::m2_ignore_sync_error, "M2 sync error ignored", ""},
    {Mutant::m3_retry_sync_after_error, "M3 sync retried after an error", ""},
    {Mutant::m4_skip_directory_sync_on_rotation, "M4 no directory sync on rotation", ""},
    {Mutant::m5_truncate_at_mid_log_damage, "M5 log cut at damage in the middle", ""},
    {Mutant::m6_zero_header_ends_the_log, "M6 zero header ends the log", ""},
    {Mutant::m7_reuse_the_old_tail, "M7 old tail written again", ""},
    {Mutant::m8_no_padding_between_batches, "M8 no padding between batches", ""},
    {Mutant::m9_complete_without_lease_check, "M9 complete without lease check", ""},
    {Mutant::m10_lease_held_at_its_deadline, "M10 lease held at its deadline", ""},
    {Mutant::m11_heartbeat_revives_expired_lease, "M11 heartbeat revives expired lease", ""},
    {Mutant::m12_clock_read_in_apply, "M12 clock read in apply", ""},
    {Mutant::m13_expiry_without_a_record, "M13 expiry without a record", ""},
    {Mutant::m14_attempt_not_counted, "M14 attempt not counted", ""},
    {Mutant::m15_policy_evaluated_again_on_replay, "M15 policy evaluated in apply", ""},
    {Mutant::m16_idempotency_key_ignored, "M16 idempotency key ignored", ""},
    {Mutant::m17_duplicate_complete_answers_cancelled, "M17 duplicate complete: cancelled", ""},
    {Mutant::m18_snapshot_misses_the_last_record, "M18 snapshot misses last record", ""},
    {Mutant::m19_segment_removed_before_snapshot_is_durable, "M19 segment removed too early", ""},
    {Mutant::m20_epoch_not_checked, "M20 epoch not checked",
     "needs a second writer: log_mutants_test kills it for one log, high availability for the rest"},
    {Mutant::m21_wall_clock_instead_of_coordinator_time, "M21 wall clock instead of T", ""},
    {Mutant::m22_renewal_told_before_durable, "M22 renewal told before durable", ""},
    {Mutant::m23_scheduling_by_hash_order, "M23 scheduling by hash order", ""},
    {Mutant::m24_wake_up_lost_after_flush, "M24 wake-up lost after flush", ""},
    {Mutant::m25_cancelled_records_unbounded, "M25 cancelled records unbounded", ""},
    {Mutant::m26_validated_with_a_stale_time, "M26 validated with a stale time", ""},
    {Mutant::m27_same_batch_record_counts_as_evidence, "M27 same batch counts as evidence", ""},
    {Mutant::m28_stream_claimed_by_two, "M28 stream claimed by two", ""},
    {Mutant::m29_retry_overtaken, "M29 retry overtaken in its stream", ""},
    {Mutant::m30_duplicate_in_the_window_accepted, "M30 duplicate in the window accepted", ""},
    {Mutant::m31_report_under_a_lost_lease_accepted, "M31 report under a lost lease", ""},
    {Mutant::m32_silent_instance_keeps_its_place, "M32 silent instance keeps its place", ""},
    {Mutant::m33_message_lost_at_poison, "M33 message lost at poison", ""},
    {Mutant::m34_parked_stream_handed_out, "M34 parked stream handed out", ""},
    {Mutant::m35_lost_delivery_not_counted, "M35 lost delivery not counted", ""},
};

struct Kill {
  std::uint64_t seeds = 0;  // it took; 0: it survived
  Violation violation;
};

Kill hunt(Mutant which, std::uint64_t seeds_max) {
  active_mutant = which;
  Kill kill;
  for (std::uint64_t seed = 0; seed < seeds_max && kill.seeds == 0; ++seed) {
    if (auto found = run(scenario_for(seed)).violation) kill = {seed + 1, *found};
  }
  active_mutant = Mutant::none;
  return kill;
}

int main(int argc, char** argv) {
  std::uint64_t seeds_max = 2000;
  std::uint64_t only = 0;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--seeds") == 0) seeds_max = std::strtoull(argv[i + 1], nullptr, 10);
    if (std::strcmp(argv[i], "--mutant") == 0) only = std::strtoull(argv[i + 1], nullptr, 10);
  }
  if (argc < 2) {
    fmt::print(
        "usage: sim_mutants --all-mutants [--seeds MAX]   every fault until it is noticed\n"
        "       sim_mutants --mutant N [--seeds MAX]      one of them\n");
    return 2;
  }
  if (const Run sound = run(scenario_for(0)); sound.violation) {
    fmt::print("FAILED: without any fault seed 0 fails: {}\n", sound.violation->id);
    return 1;
  }
  int survivors = 0;
  for (const Row& row : kRows) {
    if (only != 0 && static_cast<std::uint64_t>(row.mutant) != only) continue;
    if (!row.elsewhere.empty()) {
      fmt::print("{:<38}not here: {}\n", row.name, row.elsewhere);
      continue;
    }
    const Kill kill = hunt(row.mutant, seeds_max);
    survivors += kill.seeds == 0;
    if (kill.seeds == 0) {
      fmt::print("{:<38}SURVIVED {} seeds\n", row.name, seeds_max);
    } else {
      fmt::print("{:<38}{:>5} seeds   {}: {}\n", row.name, kill.seeds, kill.violation.id,
                 kill.violation.what);
    }
    std::fflush(stdout);
  }
  fmt::print("{} survived\n", survivors);
  return survivors == 0 ? 0 : 1;
}

}  // namespace
}  // namespace baton::sim

int main(int argc, char** argv) { return baton::sim::main(argc, argv); }
