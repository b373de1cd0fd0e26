// A coordinator that breaks its contract in one chosen way: to see that the checks notice.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "pipeline/contract.h"

namespace baton::pipeline {

enum class Fault : std::uint8_t {
  wakes_nobody,
  forgets_dependencies,
  hands_out_twice,
  newest_first,
  ignores_priority,
  ignores_capabilities,
  closed_is_empty,
  forgets_early_results,
  stops_all_waiters,
  accepts_anything,
  never_expires,
  keeps_results_of_nobody,
  accepts_late_results,
  ignores_heartbeats,
  tells_of_no_lost_lease,
  one_attempt_too_many,
  lists_nobody,
  admits_a_second_worker,
  admits_any_pipeline,
  admits_a_second_master,
  looks_before_it_admits,
  heeds_a_former_master,
  opens_what_is_over,
  tells_another_lease,
  forgets_at_a_restart,
  hands_nothing_over,
  last_reason_stands,
  drops_own_results,
  hands_out_what_was_withdrawn,
  feeds_twice,
  spins,
};

std::optional<Fault> fault_against(std::string_view check);
std::unique_ptr<contract::Subject> broken_subject(Fault fault);

}  // namespace baton::pipeline
