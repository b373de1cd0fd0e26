#include "core/task/task_manager.h"

#include "core/testing.h"

namespace baton::core {
namespace {

// T10, T22, T30, T47
TEST(Submit, LeavesAWaitingTaskWithNoAttempt) {
  Authority authority;
  const Answer answer = authority.ask(a_task(), kStart);
  EXPECT_EQ(answer.appended, EventType::task_created);
  const Task& task = authority.task(answer.as<Submitted>().task);
  EXPECT_EQ(task.state, TaskState::waiting);
  EXPECT_EQ(task.attempt, 0u);
  EXPECT_EQ(task.lease, 0u);
  EXPECT_EQ(task.created_at, kStart);
  EXPECT_EQ(task.payload.hash, Blob("payload").hash());
  EXPECT_EQ(task.payload.length, 7u);
  EXPECT_EQ(task.payload.offset + 7, authority.log().back().stamp.body_end);
  EXPECT_EQ(authority.queue("n", "q").count(TaskState::waiting), 1u);
}

// T12: deciding changes nothing.
TEST(Submit, HappensOnlyWhenItIsApplied) {
  Authority authority;
  const std::uint64_t digest = authority.state().digest;
  const Decision decision = decide(authority.state(), a_task(), authority.moment(kStart));
  EXPECT_TRUE(std::holds_alternative<Append>(decision));
  EXPECT_EQ(authority.state().digest, digest);
  EXPECT_EQ(authority.state().tasks.used(), 0u);
}

// D17, T43, E4
TEST(Key, GivesTheSameTaskAgain) {
  Authority authority;
  const TaskId task = authority.submit(a_task("k"), kStart);
  const Answer again = authority.ask(a_task("k"), kStart + hours(1));
  EXPECT_FALSE(again.appended);
  EXPECT_TRUE(again.as<Submitted>().existed);
  EXPECT_EQ(again.as<Submitted>().task, task);
  // Also when the task has ended, for as long as it is kept.
  authority.ask(cancel(task), kStart);
  EXPECT_EQ(authority.ask(a_task("k"), kStart).as<Submitted>().task, task);
  authority.ask(PurgeQueue{.ns = "n", .queue = "q"}, kStart);
  EXPECT_NE(authority.submit(a_task("k"), kStart), task);
}

// D17: whatever differs, it is another submission.
TEST(Key, ConflictsWithAnyOtherContent) {
  Authority authority;
  authority.submit(a_task("k"), kStart);
  const auto refused = [&](auto change) {
    SubmitTask other = a_task("k");
    change(other);
    return authority.ask(other, kStart).refusal == Errc::conflict;
  };
  EXPECT_TRUE(refused([](SubmitTask& task) { task.queue = "r"; }));
  EXPECT_TRUE(refused([](SubmitTask& task) { task.payload = Blob("other"); }));
  EXPECT_TRUE(refused([](SubmitTask& task) { task.payload = Blob(); }));
  EXPECT_TRUE(refused([](SubmitTask& task) { task.priority = 1; }));
  EXPECT_TRUE(refused([](SubmitTask& task) { task.delay = milliseconds(1); }));
  EXPECT_TRUE(refused([](SubmitTask& task) { task.requires_capabilities = capabilities({"gpu"}); }));
  EXPECT_TRUE(refused([](SubmitTask& task) { task.retry.max_failures = 6; }));
  EXPECT_TRUE(refused([](SubmitTask& task) { task.retry.base = seconds(2); }));
  EXPECT_TRUE(refused([](SubmitTask& task) { task.retry.factor_percent = 201; }));
  EXPECT_TRUE(refused([](SubmitTask& task) { task.retry.max = minutes(6); }));
  EXPECT_TRUE(refused([](SubmitTask& task) { task.retry.jitter_percent = 11; }));
  EXPECT_TRUE(refused([](SubmitTask& task) { task.max_attempts = 21; }));
  EXPECT_TRUE(refused([](SubmitTask& task) { task.max_hold = seconds(1); }));
}

TEST(Key, NamesItsTaskInOtherRequests) {
  Authority authority;
  const TaskId task = authority.submit(a_task("k"), kStart);
  const auto held = authority.grant(a_worker(), kStart);
  const TaskRef by_key = TaskRef::by_key("k");
  EXPECT_EQ(authority.ask(CompleteTask{.ns = "n", .task = by_key, .lease = held.lease}, kStart).appended,
            EventType::task_completed);
  EXPECT_EQ(authority.task(task).state, TaskState::completed);
  EXPECT_EQ(authority.ask(CancelTask{.ns = "n", .task = TaskRef::by_key("unheard-of")}, kStart).refusal,
            Errc::not_found);
}

// What is called the same in two namespaces is two things, and neither can be reached from the other.
TEST(Namespaces, DoNotSeeOneAnother) {
  Authority authority;
  SubmitTask elsewhere = a_task("k");
  elsewhere.ns = "m";
  const TaskId here = authority.submit(a_task("k"), kStart);
  const TaskId there = authority.submit(elsewhere, kStart);
  EXPECT_NE(here, there);
  EXPECT_EQ(authority.ask(cancel(there), kStart).refusal, Errc::not_found);

  authority.ask(PauseQueue{"m", "q"}, kStart);
  const auto held = authority.grant(a_worker(), kStart);
  EXPECT_EQ(held.task, here);
  EXPECT_TRUE(authority.ask(a_worker(), kStart).is<Nothing>());
  EXPECT_EQ(authority.ask(CompleteTask{.ns = "m", .task = here, .lease = held.lease}, kStart).refusal,
            Errc::not_found);
  EXPECT_EQ(active_leases(authority.state(), "m", "w"), 0u);
  EXPECT_EQ(authority.ask(PurgeQueue{.ns = "o", .queue = "q"}, kStart).refusal, Errc::not_found);
}

// A task of another epoch with the same lsn is another task.
TEST(TaskIds, IncludeTheEpoch) {
  Authority authority;
  const TaskId task = authority.submit(a_task(), kStart);
  EXPECT_EQ(authority.ask(cancel({kEpoch + 1, task.lsn}), kStart).refusal, Errc::not_found);
  EXPECT_EQ(authority.ask(cancel({kEpoch, task.lsn + 1}), kStart).refusal, Errc::not_found);
}

// E2, D11
TEST(Cancel, EndsAWaitingOrLeasedTaskAsDead) {
  for (const bool leased : {false, true}) {
    Authority authority;
    const TaskId task = authority.submit(a_task(), kStart);
    if (leased) authority.grant(a_worker(), kStart);
    const Answer answer =
        authority.ask(CancelTask{.ns = "n", .task = task, .actor = "ann", .note = Blob("why")}, kStart);
    EXPECT_EQ(answer.appended, EventType::task_dead);
    EXPECT_EQ(authority.task(task).state, TaskState::dead);
    EXPECT_EQ(authority.task(task).dead_reason, DeadReason::cancelled);
    EXPECT_EQ(authority.task(task).lease, 0u);
    EXPECT_EQ(authority.state().leases.used(), 0u);
    EXPECT_EQ(authority.state().endings[authority.task(task).endings].note.hash, Blob("why").hash());
    EXPECT_TRUE(authority.ask(a_worker(), kStart).is<Nothing>());
    EXPECT_FALSE(authority.ask(cancel(task), kStart).appended);
  }
}

// E2: death by policy is not the submitter's, so cancelling it afterwards is refused.
TEST(Cancel, IsRefusedOnceTheTaskHasEndedOtherwise) {
  SubmitTask once = a_task();
  once.max_attempts = 1;
  auto [authority, held] = a_leased_task(once);
  EXPECT_EQ(authority.ask(cancel(held.task), kStart + kTtl).refusal, Errc::wrong_state);
  EXPECT_EQ(authority.task(held.task).dead_reason, DeadReason::attempts_exhausted);
}

// D16
TEST(Requeue, MakesANewTaskThatNamesTheOld) {
  SubmitTask task = a_task("k");
  task.priority = 4;
  task.requires_capabilities = capabilities({"gpu"});
  task.max_attempts = 3;
  task.max_hold = minutes(1);
  task.retry.max_failures = 2;
  Authority authority;
  const TaskId old = authority.submit(task, kStart);
  authority.ask(cancel(old), kStart);

  const Answer answer = authority.ask(RequeueTask{.ns = "n", .task = old, .key = "again"}, kStart);
  EXPECT_EQ(answer.appended, EventType::task_created);
  const Task& fresh = authority.task(answer.as<Submitted>().task);
  EXPECT_EQ(fresh.state, TaskState::waiting);
  EXPECT_EQ(fresh.attempt, 0u);
  EXPECT_EQ(fresh.payload, authority.task(old).payload);
  EXPECT_EQ(fresh.lane, authority.task(old).lane);
  const TaskOptions& options = authority.state().options[fresh.options];
  EXPECT_EQ(options.retry_of, old);
  EXPECT_EQ(options.key, "again");
  EXPECT_EQ(options.max_attempts, 3u);
  EXPECT_EQ(options.max_hold, minutes(1));
  EXPECT_EQ(options.retry.max_failures, 2u);
  EXPECT_EQ(authority.task(old).state, TaskState::dead);

  // The key makes it repeatable; without one, each is a task of its own.
  EXPECT_TRUE(
      authority.ask(RequeueTask{.ns = "n", .task = old, .key = "again"}, kStart).as<Submitted>().existed);
  EXPECT_EQ(authority.ask(RequeueTask{.ns = "n", .task = old, .key = "k"}, kStart).refusal, Errc::conflict);
  EXPECT_FALSE(authority.ask(RequeueTask{.ns = "n", .task = old}, kStart).as<Submitted>().existed);
}

// D16
TEST(Requeue, IsForFailedAndDeadTasksOnly) {
  auto [authority, held] = a_leased_task();
  const RequeueTask request{.ns = "n", .task = held.task};
  EXPECT_EQ(authority.ask(request, kStart).refusal, Errc::wrong_state);
  authority.ask(complete(held), kStart);
  EXPECT_EQ(authority.ask(request, kStart).refusal, Errc::wrong_state);
}

// An empty payload is as good as any other.
TEST(Requeue, KeepsAnEmptyPayloadEmpty) {
  Authority authority;
  SubmitTask empty = a_task();
  empty.payload = Blob();
  const TaskId old = authority.submit(empty, kStart);
  authority.ask(cancel(old), kStart);
  const TaskId fresh = authority.ask(RequeueTask{.ns = "n", .task = old}, kStart).as<Submitted>().task;
  EXPECT_EQ(authority.task(fresh).payload, BlobRef{});
}

TEST(Pausing, IsKeptWhileTheQueueIsEmpty) {
  Authority authority;
  authority.ask(PauseQueue{"n", "q"}, kStart);
  EXPECT_EQ(authority.state().queues.used(), 1u);
  authority.submit(a_task(), kStart);
  EXPECT_EQ(authority.ask(a_worker(), kStart).as<Nothing>().why, NothingBecause::paused);
  authority.ask(cancel({kEpoch, 3}), kStart);
  authority.ask(PurgeQueue{.ns = "n", .queue = "q"}, kStart);
  EXPECT_EQ(authority.state().queues.used(), 1u);
  authority.ask(ResumeQueue{"n", "q"}, kStart);
  EXPECT_EQ(authority.state().queues.used(), 0u);
  EXPECT_EQ(authority.state().digest, 0u);
}

}  // namespace
}  // namespace baton::core
