// Failing, giving back, and how long it takes until a task is tried again.
#include "core/testing.h"

namespace baton::core {
namespace {

SubmitTask with(RetryPolicy retry) {
  SubmitTask task = a_task();
  task.retry = retry;
  return task;
}

// T54, D13, D15, D28
TEST(Failing, IsTriedAgainUntilThePolicyIsUsedUp) {
  Authority authority;
  const TaskId task =
      authority.submit(with({.max_failures = 3, .base = seconds(1), .jitter_percent = 0}), kStart);
  Instant now = kStart;
  for (const std::uint32_t failures : {1u, 2u}) {
    const auto held = authority.grant(a_worker(), now);
    const auto answer = authority.ask(fail(held, "x"), now).as<Committed>();
    EXPECT_EQ(answer.outcome, Ended::retried);
    EXPECT_EQ(answer.retry_at, now + seconds(failures));
    EXPECT_EQ(authority.task(task).state, TaskState::waiting);
    EXPECT_EQ(authority.task(task).lease, 0u);
    EXPECT_EQ(authority.task(task).failures, failures);
    EXPECT_EQ(authority.task(task).attempt, failures);
    EXPECT_TRUE(authority.ask(a_worker(), just_before(answer.retry_at)).is<Nothing>());
    now = answer.retry_at;
  }
  const auto last = authority.grant(a_worker(), now);
  EXPECT_EQ(authority.ask(fail(last, "x"), now).as<Committed>().outcome, Ended::failed);
  EXPECT_EQ(authority.task(task).state, TaskState::failed);
}

// D28
TEST(Failing, IsFinalWhenTheWorkerSaysSo) {
  auto [authority, held] = a_leased_task();
  FailTask request = fail(held);
  request.final = true;
  const auto answer = authority.ask(request, kStart).as<Committed>();
  EXPECT_EQ(answer.outcome, Ended::failed);
  EXPECT_EQ(answer.retry_at, Instant{});
  EXPECT_EQ(authority.task(held.task).state, TaskState::failed);
}

TEST(Failing, WaitsAsLongAsTheWorkerAsks) {
  auto [authority, held] = a_leased_task();
  FailTask request = fail(held);
  request.delay = minutes(7);
  EXPECT_EQ(authority.ask(request, kStart).as<Committed>().retry_at, kStart + minutes(7));
}

// D12: the last attempt that fails ends the task as failed, not as dead.
TEST(Failing, IsFinalAtTheLastAttempt) {
  SubmitTask once = a_task();
  once.max_attempts = 1;
  auto [authority, held] = a_leased_task(once);
  EXPECT_EQ(authority.ask(fail(held), kStart).as<Committed>().outcome, Ended::failed);
}

// D27, D15: given back, the task can be taken at once and no failure is counted.
TEST(Releasing, CountsNoFailure) {
  auto [authority, held] = a_leased_task();
  const auto answer = authority.ask(release(held), kStart).as<Committed>();
  EXPECT_EQ(answer.outcome, Ended::released);
  EXPECT_EQ(authority.task(held.task).state, TaskState::waiting);
  EXPECT_EQ(authority.task(held.task).failures, 0u);
  EXPECT_EQ(authority.task(held.task).attempt, 1u);
  EXPECT_EQ(authority.grant(a_worker(), kStart).attempt, 2u);
}

// D27, D14, T54: or it waits for as long as it was asked to, and counts no failure all the same.
TEST(Releasing, MayPutTheTaskOffForAWhile) {
  auto [authority, held] = a_leased_task();
  ReleaseTask later = release(held);
  later.delay = hours(1);
  const auto answer = authority.ask(later, kStart).as<Committed>();
  EXPECT_EQ(answer.outcome, Ended::released);
  EXPECT_EQ(answer.retry_at, kStart + hours(1));
  EXPECT_EQ(authority.task(held.task).failures, 0u);
  EXPECT_EQ(authority.ask(later, kStart).as<Committed>().retry_at, kStart + hours(1));
  EXPECT_TRUE(authority.ask(a_worker(), just_before(kStart + hours(1))).is<Nothing>());
  const State again = replayed(authority.log());
  EXPECT_EQ(again.tasks[again.ids.find(held.task.lsn)].since, kStart + hours(1));
  EXPECT_EQ(authority.grant(a_worker(), kStart + hours(1)).attempt, 2u);
}

// D13: what was drawn is in the entry, so replay finds it there whatever the policy would say today.
TEST(Jitter, IsDrawnOnceAndRecorded) {
  auto [authority, held] = a_leased_task(with({.base = seconds(100), .jitter_percent = 50}));
  const auto answer = authority.ask(fail(held), kStart).as<Committed>();
  const State again = replayed(authority.log());
  EXPECT_EQ(again.tasks[again.ids.find(held.task.lsn)].since, answer.retry_at);
  // The same decision, asked twice, draws the same.
  auto [other, held_too] = a_leased_task(with({.base = seconds(100), .jitter_percent = 50}));
  EXPECT_EQ(other.ask(fail(held_too), kStart).as<Committed>().retry_at, answer.retry_at);
}

TEST(Backoff, GrowsByTheFactorUpToTheMaximum) {
  const RetryPolicy policy{
      .base = seconds(1), .factor_percent = 300, .max = seconds(20), .jitter_percent = 0};
  const std::int64_t expected[] = {1, 3, 9, 20, 20};
  for (std::uint32_t failures = 1; failures <= 5; ++failures) {
    EXPECT_EQ(backoff(policy, failures, 12345), seconds(expected[failures - 1])) << failures;
  }
}

TEST(Backoff, StaysWithinItsJitterAndReachesBothEnds) {
  const RetryPolicy policy{.base = milliseconds(1000), .factor_percent = 100, .jitter_percent = 10};
  Duration least = days(1), most{};
  for (std::uint64_t random = 0; random < 5000; ++random) {
    const Duration wait = backoff(policy, 1, random);
    least = std::min(least, wait);
    most = std::max(most, wait);
  }
  EXPECT_EQ(least, milliseconds(900));
  EXPECT_EQ(most, milliseconds(1100));
}

TEST(Backoff, BearsTheExtremes) {
  const RetryPolicy none{.base = {}, .max = {}, .jitter_percent = 100};
  EXPECT_EQ(backoff(none, 1, UINT64_MAX), Duration{});
  EXPECT_EQ(backoff(none, UINT32_MAX, 0), Duration{});
  const RetryPolicy flat{.base = seconds(1), .factor_percent = 100, .jitter_percent = 0};
  EXPECT_EQ(backoff(flat, UINT32_MAX, 0), seconds(1));
  const RetryPolicy steep{
      .base = milliseconds(1), .factor_percent = kFactorPercentMax, .max = kDelayMax, .jitter_percent = 100};
  for (const std::uint64_t random : {std::uint64_t{0}, UINT64_MAX, UINT64_MAX / 2}) {
    for (const std::uint32_t failures : {0u, 1u, 2u, kFailuresMax, UINT32_MAX}) {
      const Duration wait = backoff(steep, failures, random);
      EXPECT_GE(wait, Duration{});
      EXPECT_LE(wait.ms, 2 * kDelayMax.ms);
    }
  }
  const RetryPolicy slow{
      .base = milliseconds(1), .factor_percent = 101, .max = kDelayMax, .jitter_percent = 0};
  EXPECT_EQ(backoff(slow, kFailuresMax, 0), milliseconds(1));  // 1 % of a millisecond rounds to none
}

}  // namespace
}  // namespace baton::core
