// Deliberate faults, one at a time, to prove that the tests notice them.
//
// A build with BATON_MUTANTS can switch one on; in every other build `mutant(…)` is constant false and
// the hooks vanish.
#pragma once

#include <cstdint>

namespace baton {

enum class Mutant {
  none,
  m1_reply_before_flush,
  m2_ignore_sync_error,
  m3_retry_sync_after_error,
  m4_skip_directory_sync_on_rotation,
  m5_truncate_at_mid_log_damage,
  m6_zero_header_ends_the_log,
  m7_reuse_the_old_tail,
  m8_no_padding_between_batches,
  m9_complete_without_lease_check,
  m10_lease_held_at_its_deadline,
  m11_heartbeat_revives_expired_lease,
  m12_clock_read_in_apply,
  m13_expiry_without_a_record,
  m14_attempt_not_counted,
  m15_policy_evaluated_again_on_replay,
  m16_idempotency_key_ignored,
  m17_duplicate_complete_answers_cancelled,
  m18_snapshot_misses_the_last_record,
  m19_segment_removed_before_snapshot_is_durable,
  m20_epoch_not_checked,
  m21_wall_clock_instead_of_coordinator_time,
  m22_renewal_told_before_durable,
  m23_scheduling_by_hash_order,
  m24_wake_up_lost_after_flush,
  m25_cancelled_records_unbounded,
  m26_validated_with_a_stale_time,
  m27_same_batch_record_counts_as_evidence,
  m28_stream_claimed_by_two,
  m29_retry_overtaken,
  m30_duplicate_in_the_window_accepted,
  m31_report_under_a_lost_lease_accepted,
  m32_silent_instance_keeps_its_place,
  m33_message_lost_at_poison,
  m34_parked_stream_handed_out,
  m35_lost_delivery_not_counted,
};

#ifdef BATON_MUTANTS
inline Mutant active_mutant = Mutant::none;
inline std::int64_t mutant_clock_ms = 0;  // what a fault that reads a clock would read
inline bool mutant(Mutant which) { return active_mutant == which; }
#else
constexpr bool mutant(Mutant) { return false; }
inline constexpr std::int64_t mutant_clock_ms = 0;
#endif

}  // namespace baton
