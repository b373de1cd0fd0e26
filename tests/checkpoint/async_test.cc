// Saves in the background, and what becomes of old checkpoints.
#include "checkpoint/async_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>

#include "checkpoint/atomic_commit_protocol.h"
#include "checkpoint/catalog.h"
#include "checkpoint/distributed_checkpoint.h"
#include "checkpoint/retention.h"
#include "tests/checkpoint/faulty_storage.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Call = FaultyStorage::Call;

constexpr Duration kLong = minutes(5);

// C9: what is saved is what was there when save_async was called
TEST(AsyncSave, KeepsWhatWasThereWhenItWasAsked) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  as_ranks(2, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, *storage);
    State state(model(collective.rank(), 2), 1);
    const auto first = checkpoint.save_async(1, state.shard(), {});
    ASSERT_TRUE(first);
    state = State(model(collective.rank(), 2), 2);  // the next training step
    const auto second = checkpoint.save_async(2, state.shard(), {});
    ASSERT_TRUE(second);
    EXPECT_TRUE(first->is_done());
    EXPECT_EQ(said(first->wait(kLong)), "fine");
    EXPECT_EQ(said(checkpoint.close()), "fine");
    EXPECT_TRUE(second->is_done());
  });
  EXPECT_THAT(load(*storage, 3, "1", 1), Each("fine"));
  EXPECT_THAT(load(*storage, 3, "2", 2), Each("fine"));
}

// C9: the training loop does not wait for the disk
TEST(AsyncSave, ReturnsBeforeAnythingIsWritten) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::latch go_on(1);
  FaultyStorage blocked(*storage, [&](Call call, const std::string&) -> Status {
    if (call == Call::create) go_on.wait();
    return {};
  });
  as_ranks(1, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, blocked);
    const State state(model(0, 1), 1);
    const auto ticket = checkpoint.save_async(1, state.shard(), {});
    ASSERT_TRUE(ticket);
    EXPECT_FALSE(ticket->is_done());
    EXPECT_THAT(said(ticket->wait(milliseconds(1))), HasSubstr("DEADLINE_EXCEEDED"));
    go_on.count_down();
    EXPECT_EQ(said(ticket->wait(kLong)), "fine");
  });
}

// C9: never silent
TEST(AsyncSave, AFailureIsToldByTheTicketOrElseByTheNextCall) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::atomic<bool> is_full = true;
  FaultyStorage full(*storage, [&](Call call, const std::string&) -> Status {
    if (call == Call::create && is_full) return failure(Errc::no_space, "disk full");
    return {};
  });
  as_ranks(2, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, full);
    const State state(model(collective.rank(), 2), 1);
    const auto heard = checkpoint.save_async(1, state.shard(), {});
    EXPECT_THAT(said(heard->wait(kLong)), HasSubstr("disk full"));
    ASSERT_TRUE(checkpoint.save_async(2, state.shard(), {}));  // of the one before, somebody has heard
    EXPECT_THAT(said(checkpoint.save_async(3, state.shard(), {})),
                AllOf(HasSubstr("NO_SPACE"), HasSubstr("the save before this one failed")));
    ASSERT_TRUE(checkpoint.save_async(4, state.shard(), {}));
    EXPECT_THAT(said(checkpoint.close()), HasSubstr("disk full"));
    EXPECT_EQ(said(checkpoint.close()), "fine");
    ASSERT_TRUE(collective.barrier({"repair"}));
    is_full = false;
    ASSERT_TRUE(collective.barrier({"repaired"}));
    ASSERT_TRUE(checkpoint.save_async(5, state.shard(), {}));
    EXPECT_EQ(said(checkpoint.close()), "fine");
  });
  EXPECT_THAT(load(*storage, 2, "", 1), Each("fine"));
}

TEST(AsyncSave, OneThatIsCancelledEndsOnAllRanks) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::latch cancelled(1);
  FaultyStorage blocked(*storage, [&](Call call, const std::string&) -> Status {
    if (call == Call::append) cancelled.wait();
    return {};
  });
  as_ranks(2, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, blocked);
    const State state(model(collective.rank(), 2), 1);
    const auto ticket = checkpoint.save_async(1, state.shard(), {});
    if (collective.rank() == 1) {
      ticket->cancel();
      cancelled.count_down();
    }
    EXPECT_THAT(said(ticket->wait(kLong)), AllOf(HasSubstr("CLOSED"), HasSubstr("rank 1")));
  });
  EXPECT_FALSE(find_checkpoint(*storage, "latest"));
}

TEST(AsyncSave, AStateThatIsTooLargeIsRefusedOnAllRanks) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  as_ranks(2, [&](Collective& collective) {
    const std::uint64_t limit = collective.rank() == 0 ? 100 : 99;
    const auto saver = *AsyncSaver::create(collective, *storage, {.staging_bytes_max = limit});
    const State state({rows("w", Dtype::u8, {200}, collective.rank(), 2)}, 1);
    const auto ticket = saver->save("large", state.shard(), {});
    ASSERT_TRUE(ticket);
    EXPECT_THAT(said(ticket->wait(kLong)), AllOf(HasSubstr("TOO_LARGE"), HasSubstr("rank 1")));
  });
}

std::vector<std::uint64_t> steps_in(Storage& storage) {
  std::vector<std::uint64_t> steps;
  const auto attempts = list_attempts(storage);
  for (const Attempt& attempt : *attempts)
    if (attempt.metadata) steps.push_back(attempt.metadata->training.step);
  return steps;
}

// C12
TEST(Prune, KeepsTheLastEveryKthThePinnedAndAlwaysTheNewest) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  for (std::uint64_t step = 1; step <= 9; ++step) ASSERT_THAT(save(*storage, 1, step, step), Each("fine"));
  ASSERT_TRUE(pin(*storage, "step-2"));
  const RetentionPolicy policy{.keep_last = 2, .keep_every = 5};
  const auto planned = prune(*storage, policy, Really::no);
  ASSERT_TRUE(planned);
  EXPECT_THAT(steps_in(*storage), SizeIs(9));
  const auto removed = prune(*storage, policy, Really::yes);
  ASSERT_TRUE(removed) << said(removed);
  EXPECT_EQ(removed->checkpoints, planned->checkpoints);
  EXPECT_THAT(steps_in(*storage), ElementsAre(2, 5, 8, 9));
  ASSERT_TRUE(unpin(*storage, "step-2"));
  ASSERT_TRUE(prune(*storage, {.keep_last = 0}, Really::yes));
  EXPECT_THAT(steps_in(*storage), ElementsAre(9));
  EXPECT_THAT(load(*storage, 1, "", 9), Each("fine"));
}

// C12: files that a later checkpoint refers to stay when their own goes
TEST(Prune, KeepsFilesThatAreReferredTo) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 2, 1, 1), Each("fine"));
  ASSERT_THAT(save(*storage, 2, 2, 1, model, {.incremental = true}), Each("fine"));
  const auto removed = prune(*storage, {.keep_last = 1}, Really::yes);
  ASSERT_TRUE(removed) << said(removed);
  EXPECT_THAT(removed->checkpoints, SizeIs(1));
  EXPECT_THAT(removed->files, IsEmpty());
  EXPECT_THAT(load(*storage, 1, "", 1), Each("fine"));
}

// C12: an unfinished save is given up before its files go, so it cannot be committed any more
TEST(Garbage, OfASaveThatNobodyFinishesIsCollected) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  const CheckpointId left{"step-2", "a0001-left"};
  {
    auto writer = storage->create(directory_of(left) + "/r00000.safetensors", 3);
    ASSERT_TRUE((*writer)->append(bytes_of("abc")));
    ASSERT_TRUE((*writer)->finish());
  }
  const std::int64_t now = list_attempts(*storage)->back().modified_ms + 1000;
  EXPECT_THAT(collect_garbage(*storage, hours(1), now, Really::yes)->files, IsEmpty());
  EXPECT_THAT(collect_garbage(*storage, {}, now, Really::no)->files, SizeIs(1));
  EXPECT_THAT(collect_garbage(*storage, {}, now, Really::yes)->files, SizeIs(1));
  EXPECT_EQ(list_attempts(*storage)->back().state, AttemptState::aborted);
  EXPECT_EQ(*AtomicCommitProtocol(*storage).commit({.id = left, .world_size = 1}), Verdict::abort);
  EXPECT_THAT(load(*storage, 1, "", 1), Each("fine"));
}

// C12: what a manifest that cannot be read refers to is unknown
TEST(Garbage, IsNotCollectedWhileAManifestCannotBeRead) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  ASSERT_THAT(save(*storage, 1, 2, 2), Each("fine"));
  ASSERT_TRUE(*storage->put_if_absent("step-3/a0001-x.manifest", bytes_of("{")));
  EXPECT_THAT(said(prune(*storage, {.keep_last = 1}, Really::yes)),
              AllOf(HasSubstr("WRONG_STATE"), HasSubstr("step-3/a0001-x")));
  EXPECT_THAT(steps_in(*storage), ElementsAre(1, 2));
}

}  // namespace
}  // namespace baton::checkpoint
