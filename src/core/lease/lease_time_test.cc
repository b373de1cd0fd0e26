// What time does to leases: deadlines, extensions, expiry, the cap on attempts.
#include "core/testing.h"

namespace baton::core {
namespace {

// T34, T50, D4: an extension moves the deadline and nothing else.
TEST(Extend, MovesTheDeadlineAndNothingElse) {
  auto [authority, held] = a_leased_task();
  const Task before = authority.task(held.task);
  const Instant now = kStart + seconds(20);
  const Answer answer = authority.ask(extend(held), now);
  EXPECT_EQ(answer.appended, EventType::lease_extended);
  EXPECT_EQ(answer.as<Extended>().ttl, kTtl);
  EXPECT_EQ(authority.lease(held.task).expiry, now + kTtl);
  EXPECT_EQ(authority.lease(held.task).granted_at, kStart);
  const Task& after = authority.task(held.task);
  EXPECT_EQ(after.state, before.state);
  EXPECT_EQ(after.attempt, before.attempt);
  EXPECT_EQ(after.since, before.since);
  EXPECT_EQ(after.place, before.place);
}

// T35, D4, D9, T60: strict at the deadline; from then on the lease is lost, for ever.
TEST(Extend, IsRefusedFromTheDeadlineOn) {
  const Instant deadline = kStart + kTtl;
  {
    auto [authority, held] = a_leased_task();
    EXPECT_EQ(authority.ask(extend(held), just_before(deadline)).appended, EventType::lease_extended);
  }
  auto [authority, held] = a_leased_task();
  const Answer late = authority.ask(extend(held), deadline);
  EXPECT_EQ(late.refusal, Errc::lease_lost);
  EXPECT_EQ(authority.log().back().type, EventType::lease_expired);  // by time, not by the request
  const Lsn last = authority.state().last;
  EXPECT_EQ(authority.ask(extend(held), deadline + hours(1)).refusal, Errc::lease_lost);
  EXPECT_EQ(authority.state().last, last);
}

// D19: the record is left out while more than two thirds of the time remain, and the durable deadline is
// told.
TEST(Extend, IsRecordedFromExactlyTwoThirdsOn) {
  const Instant two_thirds = kStart + seconds(10);  // 20 of 30 seconds are left
  auto [authority, held] = a_leased_task();
  const Answer early = authority.ask(extend(held), just_before(two_thirds));
  EXPECT_FALSE(early.appended);
  EXPECT_EQ(early.as<Extended>().ttl, milliseconds(20'001));
  EXPECT_EQ(authority.lease(held.task).expiry, kStart + kTtl);

  const Answer due = authority.ask(extend(held), two_thirds);
  EXPECT_EQ(due.appended, EventType::lease_extended);
  EXPECT_EQ(due.as<Extended>().ttl, kTtl);
}

// D19: an extension never shortens.
TEST(Extend, NeverShortensALease) {
  auto [authority, held] = a_leased_task();
  const Answer answer = authority.ask(extend(held, seconds(1)), kStart + seconds(5));
  EXPECT_FALSE(answer.appended);
  EXPECT_EQ(answer.as<Extended>().ttl, seconds(25));
}

// D31
TEST(Extend, EndsAtTheMaximumHold) {
  SubmitTask task = a_task();
  task.max_hold = seconds(40);
  auto [authority, held] = a_leased_task(task);
  EXPECT_EQ(authority.ask(extend(held), kStart + seconds(15)).as<Extended>().ttl, seconds(25));
  EXPECT_EQ(authority.lease(held.task).expiry, kStart + seconds(40));
  const Answer more = authority.ask(extend(held), kStart + seconds(39));
  EXPECT_EQ(more.refusal, Errc::hold_exceeded);
  EXPECT_EQ(authority.lease(held.task).expiry, kStart + seconds(40));
}

// D31
TEST(Lease, IsNoLongerThanTheMaximumHold) {
  SubmitTask task = a_task();
  task.max_hold = seconds(3);
  auto [authority, held] = a_leased_task(task);
  EXPECT_EQ(held.ttl, seconds(3));
  EXPECT_EQ(authority.lease(held.task).expiry, kStart + seconds(3));
}

// D18, T39: many extensions, one entry, a verdict for each.
TEST(ExtendMany, IsOneEntryWithAVerdictEach) {
  Authority authority;
  std::vector<Granted> held;
  for (int i = 0; i < 4; ++i) {
    authority.submit(a_task(), kStart);
    held.push_back(authority.grant(a_worker("w", seconds(10 * (i + 1))), kStart));
  }
  const Instant now = kStart + seconds(15);  // the first has expired, without a record so far
  ExtendLeases request{.ns = "n"};
  for (const Granted& one : held) request.items.push_back(extend(one, seconds(40)));
  request.items[2].lease.nonce ^= 1;
  request.items.push_back(ExtendLease{.task = TaskId{kEpoch, 999}, .lease = {kEpoch, 999, 1}});

  const Lsn before = authority.state().last;
  const Answer answer = authority.ask(request, now);
  EXPECT_EQ(answer.appended, EventType::leases_extended);
  EXPECT_EQ(authority.state().last, before + 1);
  const auto verdicts = answer.as<ExtendedMany>().items;
  ASSERT_EQ(verdicts.size(), 5u);
  EXPECT_EQ(verdicts[0].error().code, Errc::lease_lost);
  EXPECT_EQ(verdicts[1]->ttl, seconds(40));
  EXPECT_EQ(verdicts[2].error().code, Errc::lease_unknown);
  EXPECT_EQ(verdicts[3]->ttl, seconds(40));
  EXPECT_EQ(verdicts[4].error().code, Errc::not_found);
  EXPECT_EQ(authority.lease(held[0].task).expiry, kStart + seconds(10));
  EXPECT_EQ(authority.lease(held[1].task).expiry, now + seconds(40));
  EXPECT_EQ(authority.lease(held[2].task).expiry, kStart + seconds(30));
}

// D30, D7: what was never granted stays unknown, even while the real lease lapses.
TEST(ExtendMany, KnowsAnInventedLeaseFromALapsedOne) {
  auto [authority, held] = a_leased_task();
  ExtendLeases request{.ns = "n", .items = {extend(held)}};
  EXPECT_EQ(authority.ask(request, kStart + kTtl).as<ExtendedMany>().items[0].error().code, Errc::lease_lost);
  request.items[0].lease.nonce ^= 1;
  EXPECT_EQ(authority.ask(request, kStart + kTtl).as<ExtendedMany>().items[0].error().code,
            Errc::lease_unknown);
}

TEST(ExtendMany, RefusesALeaseThatIsNamedTwice) {
  auto [authority, held] = a_leased_task();
  const ExtendLeases request{.ns = "n", .items = {extend(held), extend(held)}};
  EXPECT_EQ(authority.ask(request, kStart + seconds(20)).refusal, Errc::invalid_request);
}

// D1, T51, T60, T61: expiry is an entry of its own, and the task waits again at once, without a lease.
TEST(Expiry, IsAnEntryThatMakesTheTaskWaitAgain) {
  auto [authority, held] = a_leased_task();
  authority.pass(just_before(kStart + kTtl));
  EXPECT_EQ(authority.task(held.task).state, TaskState::leased);
  authority.pass(kStart + kTtl);
  EXPECT_EQ(authority.log().back().type, EventType::lease_expired);
  const Task& task = authority.task(held.task);
  EXPECT_EQ(task.state, TaskState::waiting);
  EXPECT_EQ(task.lease, 0u);
  EXPECT_EQ(task.attempt, 1u);
  EXPECT_EQ(task.failures, 0u);  // T62, D15: time fails nothing
  EXPECT_EQ(active_leases(authority.state(), "n", "w"), 0u);
  EXPECT_EQ(authority.grant(a_worker(), kStart + kTtl).attempt, 2u);
}

// T60, D1: whatever a request says of an expired task, the expiry is recorded before it is decided.
TEST(Expiry, IsRecordedBeforeARequestOfTheTaskIsDecided) {
  for (const Request& request : {Request(ExtendLease{}), Request(CompleteTask{}), Request(FailTask{}),
                                 Request(ReleaseTask{}), Request(CancelTask{}), Request(RequeueTask{})}) {
    auto [authority, held] = a_leased_task();
    Request speaks = request;
    std::visit(
        [&](auto& asked) {
          if constexpr (requires { asked.task.key; }) asked.ns = "n", asked.task = held.task;
          if constexpr (requires { asked.lease.nonce; }) asked.lease = held.lease;
        },
        speaks);
    authority.ask(speaks, kStart + kTtl);
    EXPECT_EQ(authority.log()[3].type, EventType::lease_expired) << "request " << request.index();
  }
}

// D33: an expiry that is not recorded yet extends no authority, and no task is granted twice meanwhile.
TEST(Expiry, DoesNotExtendAnyAuthorityWhileItsRecordIsDelayed) {
  Authority authority;
  std::vector<Granted> held;
  for (int i = 0; i < 5; ++i) {
    authority.submit(a_task(), kStart);
    held.push_back(authority.grant(a_worker(), kStart));
  }
  const Instant late = kStart + hours(5);
  EXPECT_TRUE(authority.ask(a_worker("v"), late).is<Nothing>());
  EXPECT_TRUE(authority.ask(complete(held[3]), late).is<Cancelled>());
  EXPECT_EQ(authority.ask(extend(held[4]), late).refusal, Errc::lease_lost);
}

// T62: time takes leases away and kills what has no attempt left; it never completes, fails or grants.
TEST(Time, OnlyRevokes) {
  Authority authority;
  SubmitTask once = a_task();
  once.max_attempts = 1;
  authority.submit(once, kStart);
  authority.submit(a_task(), kStart);
  authority.grant(a_worker(), kStart);
  authority.grant(a_worker(), kStart);
  const Lsn before = authority.state().last;
  authority.pass(kStart + days(400));
  EXPECT_EQ(authority.entries_after(before),
            (std::vector{EventType::lease_expired, EventType::task_dead, EventType::lease_expired}));
  EXPECT_EQ(authority.queue("n", "q").count(TaskState::waiting), 1u);
  EXPECT_EQ(authority.queue("n", "q").count(TaskState::dead), 1u);
}

// D12, E2, D11: with the last attempt spent, the expiry is followed by the task's death, two entries in a
// turn.
TEST(AttemptCap, KillsTheTaskInTheTurnThatRecordsTheExpiry) {
  SubmitTask twice = a_task();
  twice.max_attempts = 2;
  auto [authority, held] = a_leased_task(twice);
  authority.pass(kStart + kTtl);
  EXPECT_EQ(authority.task(held.task).state, TaskState::waiting);
  const Instant now = kStart + kTtl;
  EXPECT_EQ(authority.grant(a_worker(), now).attempt, 2u);
  const Lsn before = authority.state().last;
  authority.pass(now + kTtl);
  EXPECT_EQ(authority.entries_after(before), (std::vector{EventType::lease_expired, EventType::task_dead}));
  EXPECT_EQ(authority.task(held.task).state, TaskState::dead);
  EXPECT_EQ(authority.task(held.task).dead_reason, DeadReason::attempts_exhausted);
  EXPECT_TRUE(authority.ask(a_worker(), now + kTtl).is<Nothing>());
}

// D12: before the death is recorded, nobody is granted one attempt too many.
TEST(AttemptCap, IsNeverExceededByAGrant) {
  SubmitTask once = a_task();
  once.max_attempts = 1;
  auto [authority, held] = a_leased_task(once);
  authority.ask(release(held), kStart);
  EXPECT_EQ(authority.task(held.task).state, TaskState::waiting);
  EXPECT_TRUE(authority.ask(a_worker(), kStart).is<Nothing>());
  authority.pass(kStart);
  EXPECT_EQ(authority.task(held.task).state, TaskState::dead);
}

}  // namespace
}  // namespace baton::core
