// How long finished tasks are kept, and where their bytes are meanwhile.
#include "core/testing.h"

namespace baton::core {
namespace {

std::vector<TaskId> finish(Authority& authority, int count, Instant now) {
  std::vector<TaskId> tasks;
  for (int i = 0; i < count; ++i) {
    tasks.push_back(authority.submit(a_task("k" + std::to_string(authority.state().last)), now));
    authority.ask(complete(authority.grant(a_worker(), now)), now);
  }
  return tasks;
}

std::vector<Lsn> overdue(const Authority& authority, Instant now) {
  const auto purged =
      overdue_for_purge(authority.state(), find_queue(authority.state(), "n", "q"), authority.moment(now));
  return purged ? purged->tasks : std::vector<Lsn>{};
}

// E4
TEST(Retention, EndsAtItsAge) {
  Authority authority({.retention_age = hours(1)});
  const auto first = finish(authority, 1, kStart);
  const auto second = finish(authority, 1, kStart + minutes(1));
  EXPECT_TRUE(overdue(authority, just_before(kStart + hours(1))).empty());
  EXPECT_EQ(overdue(authority, kStart + hours(1)), (std::vector{first[0].lsn}));
  EXPECT_EQ(overdue(authority, kStart + hours(2)), (std::vector{first[0].lsn, second[0].lsn}));
}

// E4
TEST(Retention, EndsBeyondItsCount) {
  Authority authority({.retention_count = 3});
  const auto tasks = finish(authority, 3, kStart);
  EXPECT_TRUE(overdue(authority, kStart).empty());
  finish(authority, 2, kStart);
  EXPECT_EQ(overdue(authority, kStart), (std::vector{tasks[0].lsn, tasks[1].lsn}));
}

// E4, D17: keys and leases go with the task, by an entry and not by the clock.
TEST(Retention, EndsByAnEntryThatForgetsKeyAndLeases) {
  Authority authority;
  const TaskId task = authority.submit(a_task("k"), kStart);
  const auto held = authority.grant(a_worker(), kStart);
  authority.ask(complete(held), kStart);
  const Instant much_later = kStart + days(30);
  EXPECT_EQ(authority.ask(a_task("k"), much_later).as<Submitted>().task, task);
  EXPECT_EQ(authority.ask(complete(held), much_later).as<Committed>().outcome, Ended::completed);

  authority.record(TasksPurged{overdue(authority, much_later)}, much_later);
  EXPECT_FALSE(authority.has(task));
  EXPECT_EQ(authority.ask(complete(held), much_later).refusal, Errc::not_found);
  EXPECT_EQ(authority.state().digest, 0u);
  EXPECT_EQ(authority.state().tasks.used(), 0u);
  EXPECT_EQ(authority.state().options.used(), 0u);
  EXPECT_EQ(authority.state().endings.used(), 0u);
  EXPECT_EQ(authority.state().queues.used(), 0u);
  EXPECT_EQ(authority.state().lanes.used(), 0u);
  EXPECT_EQ(authority.state().keys.size(), 0u);
}

TEST(Purge, TakesTheOldestFinishedTasksOfItsQueueOnly) {
  Authority authority;
  const auto tasks = finish(authority, 3, kStart);
  const TaskId waiting = authority.submit(a_task(), kStart);
  EXPECT_EQ(authority.ask(PurgeQueue{.ns = "n", .queue = "q", .count_max = 2}, kStart).as<Purged>().count,
            2u);
  EXPECT_FALSE(authority.has(tasks[0]));
  EXPECT_FALSE(authority.has(tasks[1]));
  EXPECT_TRUE(authority.has(tasks[2]));
  EXPECT_EQ(authority.ask(PurgeQueue{.ns = "n", .queue = "q"}, kStart).as<Purged>().count, 1u);
  const Answer nothing_left = authority.ask(PurgeQueue{.ns = "n", .queue = "q"}, kStart);
  EXPECT_EQ(nothing_left.as<Purged>().count, 0u);
  EXPECT_FALSE(nothing_left.appended);
  EXPECT_TRUE(authority.has(waiting));
}

// X3: one entry takes 1024 and no more; the rest is for the next.
TEST(Purge, IsBoundedPerEntry) {
  Authority authority({.retention_age = {}});
  finish(authority, kPurgeItemsMax + 1, kStart);
  EXPECT_EQ(overdue(authority, kStart).size(), kPurgeItemsMax);
  const PurgeQueue all{.ns = "n", .queue = "q", .count_max = UINT32_MAX};
  EXPECT_EQ(authority.ask(all, kStart).as<Purged>().count, kPurgeItemsMax);
  EXPECT_EQ(authority.ask(all, kStart).as<Purged>().count, 1u);
}

TEST(MovingBytes, ChangesWhereTheyAreAndNothingElse) {
  auto [authority, held] = a_leased_task();
  authority.ask(complete(held, "result"), kStart);
  const BlobRef payload = authority.task(held.task).payload;
  const BlobRef note = authority.state().endings[authority.task(held.task).endings].note;

  const MoveBlob move_payload{.task = held.task, .from = payload, .blob = Blob("payload")};
  EXPECT_EQ(authority.ask(move_payload, kStart).appended, EventType::blob_moved);
  EXPECT_EQ(authority.task(held.task).payload.lsn, authority.state().last);
  EXPECT_EQ(authority.task(held.task).payload.hash, payload.hash);

  const MoveBlob move_note{.task = held.task,
                           .part = BlobPart::note,
                           .lease = held.lease.lsn,
                           .from = note,
                           .blob = Blob("result")};
  EXPECT_EQ(authority.ask(move_note, kStart).appended, EventType::blob_moved);
  EXPECT_EQ(authority.state().endings[authority.task(held.task).endings].note.lsn, authority.state().last);
  EXPECT_EQ(authority.ask(complete(held, "result"), kStart).as<Committed>().outcome, Ended::completed);
  // They are no longer where they were.
  EXPECT_EQ(authority.ask(move_payload, kStart).refusal, Errc::not_found);
  EXPECT_EQ(authority.ask(move_note, kStart).refusal, Errc::not_found);
}

// Bytes that were damaged on the way are not recorded as the good ones.
TEST(MovingBytes, IsRefusedForOtherBytes) {
  Authority authority;
  const TaskId task = authority.submit(a_task(), kStart);
  const BlobRef from = authority.task(task).payload;
  EXPECT_EQ(authority.ask(MoveBlob{.task = task, .from = from, .blob = Blob("pAyload")}, kStart).refusal,
            Errc::corrupt);
  EXPECT_EQ(authority.ask(MoveBlob{.task = task, .from = from, .blob = Blob("")}, kStart).refusal,
            Errc::corrupt);
}

}  // namespace
}  // namespace baton::core
