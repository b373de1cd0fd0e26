#include "pipeline/contract.h"

#include "pipeline/contract_checks.h"

namespace baton::pipeline::contract {
namespace {

const Check kChecks[] = {
    {"WakesWhoeverWaits", "a worker that waits gets what is enqueued", wakes_whoever_waits},
    {"CarriesAllOfAnAssignment", "an assignment arrives as it was enqueued", carries_all_of_an_assignment},
    {"HandsEachToOne", "every assignment is handed out, to one worker", hands_each_to_one},
    {"KeepsTheirOrder", "assignments are handed out in their order", keeps_their_order},
    {"HandsOutTheUrgentFirst", "a higher priority comes first", hands_out_the_urgent_first},
    {"HeedsCapabilities", "a worker gets only what it has the capabilities for", heeds_capabilities},
    {"TellsNothingFromClosed", "nothing to do now, and the run is over, are different answers",
     tells_nothing_from_closed},
    {"ReturnsResults", "a result is returned, whether it was published before or after the wait",
     returns_results},
    {"LetsWaitersGo", "one that stops waiting affects no other", lets_waiters_go},
    {"AcceptsAResultOnce", "the first result stands, and the same again is acknowledged",
     accepts_a_result_once},
    {"LeasesAgainWhatWasLost", "what a silent worker had is handed out again, and its result is stale",
     leases_again_what_was_lost},
    {"IsNotMisledByAResultOfNobody", "a result of what was never enqueued changes nothing",
     is_not_misled_by_a_result_of_nobody},
    {"RefusesALateResult", "a result is stale once its lease has ended", refuses_a_late_result},
    {"KeepsLeasesAlive", "heartbeats keep leases", keeps_leases_alive},
    {"TellsOfLostLeases", "a heartbeat is told which leases are lost", tells_of_lost_leases},
    {"GivesUpAfterTheLastAttempt", "when no attempt is left, the result is: worker lost",
     gives_up_after_the_last_attempt},
    {"ListsWorkers", "workers are listed with status and current module", lists_workers},
    {"RefusesASecondWorkerWithOneIndex", "an index belongs to one process at a time",
     refuses_a_second_worker_with_one_index},
    {"RefusesAnotherPipeline", "a worker with another graph is refused", refuses_another_pipeline},
    {"HasOneMaster", "a run has one master at a time", has_one_master},
    {"HasOneMasterOfManyThatComeAtOnce", "of several masters that come at once, one gets the run",
     has_one_master_of_many_that_come_at_once},
    {"HeedsOneMasterAlone", "a master that another has taken over from neither cancels nor closes the run",
     heeds_one_master_alone},
    {"RefusesARunThatIsOver", "a run that was closed is not opened again", refuses_a_run_that_is_over},
    {"TellsHowLongLeasesLast", "if it is told how long a lease lasts, it lasts that long",
     tells_how_long_leases_last},
    {"GoesOnAfterARestartOfTheMaster", "a master that was started again finds all that was there",
     goes_on_after_a_restart_of_the_master},
    {"HandsOverToTheNextMaster", "it hears what was enqueued, and gets all results",
     hands_over_to_the_next_master},
    {"BroadcastsCancellation", "a cancellation is durable, and the first reason stands",
     broadcasts_cancellation},
    {"TakesTheMastersOwnResults", "the master publishes what it ran itself", takes_the_masters_own_results},
    {"LetsTheMasterWithdraw", "what nobody has when the master publishes its result, nobody gets",
     lets_the_master_withdraw},
    {"FeedsEachResultOnce", "a feed of results tells each once", feeds_each_result_once},
    {"WaitsWithoutWork", "whoever waits uses no processor", waits_without_work},
};

}  // namespace

std::span<const Check> checks() { return kChecks; }

}  // namespace baton::pipeline::contract
