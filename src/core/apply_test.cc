#include "core/apply.h"

#include "core/testing.h"

namespace baton::core {
namespace {

bool is_refused(Authority& authority, const Event& event, Instant now, Epoch epoch = 0) {
  const ThrowOnCheck throwing;
  try {
    authority.record(event, now, epoch);
  } catch (const CheckFailure&) {
    return true;
  }
  return false;
}

// What is true must not depend on the worker registry, so it is lost on purpose.
Authority a_busy_day() {
  Authority authority;
  authority.workers.heartbeat("n", "w", 3, {}, kStart);
  for (int i = 0; i < 6; ++i) authority.submit(a_task("k" + std::to_string(i)), kStart);
  const auto first = authority.grant(a_worker(), kStart);
  const auto second = authority.grant(a_worker(), kStart);
  const auto third = authority.grant(a_worker(), kStart);
  authority.ask(complete(first, "done"), kStart + seconds(1));
  authority.ask(fail(second, "no"), kStart + seconds(1));
  authority.ask(extend(third), kStart + seconds(25));
  authority.ask(cancel(third.task), kStart + seconds(26));
  authority.ask(complete(third), kStart + seconds(27));
  authority.ask(PauseQueue{"n", "q"}, kStart + seconds(28));
  authority.ask(RequeueTask{.ns = "n", .task = third.task}, kStart + seconds(29));
  authority.ask(PurgeQueue{.ns = "n", .queue = "q", .count_max = 1}, kStart + seconds(30));
  authority.pass(kStart + hours(1));
  return authority;
}

// T5, T11, T26, T27, T28, T56, T57: the entries alone give the state, indexes included, as often as they are
// read.
TEST(Replay, GivesTheSameState) {
  const Authority authority = a_busy_day();
  for (int time = 0; time < 2; ++time) {
    const State again = replayed(authority.log());
    EXPECT_EQ(again.digest, authority.state().digest);
    EXPECT_EQ(full_digest(again), again.digest);
    EXPECT_EQ(again.last, authority.state().last);
    EXPECT_EQ(again.time, authority.state().time);
    EXPECT_EQ(again.keys.size(), authority.state().keys.size());
    EXPECT_EQ(again.expiries.size(), authority.state().expiries.size());
    const Queue& queue = again.queues[find_queue(again, "n", "q")];
    EXPECT_EQ(queue.counts, authority.queue("n", "q").counts);  // T55
  }
}

// T26: every entry changes the digest, or is one that changes no fact.
TEST(Replay, OfAnyPrefixIsTheStateOfThatMoment) {
  const Authority authority = a_busy_day();
  State state;
  std::vector<std::uint64_t> digests;
  for (const Entry& entry : authority.log()) {
    const auto event = decode(static_cast<std::uint16_t>(entry.type), entry.body);
    apply(state, *event, entry.stamp);
    EXPECT_EQ(full_digest(state), state.digest);
    digests.push_back(state.digest);
  }
  for (std::size_t count = 1; count <= digests.size(); ++count) {
    const std::vector<Entry> prefix(authority.log().begin(),
                                    authority.log().begin() + static_cast<std::ptrdiff_t>(count));
    EXPECT_EQ(replayed(prefix).digest, digests[count - 1]);
    if (count > 1) {
      EXPECT_NE(digests[count - 1], digests[count - 2]);
    }
  }
}

// Where a record lies is no fact about a task, so logs in other segments have the same digest.
TEST(Replay, DoesNotDependOnWhereBodiesLie) {
  const Authority authority = a_busy_day();
  EXPECT_EQ(replayed(authority.log(), 1 << 20).digest, authority.state().digest);
}

// T19, T20, T21: the registry is not in the log; without it, all is as true as before.
TEST(Replay, NeedsNoWorkerRegistry) {
  Authority with, without;
  with.workers.heartbeat("n", "w", 2, {}, kStart);
  for (Authority* authority : {&with, &without}) {
    authority->submit(a_task(), kStart);
    authority->ask(complete(authority->grant(a_worker(), kStart)), kStart);
  }
  EXPECT_EQ(with.state().digest, without.state().digest);
  // T16: who holds what comes from the entries alone.
  with.submit(a_task(), kStart);
  with.grant(a_worker(), kStart);
  EXPECT_EQ(active_leases(replayed(with.log()), "n", "w"), 1u);
}

// D25
TEST(Apply, TakesEachEntryOnceAndInOrder) {
  const ThrowOnCheck throwing;
  Authority authority;
  const TaskCreated created{.ns = "n", .queue = "q", .eligible_at = kStart, .max_attempts = 20};
  State state = replayed(authority.log());
  EXPECT_THROW(apply(state, created, {.lsn = 1, .epoch = kEpoch, .time = kStart}), CheckFailure);
  EXPECT_THROW(apply(state, created, {.lsn = 3, .epoch = kEpoch, .time = kStart}), CheckFailure);
  EXPECT_THROW(apply(state, created, {.lsn = 2, .epoch = kEpoch + 1, .time = kStart}), CheckFailure);
  EXPECT_THROW(apply(state, created, {.lsn = 2, .epoch = kEpoch, .time = just_before(kStart)}), CheckFailure);
  EXPECT_NO_THROW(apply(state, created, {.lsn = 2, .epoch = kEpoch, .time = kStart}));
}

// T48, T49, T67, T70, T72: what is not waiting cannot be granted, whatever the log says.
TEST(Apply, StopsOverAGrantOfWhatIsNotWaiting) {
  auto [authority, held] = a_leased_task();
  const LeaseGranted grant{.task = held.task.lsn, .attempt = 2, .expiry = kStart + hours(9), .worker = "v"};
  EXPECT_TRUE(is_refused(authority, grant, kStart));
  EXPECT_TRUE(is_refused(authority, grant, kStart + kTtl));  // D1: expired, but not by an entry
  auto [other, done] = a_leased_task();
  other.ask(complete(done), kStart);
  EXPECT_TRUE(is_refused(other, grant, kStart));
  EXPECT_TRUE(is_refused(other, LeaseGranted{.task = 999, .attempt = 1, .expiry = kStart + kTtl}, kStart));
}

// D15, D14, T72
TEST(Apply, StopsOverAGrantThatDoesNotFollow) {
  Authority authority;
  SubmitTask later = a_task();
  later.delay = seconds(1);
  const TaskId task = authority.submit(later, kStart);
  const auto grant = [&](std::uint32_t attempt, Instant expiry) {
    return LeaseGranted{.task = task.lsn, .attempt = attempt, .expiry = expiry, .worker = "w"};
  };
  const Instant now = kStart + seconds(1);
  EXPECT_TRUE(is_refused(authority, grant(0, now + kTtl), now));
  EXPECT_TRUE(is_refused(authority, grant(2, now + kTtl), now));
  EXPECT_TRUE(is_refused(authority, grant(1, now), now));
  EXPECT_TRUE(is_refused(authority, grant(1, now + kTtl), just_before(now)));
  EXPECT_FALSE(is_refused(authority, grant(1, now + kTtl), now));
}

// T35, T50, T52, T54, D5, D4, T72: by the entry's own time, whatever the clock says when it is read.
TEST(Apply, ComparesDeadlinesWithTheTimeOfTheEntry) {
  const Instant deadline = kStart + kTtl;
  const auto at_deadline = [&](auto event) {
    auto [authority, held] = a_leased_task();
    event.task = held.task.lsn;
    event.lease = held.lease.lsn;
    return is_refused(authority, event, deadline);
  };
  const auto before = [&](auto event) {
    auto [authority, held] = a_leased_task();
    event.task = held.task.lsn;
    event.lease = held.lease.lsn;
    return is_refused(authority, event, just_before(deadline));
  };
  const LeaseExtended extended{.expiry = deadline + seconds(1)};
  const TaskFailed failed{.outcome = Ended::failed, .failures = 1};
  EXPECT_TRUE(at_deadline(extended));
  EXPECT_TRUE(at_deadline(TaskCompleted{}));
  EXPECT_TRUE(at_deadline(failed));
  EXPECT_FALSE(at_deadline(LeaseExpired{}));
  EXPECT_FALSE(before(extended));
  EXPECT_FALSE(before(TaskCompleted{}));
  EXPECT_FALSE(before(failed));
  EXPECT_TRUE(before(LeaseExpired{}));
}

// T25, T52, T68, T72
TEST(Apply, StopsOverALeaseThatIsNotTheTasks) {
  Authority authority;
  authority.submit(a_task(), kStart);
  authority.submit(a_task(), kStart);
  const auto mine = authority.grant(a_worker(), kStart);
  const auto other = authority.grant(a_worker(), kStart);
  const Lsn task = mine.task.lsn, lease = other.lease.lsn;
  EXPECT_TRUE(is_refused(authority, TaskCompleted{.task = task, .lease = lease}, kStart));
  EXPECT_TRUE(is_refused(authority, TaskFailed{.task = task, .lease = lease, .failures = 1}, kStart));
  EXPECT_TRUE(is_refused(authority, LeaseExpired{.task = task, .lease = lease}, kStart + kTtl));
  EXPECT_TRUE(is_refused(authority, LeaseExtended{.task = task, .lease = lease, .expiry = kStart + hours(1)},
                         kStart));
  EXPECT_TRUE(is_refused(authority, TaskCancelled{.task = task, .lease = lease}, kStart));
}

// T53, D7, D16, T71, D11, T72
TEST(Apply, StopsOverWhatCannotHaveHappened) {
  auto [authority, held] = a_leased_task();
  const Lsn task = held.task.lsn, lease = held.lease.lsn;
  EXPECT_TRUE(is_refused(authority, TaskCancelled{.task = task, .lease = lease}, kStart));  // it is current
  EXPECT_TRUE(is_refused(authority, TasksPurged{{task}}, kStart));  // it is not finished
  EXPECT_TRUE(is_refused(authority, QueueResumed{"n", "q"}, kStart));
  EXPECT_TRUE(is_refused(authority, TaskFailed{.task = task, .lease = lease, .failures = 2}, kStart));
  authority.pass(kStart + kTtl);
  const Instant now = kStart + kTtl;
  EXPECT_FALSE(is_refused(authority, TaskCancelled{.task = task, .lease = lease}, now));
  EXPECT_TRUE(is_refused(authority, TaskCancelled{.task = task, .lease = lease}, now));  // told already
  EXPECT_FALSE(is_refused(authority, TaskDead{.task = task}, now));
  EXPECT_TRUE(is_refused(authority, TaskDead{.task = task}, now));
  EXPECT_FALSE(is_refused(authority, QueuePaused{"n", "q"}, now));
  EXPECT_TRUE(is_refused(authority, QueuePaused{"n", "q"}, now));
}

TEST(Apply, StopsWhenTimeGoesBack) {
  Authority authority;
  authority.submit(a_task(), kStart + seconds(1));
  EXPECT_TRUE(is_refused(authority, Sealed{}, kStart));
  EXPECT_FALSE(is_refused(authority, Sealed{}, kStart + seconds(1)));
}

// D32: control entries touch no task; a digest that does not fit stops everything.
TEST(ControlEntries, TouchNoTask) {
  Authority authority = a_busy_day();
  const std::uint64_t digest = authority.state().digest;
  const Instant now = authority.state().time;
  authority.record(StateDigest{digest}, now);
  authority.record(SnapshotTaken{.lsn = 5, .digest = 6}, now);
  authority.record(Sealed{}, now);
  authority.record(EpochStarted{.key = kKey}, now, kEpoch + 1);
  EXPECT_EQ(authority.state().digest, digest);
  EXPECT_TRUE(is_refused(authority, StateDigest{digest + 1}, now));
}

// D30: the epoch grows and the key stays.
TEST(ControlEntries, KeepTheKeyAndRaiseTheEpoch) {
  Authority authority;
  EXPECT_TRUE(is_refused(authority, EpochStarted{.key = kKey}, kStart, kEpoch));
  EXPECT_TRUE(is_refused(authority, EpochStarted{.key = kKey}, kStart, kEpoch - 1));
  EXPECT_TRUE(is_refused(authority, EpochStarted{.key = {1, 2}}, kStart, kEpoch + 1));
  EXPECT_FALSE(is_refused(authority, EpochStarted{.key = kKey}, kStart, kEpoch + 1));
}

// T72: outside of tools and tests, a failed check ends the process.
TEST(ApplyDeathTest, EndsTheProcessOverAnImpossibleEntry) {
  State state;
  EXPECT_DEATH(apply(state, Sealed{}, {.lsn = 2}), "internal check failed");
}

}  // namespace
}  // namespace baton::core
