#include <gtest/gtest.h>

#include "core/event_codec.h"
#include "log/survey.h"
#include "tests/life.h"

namespace baton::engine::testing {
namespace {

std::vector<core::EventType> types_in(log::Disk& disk) {
  std::vector<core::EventType> types;
  auto survey = log::survey_log(disk, {.visitor = [&](const log::Record& record) -> Status {
                                  types.push_back(static_cast<core::EventType>(record.type));
                                  return {};
                                }});
  EXPECT_TRUE(survey.has_value());
  return types;
}

// T1, T2, T7: there is one way to change anything: whatever a request does to the state is an entry in the
// one log.
TEST(Engine, ChangesNothingWithoutAnEntry) {
  sim::SimDisk disk;
  HandClock clock;
  Life life(disk, clock);
  const auto granted = [&] {
    life.expect<core::Submitted>(a_task());
    return life.expect<core::Granted>(a_lease());
  }();
  const core::Request requests[] = {
      a_task(),
      a_lease(),
      core::ExtendLease{.ns = "n", .task = granted.task, .lease = granted.lease},
      core::CancelTask{.ns = "other", .task = granted.task},
      a_completion(granted),
      a_completion(granted),
      core::PauseQueue{.ns = "n", .queue = "q"},
      core::PauseQueue{.ns = "n", .queue = "q"},
      a_lease(),
      core::PurgeQueue{.ns = "n", .queue = "q"}};
  for (const core::Request& request : requests) {
    const core::Lsn last = life.state().last;
    const std::uint64_t digest = life.state().digest;
    (void)life.ask(request);
    EXPECT_EQ(life.state().digest != digest, life.state().last != last);
    EXPECT_LE(life.state().last, last + 1);
  }
}

// T18, T19: whoever looks at the workers sees those that were heard of in the last ten minutes.
TEST(Engine, ForgetsAWorkerSoonAfterTenSilentMinutes) {
  sim::SimDisk disk;
  HandClock clock;
  Life life(disk, clock);
  life.turn();
  clock.pass(seconds(30));
  life.turn();
  life.engine().heartbeat("n", "w", 1, {});
  for (int looks = 0; looks < 600; ++looks) {
    clock.pass(seconds(1));
    life.turn();
    ASSERT_EQ(life.engine().workers().size(), 1u) << looks;
  }
  for (int looks = 0; looks < 60; ++looks) {
    clock.pass(seconds(1));
    life.turn();
  }
  EXPECT_EQ(life.engine().workers().size(), 0u);
}

// T35, T37: a turn may be interrupted for any length of time. What comes then is judged by the time it came.
TEST(Engine, JudgesWhatComesLaterInATurnByALaterTime) {
  sim::SimDisk disk;
  HandClock clock;
  Life life(disk, clock);
  life.expect<core::Submitted>(a_task());
  const auto granted = life.expect<core::Granted>(a_lease());
  life.turn();
  clock.pass(granted.ttl);
  life.engine().look_at_clock(life.time().now());
  life.handle(core::ExtendLease{.ns = "n", .task = granted.task, .lease = granted.lease});
  life.flush();
  const auto answers = life.answers();
  ASSERT_EQ(answers.size(), 1u);
  ASSERT_FALSE(answers[0].reply.has_value());
  EXPECT_EQ(answers[0].reply.error().code, Errc::lease_lost);
}

// T29, T30, T41, T44: validated, one entry chosen, appended, applied, and only then answered.
TEST(Engine, RecordsOneEntryForAnAcceptedRequest) {
  sim::SimDisk disk;
  HandClock clock;
  Life life(disk, clock);
  const core::Lsn before = life.state().last;
  const auto submitted = life.expect<core::Submitted>(a_task());
  EXPECT_EQ(life.state().last, before + 1);
  EXPECT_EQ(submitted.task.lsn, life.state().last);
  EXPECT_EQ(types_in(disk).back(), core::EventType::task_created);
}

// D20, D21, E1: the next request of a turn sees the one before it, but nobody hears of either before the
// flush.
TEST(Engine, AppliesAtOnceAndAnswersOnlyWhatIsDurable) {
  sim::SimDisk disk;
  HandClock clock;
  Life life(disk, clock);
  life.turn();
  life.handle(a_task(), 1);
  life.handle(a_lease(), 2);
  EXPECT_TRUE(life.answers().empty());
  life.engine();
  life.log().start_flush();
  EXPECT_TRUE(life.answers().empty());
  life.log().perform();
  const auto given = life.answers();
  ASSERT_EQ(given.size(), 2u);
  EXPECT_EQ(std::get<core::Granted>(*given[1].reply).task, std::get<core::Submitted>(*given[0].reply).task);
}

// E1, D20: a refusal, an empty answer and an answer from state rest on entries too, and wait for them.
TEST(Engine, HoldsBackEvenAnAnswerThatNeedsNoEntry) {
  sim::SimDisk disk;
  HandClock clock;
  Life life(disk, clock);
  auto keyed = a_task();
  keyed.key = "k";
  for (const int kind : {0, 1, 2}) {
    life.turn();
    life.handle(a_task("something to wait for"), 1);
    if (kind == 0) life.handle(core::CancelTask{.ns = "n", .task = core::TaskRef::by_key("unknown")}, 2);
    if (kind == 1) life.handle(core::LeaseTask{.ns = "n", .queues = {"empty"}, .worker = "w"}, 2);
    if (kind == 2) {
      life.handle(keyed, 2);
      life.handle(keyed, 3);
    }
    EXPECT_TRUE(life.answers().empty());
    life.flush();
    EXPECT_EQ(life.answers().size(), kind == 2 ? 3u : 2u);
  }
}

// T31, T42, D22, T63: a flush that fails answers nobody, then or later.
TEST(Engine, AnswersNobodyAfterAFlushThatFailed) {
  for (const auto fault : {sim::SyncFault::keeps_cache, sim::SyncFault::drops_cache}) {
    sim::SimDisk disk;
    HandClock clock;
    Life life(disk, clock);
    life.turn();
    life.handle(a_task());
    disk.fail_sync(disk.syncs() + 1, fault);
    life.flush();
    EXPECT_FALSE(life.log().failure());
    EXPECT_TRUE(life.answers().empty());
    life.flush();  // nothing follows a failed one
    EXPECT_TRUE(life.answers().empty());
  }
}

// X2, T42: what a failed sync left in the cache is not there after a restart.
TEST(Engine, ReadsFromTheMediumAfterAFailedSync) {
  sim::SimDisk disk;
  HandClock clock;
  {
    Life life(disk, clock);
    life.expect<core::Submitted>(a_task());
    life.turn();
    life.handle(a_task());
    disk.fail_sync(disk.syncs() + 1, sim::SyncFault::keeps_cache);
    life.flush();
  }
  disk.crash([] { return false; });
  Life again(disk, clock);
  EXPECT_EQ(again.state().tasks.used(), 1u);
}

// T65, E3, T61: replay, then expire by the present time, then requests; unpaced.
TEST(Engine, RecordsEveryExpiredLeaseBeforeTheFirstRequest) {
  sim::SimDisk disk;
  HandClock clock;
  constexpr int kTasks = 3000;  // more than one turn would record
  {
    Life life(disk, clock, {.due_per_turn = 16});
    for (int i = 0; i < kTasks; ++i) {
      life.expect<core::Submitted>(a_task());
      life.expect<core::Granted>(a_lease());
    }
  }
  clock.pass(hours(1));
  Life life(disk, clock, {.due_per_turn = 16});
  EXPECT_EQ(life.state().leases.used(), 0u);
  EXPECT_EQ(life.state().queues[1].count(core::TaskState::waiting), std::uint64_t{kTasks});
}

// T60, D33: a turn records a bounded number of expiries, yet none of the leases it has not come to is
// honoured.
TEST(Engine, ChecksALeaseAtUseEvenIfItsExpiryIsNotRecordedYet) {
  sim::SimDisk disk;
  HandClock clock;
  Life life(disk, clock, {.due_per_turn = 1});
  std::vector<core::Granted> granted;
  for (int i = 0; i < 5; ++i) {
    life.expect<core::Submitted>(a_task());
    granted.push_back(life.expect<core::Granted>(a_lease()));
  }
  clock.pass(seconds(10));
  life.turn();
  EXPECT_LE(life.engine().next_due().value(), life.time().now());
  EXPECT_EQ(life.state().leases.used(), 4u);
  const auto late = life.ask(a_completion(granted[4]));
  EXPECT_TRUE(std::holds_alternative<core::Cancelled>(*late.reply));
  const auto extended =
      life.ask(core::ExtendLease{.ns = "n", .task = granted[3].task, .lease = granted[3].lease});
  EXPECT_EQ(extended.reply.error().code, Errc::lease_lost);
}

// D3: the loop read the time after a pause, so a lease that ran out during it is gone.
TEST(Engine, JudgesByTheTimeAfterAPause) {
  sim::SimDisk disk;
  HandClock clock;
  Life life(disk, clock);
  life.expect<core::Submitted>(a_task());
  const auto granted = life.expect<core::Granted>(a_lease(seconds(10)));
  core::Request waiting = a_completion(granted);  // sent in time, handled after the process was stopped
  clock.pass(minutes(2));
  EXPECT_TRUE(std::holds_alternative<core::Cancelled>(*life.ask(waiting).reply));
}

// D2, T58: the wall clock may jump while the coordinator runs; T goes on as if nothing had happened.
TEST(CoordinatorTime, IgnoresTheWallClockWhileItRuns) {
  HandClock clock;
  CoordinatorTime time(clock, Instant{});
  const Instant start = time.now();
  clock.wall_time = Instant{0};
  clock.boot_time = clock.boot_time + seconds(3);
  EXPECT_EQ(time.now(), start + seconds(3));
  clock.wall_time = start + days(3650);
  EXPECT_EQ(time.now(), start + seconds(3));
}

// D2, T35: after a restart under a clock set back, T goes on from the log, so nothing that expired comes
// back.
TEST(CoordinatorTime, NeverRunsBackAcrossARestart) {
  sim::SimDisk disk;
  HandClock clock;
  Instant last;
  {
    Life life(disk, clock);
    clock.pass(hours(1));
    life.expect<core::Submitted>(a_task());
    last = life.state().time;
  }
  clock.wall_time = kStart - days(400);
  Life life(disk, clock);
  EXPECT_GE(life.time().now(), last);
}

// T5, T6, T20, T27: the registry and the cache are gone after a restart, and nothing of the truth with them.
TEST(Engine, LosesOnlySoftStateInACrash) {
  sim::SimDisk disk;
  HandClock clock;
  std::uint64_t digest = 0;
  {
    Life life(disk, clock);
    life.engine().heartbeat("n", "w", 3, {});
    life.expect<core::Submitted>(a_task());
    digest = life.state().digest;
    EXPECT_EQ(life.engine().workers().size(), 1u);
  }
  disk.crash([] { return false; });
  Life life(disk, clock);
  EXPECT_EQ(life.state().digest, digest);
  EXPECT_EQ(life.engine().workers().size(), 0u);
}

// D26: what is counted from the state is the same after a replay, not twice as much.
TEST(Engine, CountsTasksOnceHoweverOftenTheyAreReplayed) {
  sim::SimDisk disk;
  HandClock clock;
  for (int restart = 0; restart < 3; ++restart) {
    Life life(disk, clock);
    life.expect<core::Submitted>(a_task());
    EXPECT_EQ(life.state().queues[1].count(core::TaskState::waiting),
              static_cast<std::uint64_t>(restart + 1));
  }
}

// T64, T66: a restart adds its epoch and what time brought about, and changes nothing that was written.
TEST(Engine, AddsNothingButItsEpochWhenItRestarts) {
  sim::SimDisk disk;
  HandClock clock;
  {
    Life(disk, clock).expect<core::Submitted>(a_task());
  }
  const auto before = types_in(disk);
  const Bytes segment = disk.content("wal/0000000000000001.seg");
  {
    const Life life(disk, clock);
  }
  auto after = types_in(disk);
  ASSERT_EQ(after.size(), before.size() + 1);
  EXPECT_EQ(after.back(), core::EventType::epoch_started);
  EXPECT_EQ(disk.content("wal/0000000000000001.seg"), segment);
}

// X3, T39: when the disk is nearly full, submissions are refused and everything under way goes through; when
// it is full, what needs an entry is refused; when there is room again, all is as before.
TEST(Engine, RefusesSubmissionsFirstWhenTheDiskFills) {
  sim::SimDisk disk;
  HandClock clock;
  Life life(disk, clock);
  life.expect<core::Submitted>(a_task());
  const auto granted = life.expect<core::Granted>(a_lease());
  life.engine().admit(Admission::no_submissions);
  EXPECT_EQ(life.ask(a_task()).reply.error().code, Errc::exhausted);
  EXPECT_TRUE(life.ask(a_completion(granted)).reply);
  const core::Lsn last = life.state().last;
  life.engine().admit(Admission::closed);
  EXPECT_EQ(life.ask(core::PauseQueue{.ns = "n", .queue = "q"}).reply.error().code, Errc::exhausted);
  EXPECT_EQ(life.state().last, last);
  life.engine().admit(Admission::open);
  EXPECT_TRUE(life.ask(a_task()).reply);
}

}  // namespace
}  // namespace baton::engine::testing
