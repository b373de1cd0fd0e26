// The checks, by what they are about; contract.cc lists them.
#pragma once

#include "pipeline/contract.h"

namespace baton::pipeline::contract {

Status wakes_whoever_waits(Subject& subject);
Status carries_all_of_an_assignment(Subject& subject);
Status hands_each_to_one(Subject& subject);
Status keeps_their_order(Subject& subject);
Status hands_out_the_urgent_first(Subject& subject);
Status heeds_capabilities(Subject& subject);
Status tells_nothing_from_closed(Subject& subject);
Status waits_without_work(Subject& subject);

Status returns_results(Subject& subject);
Status lets_waiters_go(Subject& subject);
Status accepts_a_result_once(Subject& subject);
Status takes_the_masters_own_results(Subject& subject);
Status lets_the_master_withdraw(Subject& subject);
Status feeds_each_result_once(Subject& subject);
Status leases_again_what_was_lost(Subject& subject);
Status is_not_misled_by_a_result_of_nobody(Subject& subject);
Status refuses_a_late_result(Subject& subject);
Status keeps_leases_alive(Subject& subject);
Status tells_of_lost_leases(Subject& subject);
Status gives_up_after_the_last_attempt(Subject& subject);

Status lists_workers(Subject& subject);
Status refuses_a_second_worker_with_one_index(Subject& subject);
Status refuses_another_pipeline(Subject& subject);
Status has_one_master(Subject& subject);
Status has_one_master_of_many_that_come_at_once(Subject& subject);
Status heeds_one_master_alone(Subject& subject);
Status refuses_a_run_that_is_over(Subject& subject);
Status tells_how_long_leases_last(Subject& subject);
Status goes_on_after_a_restart_of_the_master(Subject& subject);
Status hands_over_to_the_next_master(Subject& subject);
Status broadcasts_cancellation(Subject& subject);

}  // namespace baton::pipeline::contract
