#include "core/lease/lease_manager.h"

#include "core/testing.h"

namespace baton::core {
namespace {

// T14, T23, T32, T48, T59: the grant carries worker, attempt and an absolute deadline; the worker is told how
// long.
TEST(Lease, TakesAWaitingTaskUntilAnAbsoluteDeadline) {
  Authority authority;
  const TaskId task = authority.submit(a_task(), kStart);
  const Instant now = kStart + seconds(1);
  const Answer answer = authority.ask(a_worker("w", seconds(10)), now);

  EXPECT_EQ(answer.appended, EventType::lease_granted);
  const auto held = answer.as<Granted>();
  EXPECT_EQ(held.task, task);
  EXPECT_EQ(held.attempt, 1u);
  EXPECT_EQ(held.ttl, seconds(10));
  EXPECT_EQ(authority.task(task).state, TaskState::leased);
  EXPECT_EQ(authority.task(task).attempt, 1u);
  EXPECT_EQ(authority.lease(task).expiry, now + seconds(10));
  EXPECT_EQ(authority.lease(task).granted_at, now);
  EXPECT_EQ(authority.lease(task).lsn, held.lease.lsn);
  EXPECT_EQ(authority.lease(task).task, task.lsn);
  EXPECT_EQ(authority.state().holders[authority.lease(task).worker].name, "n w");
  EXPECT_EQ(active_leases(authority.state(), "n", "w"), 1u);
}

// T33, T32: nothing is recorded when there is nothing to take.
TEST(Lease, IsAnsweredWithNothingWhenNothingIsSchedulable) {
  Authority authority;
  const Lsn before = authority.state().last;
  EXPECT_EQ(authority.ask(a_worker(), kStart).as<Nothing>().why, NothingBecause::no_task);
  authority.submit(a_task(), kStart);
  authority.grant(a_worker(), kStart);
  const Answer second = authority.ask(a_worker("v"), kStart);
  EXPECT_TRUE(second.is<Nothing>());
  EXPECT_FALSE(second.appended);
  EXPECT_EQ(authority.state().last, before + 2);
}

// T15, T17: deciding alone grants nothing, however often it is asked.
TEST(Lease, IsNotGrantedByDecidingAlone) {
  Authority authority;
  authority.submit(a_task(), kStart);
  const std::uint64_t digest = authority.state().digest;
  for (int i = 0; i < 2; ++i) {
    const Decision decision =
        decide(authority.state(), authority.workers, a_worker(), authority.moment(kStart));
    EXPECT_TRUE(std::holds_alternative<Append>(decision));
  }
  EXPECT_EQ(authority.state().digest, digest);
  EXPECT_EQ(authority.state().leases.used(), 0u);
}

// E5
TEST(Lease, TakesTheOldestOfAQueueFirst) {
  Authority authority;
  const TaskId first = authority.submit(a_task(), kStart);
  const TaskId second = authority.submit(a_task(), kStart);
  const TaskId third = authority.submit(a_task(), kStart + seconds(1));
  const Instant now = kStart + seconds(2);
  EXPECT_EQ(authority.grant(a_worker(), now).task, first);
  EXPECT_EQ(authority.grant(a_worker(), now).task, second);
  EXPECT_EQ(authority.grant(a_worker(), now).task, third);
}

// E5: a task given back has a new place, behind what waits already.
TEST(Lease, PutsATaskThatComesBackBehindThoseThatWait) {
  auto [authority, held] = a_leased_task();
  const TaskId other = authority.submit(a_task(), kStart);
  authority.ask(release(held), kStart);
  EXPECT_EQ(authority.grant(a_worker(), kStart).task, other);
  EXPECT_EQ(authority.grant(a_worker(), kStart).task, held.task);
}

// E5
TEST(Lease, PrefersPriorityToAge) {
  Authority authority;
  std::vector<TaskId> by_priority(10);
  for (std::uint8_t priority = 0; priority <= kPriorityMax; ++priority) {
    SubmitTask task = a_task();
    task.priority = priority;
    by_priority[priority] = authority.submit(task, kStart);
  }
  for (std::size_t priority = 10; priority-- > 0;)
    EXPECT_EQ(authority.grant(a_worker(), kStart).task, by_priority[priority]);
}

// E5, X5: those may be many times as many, and a worker can take nothing of them.
TEST(Lease, LooksAtNoLaneWhoseTasksHaveAllEnded) {
  Authority authority;
  std::vector<TaskId> tasks;
  for (std::uint8_t priority = 0; priority < 4; ++priority) {
    SubmitTask task = a_task();
    task.priority = priority;
    tasks.push_back(authority.submit(task, kStart));
  }
  const auto open = [](const State& state) {
    std::vector<std::uint8_t> priorities;
    for (const Slot lane : state.queues[find_queue(state, "n", "q")].open_lanes())
      priorities.push_back(state.lanes[lane].priority);
    std::ranges::sort(priorities);
    return priorities;
  };
  for (const std::size_t ended : {0, 3}) authority.ask(cancel(tasks[ended]), kStart);
  EXPECT_EQ(open(authority.state()), (std::vector<std::uint8_t>{1, 2}));
  EXPECT_EQ(open(replayed(authority.log())), (std::vector<std::uint8_t>{1, 2}));
  EXPECT_EQ(authority.grant(a_worker(), kStart).task, tasks[2]);
  EXPECT_EQ(open(authority.state()), (std::vector<std::uint8_t>{1, 2})) << "it may come back";

  authority.ask(PurgeQueue{.ns = "n", .queue = "q"}, kStart);
  authority.submit(a_task(), kStart);
  EXPECT_EQ(open(authority.state()), (std::vector<std::uint8_t>{0, 1, 2}));
}

// D14, E5
TEST(Lease, TakesADelayedTaskWhenDueInTheOrderOfEligibility) {
  Authority authority;
  SubmitTask late = a_task();
  late.delay = seconds(10);
  SubmitTask soon = a_task();
  soon.delay = seconds(5);
  const TaskId delayed_late = authority.submit(late, kStart);
  const TaskId delayed_soon = authority.submit(soon, kStart);
  EXPECT_EQ(authority.task(delayed_late).state, TaskState::waiting);
  EXPECT_TRUE(authority.ask(a_worker(), just_before(kStart + seconds(5))).is<Nothing>());
  const TaskId ready_between = authority.submit(a_task(), kStart + seconds(7));

  const Instant now = kStart + seconds(10);
  EXPECT_EQ(authority.grant(a_worker(), now).task, delayed_soon);
  EXPECT_EQ(authority.grant(a_worker(), now).task, ready_between);
  EXPECT_EQ(authority.grant(a_worker(), now).task, delayed_late);
}

// D14
TEST(Lease, TakesADelayedTaskExactlyWhenItIsDue) {
  Authority authority;
  SubmitTask later = a_task();
  later.delay = seconds(5);
  authority.submit(later, kStart);
  EXPECT_TRUE(authority.ask(a_worker(), just_before(kStart + seconds(5))).is<Nothing>());
  EXPECT_TRUE(authority.ask(a_worker(), kStart + seconds(5)).is<Granted>());
}

// E5
TEST(Lease, TakesOnlyTasksWhoseCapabilitiesAreAllOffered) {
  Authority authority;
  SubmitTask demanding = a_task();
  demanding.requires_capabilities = capabilities({"gpu", "disk"});
  const TaskId first = authority.submit(demanding, kStart);
  const TaskId plain = authority.submit(a_task(), kStart);

  LeaseTask worker = a_worker();
  worker.capabilities = capabilities({"gpu"});
  EXPECT_EQ(authority.grant(worker, kStart).task, plain);
  EXPECT_TRUE(authority.ask(worker, kStart).is<Nothing>());
  worker.capabilities = capabilities({"camera", "disk", "gpu"});
  EXPECT_EQ(authority.grant(worker, kStart).task, first);
}

TEST(Lease, LooksAtAllItsQueues) {
  Authority authority;
  SubmitTask elsewhere = a_task();
  elsewhere.queue = "r";
  const TaskId older = authority.submit(elsewhere, kStart);
  const TaskId newer = authority.submit(a_task(), kStart);
  LeaseTask both = a_worker();
  both.queues = {"q", "r", "unheard-of"};
  EXPECT_EQ(authority.grant(both, kStart).task, older);
  EXPECT_EQ(authority.grant(both, kStart).task, newer);
}

TEST(Lease, TakesNothingOutOfAPausedQueue) {
  Authority authority;
  const TaskId task = authority.submit(a_task(), kStart);
  EXPECT_EQ(authority.ask(PauseQueue{"n", "q"}, kStart).appended, EventType::queue_paused);
  EXPECT_EQ(authority.ask(a_worker(), kStart).as<Nothing>().why, NothingBecause::paused);
  EXPECT_FALSE(authority.ask(PauseQueue{"n", "q"}, kStart).appended);
  EXPECT_EQ(authority.ask(ResumeQueue{"n", "q"}, kStart).appended, EventType::queue_resumed);
  EXPECT_FALSE(authority.ask(ResumeQueue{"n", "q"}, kStart).appended);
  EXPECT_EQ(authority.grant(a_worker(), kStart).task, task);
}

// T18, T21: what a worker says of its capacity decides only whether it is given more.
TEST(Lease, GivesAWorkerNoMoreThanItsCapacity) {
  Authority authority;
  for (int i = 0; i < 3; ++i) authority.submit(a_task(), kStart);
  authority.workers.heartbeat("n", "w", 1, {}, kStart);
  const auto held = authority.grant(a_worker("w"), kStart);
  EXPECT_EQ(authority.ask(a_worker("w"), kStart).as<Nothing>().why, NothingBecause::at_capacity);
  EXPECT_TRUE(authority.ask(a_worker("v"), kStart).is<Granted>());
  authority.ask(complete(held), kStart);
  EXPECT_TRUE(authority.ask(a_worker("w"), kStart).is<Granted>());
}

// D30: (epoch, lsn) grows with every grant, across epochs too.
TEST(LeaseIds, GrowWithEveryGrant) {
  auto [authority, held] = a_leased_task();
  LeaseId last = held.lease;
  for (Epoch epoch = kEpoch + 1; epoch < kEpoch + 5; ++epoch) {
    authority.ask(release(held), kStart);
    authority.record(EpochStarted{.key = kKey}, kStart, epoch);
    held = authority.grant(a_worker(), kStart);
    EXPECT_EQ(held.lease.epoch, epoch);
    EXPECT_GT(std::pair(held.lease.epoch, held.lease.lsn), std::pair(last.epoch, last.lsn));
    last = held.lease;
  }
}

// D30: a nonce belongs to one lease of one task in one epoch under one key.
TEST(LeaseIds, CannotBeMadeFromOneAnother) {
  const std::uint64_t nonce = lease_nonce(kKey, 7, 20, 10);
  EXPECT_NE(nonce, lease_nonce(kKey, 8, 20, 10));
  EXPECT_NE(nonce, lease_nonce(kKey, 7, 21, 10));
  EXPECT_NE(nonce, lease_nonce(kKey, 7, 20, 11));
  EXPECT_NE(nonce, lease_nonce({kKey.low ^ 1, kKey.high}, 7, 20, 10));
  EXPECT_NE(nonce, lease_nonce({kKey.low, kKey.high ^ 1}, 7, 20, 10));
}

// D30: a lease goes on being good after a restart.
TEST(LeaseIds, OutliveARestart) {
  auto [authority, held] = a_leased_task();
  authority.record(EpochStarted{.key = kKey}, kStart, kEpoch + 1);
  EXPECT_EQ(authority.ask(complete(held), kStart).as<Committed>().outcome, Ended::completed);
}

}  // namespace
}  // namespace baton::core
