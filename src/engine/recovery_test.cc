#include "engine/recovery.h"

#include <gtest/gtest.h>

#include "engine/backup.h"
#include "engine/housekeeper.h"
#include "engine/snapshot.h"
#include "engine/verify.h"
#include "tests/life.h"

namespace baton::engine::testing {
namespace {

// Lives of tasks, enough for several segments, with a snapshot at the end of each round if asked for.
std::uint64_t busy(sim::SimDisk& disk, HandClock& clock, int rounds, bool snapshots) {
  std::uint64_t digest = 0;
  for (int round = 0; round < rounds; ++round) {
    Life life(disk, clock, {.digest_every = 16});
    for (int i = 0; i < 60; ++i) {
      life.expect<core::Submitted>(a_task(std::string(500, static_cast<char>('a' + i % 26))));
      const auto granted = life.expect<core::Granted>(a_lease());
      if (i % 5 != 0) life.expect<core::Committed>(a_completion(granted));
      if (i % 3 == 0) clock.pass(seconds(11));
    }
    if (snapshots) {
      auto& writer = life.log().writer();
      const auto last = list_snapshots(disk).value();
      Housekeeper housekeeper(disk, writer.segments(), writer.uuid(), last.empty() ? 0 : last.back(), {});
      const auto made = housekeeper.make_snapshot();
      EXPECT_TRUE(made.has_value());
      EXPECT_TRUE(life.engine().record_snapshot(made->lsn, made->digest));
      life.flush();
      EXPECT_TRUE(housekeeper.clean_up());
    }
    digest = life.state().digest;
  }
  return digest;
}

// T4, T65, T26: replaying the log from its beginning gives the state.
TEST(Recovery, GivesTheStateFromTheLogAlone) {
  sim::SimDisk disk;
  HandClock clock;
  const std::uint64_t digest = busy(disk, clock, 3, false);
  const auto recovered = recover(disk, {.log = kSmallLog});
  ASSERT_TRUE(recovered.has_value());
  EXPECT_EQ(recovered->snapshot, 0u);
  EXPECT_EQ(recovered->state.digest, digest);
}

// T13, T66: nothing but the log is asked. Without its snapshots a directory gives the same state.
TEST(Recovery, NeedsNothingBesideTheLog) {
  sim::SimDisk disk;
  HandClock clock;
  const std::uint64_t digest = busy(disk, clock, 2, true);
  const auto snapshots = list_snapshots(disk).value();
  for (const core::Lsn lsn : snapshots) ASSERT_TRUE(disk.remove(snapshot_path(lsn)));
  const auto recovered = recover(disk, {.log = kSmallLog});
  ASSERT_TRUE(recovered.has_value()) << recovered.error().message;
  EXPECT_EQ(recovered->snapshot, 0u);
  EXPECT_EQ(recovered->state.digest, digest);
}

// D23: a snapshot is a replay kept; from it the same state comes as from the beginning.
TEST(Recovery, GivesTheSameStateFromASnapshot) {
  sim::SimDisk disk;
  HandClock clock;
  const std::uint64_t digest = busy(disk, clock, 3, true);
  const auto recovered = recover(disk, {.log = kSmallLog});
  ASSERT_TRUE(recovered.has_value());
  EXPECT_GT(recovered->snapshot, 0u);
  EXPECT_EQ(recovered->state.digest, digest);
}

// X3: a snapshot holds as many queues as there may be, in pieces of bounded size.
TEST(Snapshot, HoldsManyLanes) {
  sim::SimDisk disk;
  core::State state;
  const std::string wide(120, 'w');
  for (core::Lsn lsn = 1; lsn <= 20'000; ++lsn) {
    const std::string queue = wide + std::to_string(lsn);
    core::apply(
        state,
        core::TaskCreated{
            .ns = wide, .queue = queue, .capabilities = wide, .eligible_at = kStart, .max_attempts = 1},
        {.lsn = lsn, .time = kStart});
  }
  ASSERT_TRUE(write_snapshot(disk, {}, state));
  const auto again = read_snapshot(disk, {}, state.last);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->digest, state.digest);
  EXPECT_EQ(again->queues.used(), 20'000u);
}

// D23, X2: the older of the two snapshots does as well when the newer one is damaged.
TEST(Recovery, FallsBackToTheOlderSnapshot) {
  sim::SimDisk disk;
  HandClock clock;
  const std::uint64_t digest = busy(disk, clock, 4, true);
  const auto snapshots = list_snapshots(disk).value();
  ASSERT_EQ(snapshots.size(), 2u);
  disk.flip_bit(snapshot_path(snapshots.back()), 100, 3);
  const auto recovered = recover(disk, {.log = kSmallLog});
  ASSERT_TRUE(recovered.has_value());
  EXPECT_EQ(recovered->snapshot, snapshots.front());
  EXPECT_EQ(recovered->state.digest, digest);
  EXPECT_FALSE(recovered->notes.empty());
}

// The next snapshot takes the place of the damaged one, not of the older one on which all depends.
TEST(Housekeeper, RemovesASnapshotThatCannotBeRead) {
  for (const std::size_t damaged : {0, 1}) {
    sim::SimDisk disk;
    HandClock clock;
    busy(disk, clock, 4, true);
    const auto before = list_snapshots(disk).value();
    disk.flip_bit(snapshot_path(before[damaged]), 100, 3);
    EXPECT_EQ(verify(disk, false)->finding, Finding::damaged);
    const std::uint64_t digest = busy(disk, clock, 1, true);
    const auto after = list_snapshots(disk).value();
    ASSERT_EQ(after.size(), 2u);
    EXPECT_EQ(after[0], before[1 - damaged]);
    EXPECT_EQ(verify(disk, false)->finding, Finding::intact) << verify(disk, false)->message;
    EXPECT_EQ(recover(disk, {.log = kSmallLog})->state.digest, digest);
  }
}

// D24, T64, E10: damage to what was acknowledged is refused, not repaired; a backup is what repairs.
TEST(Recovery, RefusesDamageInsteadOfRepairingIt) {
  sim::SimDisk disk;
  HandClock clock;
  busy(disk, clock, 2, false);
  const Bytes before = disk.content("wal/0000000000000001.seg");
  disk.flip_bit("wal/0000000000000001.seg", 4096 + 64 + 30, 0);
  const Bytes damaged = disk.content("wal/0000000000000001.seg");
  const auto recovered = recover(disk, {.log = kSmallLog});
  ASSERT_FALSE(recovered.has_value());
  EXPECT_EQ(recovered.error().code, Errc::corrupt);
  EXPECT_NE(recovered.error().message.find("backup"), std::string::npos);
  EXPECT_EQ(disk.content("wal/0000000000000001.seg"), damaged);
  EXPECT_EQ(verify(disk, false)->finding, Finding::damaged);
}

// T45, D24: a batch cut off by a power failure was never acknowledged; it goes as a whole, and is kept aside.
TEST(Recovery, DropsATornBatchAsAWhole) {
  sim::SimDisk disk;
  HandClock clock;
  std::uint64_t digest = 0;
  {
    Life life(disk, clock);
    life.expect<core::Submitted>(a_task());
    digest = life.state().digest;
    life.turn();
    for (int i = 0; i < 6; ++i) life.handle(a_task(std::string(1000, 'x')));
    disk.power_off_after(disk.operations() + 1);  // the write happens, its sync does not
    life.flush();
    EXPECT_TRUE(life.answers().empty());
  }
  int sector = 0;
  disk.crash([&] { return sector++ % 2 == 0; });
  const auto recovered = recover(disk, {.log = kSmallLog});
  ASSERT_TRUE(recovered.has_value()) << recovered.error().message;
  EXPECT_EQ(recovered->state.digest, digest);
  EXPECT_TRUE(recovered->log.dropped.has_value());
  EXPECT_FALSE(disk.list("torn")->empty());
}

// T72, T56: entries that contradict each other are found, even though every checksum is right.
TEST(Recovery, RefusesEntriesThatContradictEachOther) {
  sim::SimDisk disk;
  HandClock clock;
  {
    const Life life(disk, clock);
  }
  {
    auto opened = log::open_log(disk, {.log = kSmallLog}, [](const log::Record&) { return Status(); });
    Bytes body;
    ByteWriter(body).varint(77);  // a lease of a task that never was
    ByteWriter(body).varint(78);
    opened->writer->append(5, kStart, body);
    auto flush = opened->writer->begin_flush();
    ASSERT_TRUE(opened->writer->perform(*flush));
  }
  const auto recovered = recover(disk, {.log = kSmallLog});
  ASSERT_FALSE(recovered.has_value());
  EXPECT_EQ(recovered.error().code, Errc::corrupt);
  EXPECT_EQ(verify(disk, false)->finding, Finding::contradiction);
}

// Enough tasks for several segments, forgotten soon.
void come_and_go(Life& life, HandClock& clock) {
  for (int i = 0; i < 40; ++i) {
    auto urgent = a_task(std::string(1500, 'z'));
    urgent.priority = 9;
    life.expect<core::Submitted>(urgent);
    life.expect<core::Committed>(a_completion(life.expect<core::Granted>(a_lease())));
    clock.pass(seconds(1));
  }
}

// Tasks that are kept while others come and go in rounds, with a snapshot and a clean-up after each.
class Rounds {
 public:
  Rounds() {
    options_.rules.retention_age = seconds(1);
    Life life(disk, clock_);
    for (int i = 0; i < 3; ++i) kept.push_back(life.expect<core::Submitted>(a_task("keep me")).task);
  }

  void next() {
    Life life(disk, clock_, options_);
    come_and_go(life, clock_);
    auto& writer = life.log().writer();
    const auto snapshots = list_snapshots(disk).value();
    Housekeeper housekeeper(disk, writer.segments(), writer.uuid(), snapshots.empty() ? 0 : snapshots.back(),
                            housekeeping);
    const auto made = housekeeper.make_snapshot();
    ASSERT_TRUE(made.has_value());
    ASSERT_TRUE(life.engine().record_snapshot(made->lsn, made->digest));
    life.flush();
    const std::size_t before = writer.segments().list().size();
    if (a_removal_fails) disk.fail_operation(disk.operations() + 3);  // a snapshot goes first
    auto cleaned = housekeeper.clean_up();
    disk.heal();
    ASSERT_TRUE(cleaned.has_value());
    notes = cleaned->notes;
    all_removed = cleaned->removed.has_value();
    removed += before - writer.segments().list().size();
    for (core::MoveBlob& move : cleaned->moves) life.expect<core::Accepted>(std::move(move));
  }

  // Of those that are kept.
  std::vector<std::string> payloads() {
    Life life(disk, clock_);
    std::vector<std::string> read;
    for (const core::TaskId& id : kept) {
      const auto& task = life.state().tasks[core::find_task(life.state(), "n", id)];
      const auto bytes =
          life.log().writer().segments().read(task.payload.lsn, task.payload.offset, task.payload.length);
      read.push_back(bytes ? std::string(text_of(*bytes)) : bytes.error().message);
      moved += task.payload.lsn > id.lsn;
    }
    return read;
  }

  sim::SimDisk disk;
  HousekeeperOptions housekeeping;
  std::vector<core::TaskId> kept;
  bool a_removal_fails = false;    // of a segment, in the next rounds
  bool all_removed = true;         // in the last round, of what was to be
  std::vector<std::string> notes;  // of the last round
  std::size_t removed = 0;         // segments
  std::size_t moved = 0;           // payloads that were copied forward, of those last asked for

 private:
  HandClock clock_;
  EngineOptions options_;
};

// Segments go only when two snapshots cover them and no task needs their bytes; those that are needed stay
// readable.
TEST(Housekeeper, RemovesSegmentsNobodyNeedsAndKeepsEveryPayload) {
  Rounds rounds;
  for (int round = 0; round < 12; ++round) rounds.next();
  EXPECT_GT(rounds.removed, 5u);
  EXPECT_EQ(verify(rounds.disk, false)->finding, Finding::intact);
  EXPECT_EQ(rounds.payloads(), std::vector<std::string>(3, "keep me"));
  EXPECT_EQ(rounds.moved, 3u) << "nearly nothing else was alive there";
  EXPECT_TRUE(rounds.notes.empty());
}

TEST(Housekeeper, GoesOnPastAPayloadThatIsDamaged) {  // D24
  Rounds rounds;
  rounds.next();
  const std::string segment = "wal/0000000000000001.seg";
  const Bytes content = rounds.disk.content(segment);
  rounds.disk.flip_bit(segment, text_of(content).find("keep me"), 0);
  for (int round = 0; round < 12; ++round) rounds.next();
  EXPECT_GT(rounds.removed, 5u);
  EXPECT_TRUE(rounds.disk.exists(segment));
  EXPECT_EQ(rounds.payloads(), (std::vector<std::string>{"jeep me", "keep me", "keep me"}));
  EXPECT_EQ(rounds.moved, 2u);
  ASSERT_EQ(rounds.notes.size(), 1u);
  EXPECT_TRUE(rounds.notes[0].starts_with(segment + " of the log stays, for a blob of task " +
                                          core::to_text(rounds.kept[0]) + " in it cannot be copied: "))
      << rounds.notes[0];
}

// D24: what cannot be copied takes nothing of what may be copied in a round.
TEST(Housekeeper, CopiesWhatIsBehindAPayloadThatIsDamaged) {
  Rounds rounds;
  rounds.housekeeping.moved_bytes_max = 1;  // so it is one payload a round
  rounds.next();
  const std::string segment = "wal/0000000000000001.seg";
  rounds.disk.flip_bit(segment, text_of(rounds.disk.content(segment)).find("keep me"), 0);
  for (int round = 0; round < 12; ++round) rounds.next();
  EXPECT_EQ(rounds.payloads(), (std::vector<std::string>{"jeep me", "keep me", "keep me"}));
  EXPECT_EQ(rounds.moved, 2u);
}

// X5: it may have been smaller than the limit once.
TEST(Housekeeper, CopiesWhatIsBehindAPayloadThatIsRefusedWhereItWouldGo) {
  sim::SimDisk disk;
  HandClock clock;
  EngineOptions options;
  options.rules.retention_age = seconds(1);
  Life life(disk, clock, options);
  auto& writer = life.log().writer();
  Housekeeper housekeeper(disk, writer.segments(), writer.uuid(), 0, {.moved_bytes_max = 1});
  std::vector<core::TaskId> kept;
  for (int round = 0; round < 12; ++round) {
    if (kept.size() < 2) kept.push_back(life.expect<core::Submitted>(a_task("keep me")).task);
    come_and_go(life, clock);
    const auto made = housekeeper.make_snapshot();
    ASSERT_TRUE(made.has_value());
    ASSERT_TRUE(life.engine().record_snapshot(made->lsn, made->digest));
    life.flush();
    auto cleaned = housekeeper.clean_up();
    ASSERT_TRUE(cleaned.has_value());
    for (core::MoveBlob& move : cleaned->moves)
      if (move.task != kept[0]) life.expect<core::Accepted>(std::move(move));
  }
  const auto lies_at = [&](core::TaskId task) {
    return life.state().tasks[core::find_task(life.state(), "n", task)].payload.lsn;
  };
  EXPECT_EQ(lies_at(kept[0]), kept[0].lsn);
  EXPECT_GT(lies_at(kept[1]), kept[1].lsn);
}

TEST(Housekeeper, GoesOnPastASegmentThatCannotBeRemoved) {  // D24
  Rounds rounds;
  for (int round = 0; round < 5; ++round) rounds.next();
  const std::size_t before = rounds.removed;
  rounds.a_removal_fails = true;
  rounds.next();
  EXPECT_FALSE(rounds.all_removed);
  EXPECT_GT(rounds.removed, before);
  const std::string segment = "wal/" + rounds.disk.list("wal")->front();
  rounds.a_removal_fails = false;
  rounds.next();
  EXPECT_TRUE(rounds.all_removed);
  EXPECT_FALSE(rounds.disk.exists(segment)) << "it is tried again";
}

// Whatever goes wrong, and wherever: what is left at the target is no log.
TEST(Backup, ThatFailedDoesNotLookLikeOne) {
  sim::SimDisk disk;
  HandClock clock;
  const std::uint64_t digest = busy(disk, clock, 2, true);
  const std::uint64_t operations = [&] {
    sim::SimDisk target;
    EXPECT_TRUE(copy_directory(disk, target));
    EXPECT_EQ(recover(target, {.log = kSmallLog})->state.digest, digest);
    EXPECT_EQ(copy_directory(disk, target).error().code, Errc::conflict);
    return target.operations();
  }();
  for (std::uint64_t operation = 1; operation <= operations; ++operation) {
    sim::SimDisk failing;
    failing.fail_operation(operation);
    if (copy_directory(disk, failing)) continue;  // it was one of taking away what was not there
    EXPECT_FALSE(failing.exists("CONTROL")) << operation;
    EXPECT_TRUE(copy_directory(disk, failing)) << operation;  // nothing of the first is in the way
  }
  // A copy that went bad under our hands.
  sim::SimDisk target;
  bool flipped = false;
  target.before_operation = [&] {
    const auto segments = target.list("wal");
    if (flipped || !segments || segments->size() < 2) return;
    target.flip_bit("wal/" + segments->front(), 4096 + 100, 1);
    flipped = true;
  };
  EXPECT_EQ(copy_directory(disk, target).error().code, Errc::corrupt);
  EXPECT_FALSE(target.exists("CONTROL"));
}

}  // namespace
}  // namespace baton::engine::testing
