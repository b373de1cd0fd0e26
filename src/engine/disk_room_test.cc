// What is set aside on the disk: for completions, and for the snapshot without which the log only grows.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "engine/admission.h"
#include "engine/housekeeper.h"
#include "engine/snapshot.h"
#include "engine/snapshot_thread.h"
#include "engine/turns.h"
#include "tests/life.h"

namespace baton::engine::testing {
namespace {

constexpr std::uint64_t kSegment = kSmallLog.segment_bytes;

TEST(DiskRoom, IsSetAsideForCompletionsTheLogUntilASnapshotAndTheSnapshot) {
  DiskRoom room{.segment_bytes = kSegment, .snapshot_every = kSegment, .snapshot_to_come = 12'345};
  room.free_bytes = 3 * kSegment + kSegment + 12'345;
  EXPECT_EQ(admission_for(room), Admission::open);
  --room.free_bytes;
  EXPECT_EQ(admission_for(room), Admission::no_submissions);
}

TEST(DiskRoom, IsNotHeldFreeForSnapshotsThatAreHardlyEverMade) {
  const DiskRoom room{
      .free_bytes = 7 * kSegment, .segment_bytes = kSegment, .snapshot_every = std::uint64_t{1} << 60};
  EXPECT_EQ(admission_for(room), Admission::open);
}

// One life in which tasks are submitted, with a housekeeper beside it.
struct House {
  House(sim::SimDisk& on, HandClock& clock)
      : disk(on),
        life(disk, clock),
        housekeeper(disk, life.log().writer().segments(), life.log().writer().uuid(), newest(disk), {}) {}

  static core::Lsn newest(sim::SimDisk& on) {
    const auto snapshots = list_snapshots(on).value();
    return snapshots.empty() ? 0 : snapshots.back();
  }
  void fill_a_segment() {
    const std::size_t before = life.log().writer().segments().list().size();
    while (life.log().writer().segments().list().size() == before) {
      life.expect<core::Submitted>(a_task(std::string(3000, 'x')));
    }
  }
  void fill_the_state(int queues) {
    const std::string wide(120, 'w');
    for (int i = 0; i < queues; ++i) {
      auto task = a_task();
      task.ns = wide, task.queue = wide + std::to_string(i), task.key = task.queue;
      life.expect<core::Submitted>(task);
    }
    fill_a_segment();
  }
  void leave_free(std::uint64_t bytes) { disk.set_capacity(disk.used_bytes() + bytes); }
  Result<SnapshotMade> snapshot_and_clean_up() {
    auto made = housekeeper.make_snapshot();
    if (made && made->lsn != 0) {
      EXPECT_TRUE(life.engine().record_snapshot(made->lsn, made->digest));
      life.flush();
      EXPECT_TRUE(housekeeper.clean_up());
    }
    return made;
  }

  sim::SimDisk& disk;
  Life life;
  Housekeeper housekeeper;
};

// X6: whoever stops the coordinator does not wait for a large snapshot; what was written of it goes.
TEST(Housekeeper, LeavesASnapshotUnfinishedWhenItIsToldTo) {
  sim::SimDisk disk;
  HandClock clock;
  House house(disk, clock);
  house.fill_the_state(100);
  const auto has_begun = [&] { return disk.open("snap/unfinished.tmp").has_value(); };
  const auto refuse_to_go_on = [&]() -> Status {
    return has_begun() ? failure(Errc::closed, "it is to stop") : Status{};
  };
  EXPECT_EQ(house.housekeeper.make_snapshot(refuse_to_go_on).error().code, Errc::closed);
  EXPECT_EQ(House::newest(disk), 0u);
  EXPECT_FALSE(has_begun());
  ASSERT_TRUE(house.housekeeper.make_snapshot());
  EXPECT_GT(House::newest(disk), 0u);
}

// X7
TEST(Turns, TellOnceOfADiskThatFillsAndOnceOfOneThatHasRoomAgain) {
  sim::SimDisk disk;
  HandClock clock;
  House house(disk, clock);
  std::vector<std::string> notes;
  Turns turns({house.life.engine(), house.life.log(), disk, house.life.time(), house.housekeeper, kSmallLog,
               [&](const std::string& note) { notes.push_back(note); }});
  const auto look = [&](std::uint64_t free_bytes, int times) {
    house.leave_free(free_bytes);
    for (int i = 0; i < times; ++i) {
      clock.pass(seconds(1));
      turns.begin(false);
      turns.end();
    }
  };
  constexpr std::uint64_t kMuch = 100 << 20, kLittle = 3 * kSegment;
  look(kMuch, 3);
  EXPECT_TRUE(notes.empty());
  look(kLittle, 5);
  look(kMuch, 2);
  look(kLittle, 5);  // it wavers
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].starts_with("the disk is nearly full: " + std::to_string(kLittle) + " bytes are free"))
      << notes[0];
  look(kMuch, 70);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_TRUE(notes[1].starts_with("the disk has room again: ")) << notes[1];
}

// D24: that the loop waited for a moment and nothing came is no reason yet, or a busy log would be full of
// marks.
TEST(Turns, MarkTheEndWhenNothingHasComeForAWhile) {
  sim::SimDisk disk;
  HandClock clock;
  House house(disk, clock);
  Turns turns({house.life.engine(), house.life.log(), disk, house.life.time(), house.housekeeper, kSmallLog,
               [](const std::string&) {}});
  house.life.expect<core::Submitted>(a_task());
  const core::Lsn last = house.life.state().last;
  const auto is_quiet_for = [&](Duration time) {
    clock.pass(time);
    turns.begin(true);
    return house.life.state().last;
  };
  EXPECT_EQ(is_quiet_for(milliseconds(1)), last);
  EXPECT_EQ(is_quiet_for(milliseconds(48)), last);
  EXPECT_EQ(is_quiet_for(milliseconds(1)), last + 1);
  EXPECT_EQ(is_quiet_for(milliseconds(50)), last + 1) << "once is enough";
}

// A house whose snapshots are made when its turns ask for them.
class ADiskThatIsNearlyFull : public ::testing::Test {
 protected:
  void look(int times = 1) {
    for (int i = 0; i < times; ++i) {
      clock_.pass(seconds(1));
      turns_.begin(false);
      house_.life.flush();
      if (turns_.end()) {
        EXPECT_TRUE(house_.snapshot_and_clean_up());
        ++snapshots_;
      }
      house_.life.flush();
    }
  }
  // In batches, for each takes a block of its own.
  void handle(core::Request request) {
    if (!house_.life.log().has_room()) house_.life.flush();
    house_.life.handle(std::move(request));
  }
  Admission admission() { return house_.life.engine().admission(); }

  sim::SimDisk disk_;
  HandClock clock_;
  House house_{disk_, clock_};
  Turns turns_{{house_.life.engine(), house_.life.log(), disk_, house_.life.time(), house_.housekeeper,
                kSmallLog, [](const std::string&) {}}};
  int snapshots_ = 0;
};

// X3: on a disk with nothing else on it, where nobody could free some space.
TEST_F(ADiskThatIsNearlyFull, HasRoomAgainOnceItsTasksAreForgotten) {
  std::vector<core::TaskId> tasks;
  look();
  while (house_.life.log().writer().segments().list().size() < 20)
    tasks.push_back(house_.life.expect<core::Submitted>(a_task(std::string(3000, 'x'))).task);
  house_.leave_free(5 * kSegment);
  look(60);
  EXPECT_EQ(admission(), Admission::no_submissions);
  EXPECT_EQ(snapshots_, 1) << "of so much log, and then there is nothing to be had";

  for (const core::TaskId& task : tasks) handle(core::CancelTask{.ns = a_task().ns, .task = task});
  handle(core::PurgeQueue{.ns = a_task().ns, .queue = a_task().queue});
  look(10);
  EXPECT_EQ(house_.life.state().tasks.used(), 0u);
  EXPECT_EQ(admission(), Admission::open);
  EXPECT_LE(snapshots_, 4);
}

// X3: what is still needed takes room, and looking for more of it must not take the rest.
TEST_F(ADiskThatIsNearlyFull, IsNotFilledBySnapshotsThatFreeNothing) {
  house_.fill_a_segment(), house_.fill_a_segment();
  house_.leave_free(5 * kSegment);
  look(3600);
  EXPECT_EQ(admission(), Admission::no_submissions);
  EXPECT_GT(snapshots_, 0) << "now and then it is worth a try";
  EXPECT_GE(disk_.free_bytes().value(), 2 * kSegment);
}

// X3
TEST(Snapshot, IsNotBegunWhereItWouldUseWhatIsSetAsideForCompletions) {
  sim::SimDisk disk;
  HandClock clock;
  House house(disk, clock);
  house.fill_a_segment();
  house.leave_free(kSegment - 1);
  const auto operations = disk.operations();
  const auto refused = house.housekeeper.make_snapshot();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::no_space);
  EXPECT_NE(refused.error().message.find("free some space"), std::string::npos) << refused.error().message;
  EXPECT_EQ(disk.operations(), operations);  // it changed nothing

  house.leave_free(kSegment + 4096);  // it is small, and a part of what is set aside will do
  EXPECT_TRUE(house.snapshot_and_clean_up());
}

// X3: the last snapshot tells what the next one will take, after a restart too.
TEST(Snapshot, IsExpectedToBeAsLargeAsTheLastOne) {
  sim::SimDisk disk;
  HandClock clock;
  std::uint64_t size = 0;
  {
    House house(disk, clock);
    EXPECT_EQ(house.housekeeper.snapshot_to_come(), 0u);
    house.fill_a_segment();
    const auto made = house.snapshot_and_clean_up();
    ASSERT_TRUE(made);
    size = disk.content(snapshot_path(made->lsn)).size();
    EXPECT_EQ(house.housekeeper.snapshot_to_come(), size);
  }
  House house(disk, clock);
  EXPECT_EQ(house.housekeeper.snapshot_to_come(), size);
  house.fill_a_segment();
  house.leave_free(kSegment + size - 1);
  EXPECT_EQ(house.housekeeper.make_snapshot().error().code, Errc::no_space);
}

// A state that outgrew the last snapshot by far must not fill the disk: the writing stops at what is set
// aside, leaves nothing behind, and the next attempt knows better.
TEST(Snapshot, StopsBeforeItUsesWhatIsSetAsideWhenItGrowsBeyondExpectation) {
  sim::SimDisk disk;
  HandClock clock;
  House house(disk, clock);
  house.fill_the_state(12'000);
  house.leave_free(3 * kSegment + (2 << 20));
  std::uint64_t least = UINT64_MAX;
  disk.before_operation = [&] { least = std::min(least, disk.free_bytes().value()); };
  EXPECT_EQ(house.housekeeper.make_snapshot().error().code, Errc::no_space);
  disk.before_operation = {};
  EXPECT_GE(least, 3 * kSegment);
  EXPECT_LT(least, 3 * kSegment + (1 << 20));  // it was begun
  EXPECT_EQ(disk.free_bytes(), 3 * kSegment + (2 << 20));
  EXPECT_GT(house.housekeeper.snapshot_to_come(), std::uint64_t{1} << 20);

  const auto operations = disk.operations();
  EXPECT_EQ(house.housekeeper.make_snapshot().error().code, Errc::no_space);
  EXPECT_EQ(disk.operations(), operations);
  house.leave_free(100 << 20);
  EXPECT_TRUE(house.snapshot_and_clean_up());
}

// While it is written, what is free becomes less, and what is asked for with it: submissions that were let in
// before are let in all the time.
TEST(Snapshot, DoesNotShutSubmissionsOutWhileItIsMade) {
  sim::SimDisk disk;
  HandClock clock;
  House house(disk, clock);
  house.fill_the_state(200);
  ASSERT_TRUE(house.snapshot_and_clean_up());
  const std::uint64_t expected = house.housekeeper.snapshot_to_come();
  house.fill_a_segment();
  const auto admission = [&] {
    return admission_for({.free_bytes = disk.free_bytes().value(),
                          .segment_bytes = kSegment,
                          .snapshot_to_come = house.housekeeper.snapshot_to_come()});
  };
  constexpr std::uint64_t kGrowth = 4096;  // of one snapshot over the one before
  house.leave_free(3 * kSegment + expected + kGrowth);
  ASSERT_GT(expected, 2 * kGrowth);
  ASSERT_EQ(admission(), Admission::open);
  disk.before_operation = [&] { EXPECT_EQ(admission(), Admission::open); };
  ASSERT_TRUE(house.housekeeper.make_snapshot());
  disk.before_operation = {};
  EXPECT_EQ(admission(), Admission::open);
}

// X5: leases and completions go on, and the log with them, until it fills the disk if no snapshot is made.
TEST(Snapshot, IsDueOnADiskThatIsNearlyFullAfterAsMuchLogAsIsSetAsideForIt) {
  sim::SimDisk disk;
  HandClock clock;
  House house(disk, clock);
  Turns turns({house.life.engine(), house.life.log(), disk, house.life.time(), house.housekeeper, kSmallLog,
               [](const std::string&) {}});
  const auto is_due = [&](std::uint64_t free_bytes) {
    house.leave_free(free_bytes);
    clock.pass(seconds(1));
    turns.begin(false);
    return turns.end();
  };
  constexpr std::uint64_t kMuch = 100 << 20, kLittle = 3 * kSegment;
  EXPECT_FALSE(is_due(kMuch));
  for (int sealed = 0; sealed < 3; ++sealed) house.fill_a_segment();
  EXPECT_FALSE(is_due(kLittle));
  EXPECT_FALSE(is_due(kMuch));
  house.fill_a_segment();
  EXPECT_FALSE(is_due(kMuch));
  EXPECT_TRUE(is_due(kLittle));
}

// X5: within the minute after which it would be tried again anyway the log may take what has become free.
TEST(Snapshot, IsMadeSoonAfterThereIsRoomForIt) {
  sim::SimDisk disk;
  HandClock clock;
  House house(disk, clock);
  house.fill_a_segment();
  house.leave_free(0);
  std::promise<core::Lsn> made;
  SnapshotThread thread(house.housekeeper,
                        {.record =
                             [&](const SnapshotMade& snapshot) {
                               made.set_value(snapshot.lsn);
                               return true;
                             },
                         .move = [](std::span<core::MoveBlob>) { return true; },
                         .note = [&](const std::string&) { house.leave_free(100 << 20); }},
                        {.look_every = milliseconds(1)});
  auto lsn = made.get_future();
  const auto is_made_within = [&](std::chrono::milliseconds time) {
    return lsn.wait_for(time) == std::future_status::ready;
  };
  for (int looks = 0; looks < 30 && !is_made_within(std::chrono::seconds(1)); ++looks)
    thread.want();  // as the turns do
  EXPECT_TRUE(is_made_within({}));
}

// X5: each try is a replay of the log, and a disk without a quota or files left may have bytes all the same.
TEST(Snapshot, IsNotTriedAgainAtOnceWhereItIsNotRoomThatItLacked) {
  sim::SimDisk disk;
  HandClock clock;
  House house(disk, clock);
  house.fill_a_segment();
  disk.take_no_more_files();
  constexpr Duration kRetryAfter = milliseconds(50);
  constexpr int kTries = 3;
  std::atomic<int> tries = 0;
  SnapshotThread thread(house.housekeeper,
                        {.record = [](const SnapshotMade&) { return true; },
                         .move = [](std::span<core::MoveBlob>) { return true; },
                         .note = [&](const std::string&) { ++tries; }},
                        {.retry_after = kRetryAfter, .look_every = milliseconds(1)});
  const auto began = std::chrono::steady_clock::now();
  while (tries < kTries) {
    thread.want();  // as the turns do
    std::this_thread::yield();
  }
  EXPECT_GE(std::chrono::steady_clock::now() - began,
            std::chrono::milliseconds((kTries - 1) * kRetryAfter.ms));
}

}  // namespace
}  // namespace baton::engine::testing
