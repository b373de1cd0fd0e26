// Saves in the background, and what becomes of old checkpoints.
#include "checkpoint/async_saver.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <latch>

#include "checkpoint/atomic_commit_protocol.h"
#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
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

// C2, C9: nobody waits for a rank that cannot save
TEST(AsyncSave, OfARankThatHasNothingToSaveFailsForAll) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  as_ranks(2, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, *storage);
    const State state(model(collective.rank(), 2), 1);
    const Error why{Errc::invalid_request, "the state makes no sense", {}};
    const auto ticket = collective.rank() == 1 ? checkpoint.refuse_async(1, why, {})
                                               : checkpoint.save_async(1, state.shard(), {});
    ASSERT_TRUE(ticket);
    EXPECT_THAT(said(ticket->wait(kLong)), HasSubstr("rank 1: the state makes no sense"));
    EXPECT_FALSE(ticket->is_committed());
    const auto next = checkpoint.save_async(2, state.shard(), {});
    ASSERT_TRUE(next);
    EXPECT_EQ(said(next->wait(kLong)), "fine");
    EXPECT_TRUE(next->is_committed());
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

// C2: a rank that is told of an old failure does not leave the others waiting
TEST(AsyncSave, AFailureThatOneRankHasNotHeardOfEndsTheNextSaveForAll) {
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
    const auto first = checkpoint.save_async(1, state.shard(), {});
    if (collective.rank() == 0) {
      EXPECT_THAT(said(first->wait(kLong)), HasSubstr("disk full"));
      is_full = false;
      const auto second = checkpoint.save_async(2, state.shard(), {});
      EXPECT_THAT(said(second->wait(kLong)), AllOf(HasSubstr("rank 1"), HasSubstr("the save before")));
    } else {
      EXPECT_THAT(said(checkpoint.save_async(2, state.shard(), {})), HasSubstr("the save before this one"));
    }
    EXPECT_EQ(said(checkpoint.save(3, state.shard(), {})), "fine");
  });
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
  const CheckpointId left{"step-2", "a0001-00000000000000ef"};
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
// C12: a step that was saved again is still one step
TEST(Prune, CountsWhatIsMeantAndNotItsAttempts) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  for (const std::uint64_t step : {1, 2, 3, 3, 3}) ASSERT_THAT(save(*storage, 1, step, step), Each("fine"));
  ASSERT_TRUE(prune(*storage, {.keep_last = 2}, Really::yes));
  EXPECT_THAT(steps_in(*storage), ElementsAre(2, 3));
}

// C12: one whose files are gone is nothing to rely on
TEST(Prune, KeepsAnOlderOneInPlaceOfOneThatIsNotThere) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  for (const std::uint64_t step : {1, 2, 3}) ASSERT_THAT(save(*storage, 1, step, step), Each("fine"));
  ASSERT_TRUE(storage->remove(find_checkpoint(*storage, "latest")->shards[0].path));
  ASSERT_TRUE(prune(*storage, {.keep_last = 1}, Really::yes));
  EXPECT_THAT(steps_in(*storage), ElementsAre(2, 3));
}

// C12: whoever names the wrong directory loses nothing
TEST(Garbage, IsOnlyWhatABatonHasMade) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  for (const char* path : {"proj/app-data/f", "proj/a1-b/f", "proj/a0001-0123456789abcdeg/f", "proj/a0001-x"})
    ASSERT_TRUE(storage->put_if_absent(path, bytes_of("mine")));
  EXPECT_THAT(collect_garbage(*storage, {}, INT64_MAX / 2, Really::yes)->checkpoints, IsEmpty());
  EXPECT_TRUE(storage->get("proj/app-data/f"));
  EXPECT_TRUE(storage->get("proj/a0001-x"));
}

// C12: files that grow do not change the directory they are in
TEST(Garbage, IsNotWhatIsStillBeingWritten) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const CheckpointId id = *new_attempt(*storage, "step-1");
  ASSERT_TRUE((*storage->create(directory_of(id) + "/r00000.safetensors", 0))->finish());
  const std::string path = directory.path() + "/store/" + directory_of(id);
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
  const auto written = storage->list(directory_of(id))->at(0).modified_ms;
  EXPECT_THAT(collect_garbage(*storage, hours(1), written + 1000, Really::yes)->checkpoints, IsEmpty());
  EXPECT_THAT(collect_garbage(*storage, hours(1), written + hours(2).ms, Really::yes)->checkpoints,
              SizeIs(1));
}

// C12: nor what a save that is under way refers to
TEST(Prune, KeepsFilesOfTheBaseOfASaveThatIsUnderWay) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  const auto pruned_meanwhile = [&](Call call, const std::string& path) -> Status {
    if (call != Call::put || !path.ends_with(".manifest") || !path.starts_with("step-3")) return {};
    EXPECT_THAT(save(*storage, 1, 2, 7), Each("fine"));
    return prune(*storage, {.keep_last = 1}, Really::yes) ? Status{} : failure(Errc::io_failed, "no prune");
  };
  FaultyStorage watched(*storage, pruned_meanwhile);
  EXPECT_THAT(save(watched, 1, 3, 1, model, {.incremental = true}), Each("fine"));
  EXPECT_THAT(load(*storage, 2, "step-3", 1), Each("fine"));
}

TEST(Garbage, IsNotCollectedWhileAManifestCannotBeRead) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  ASSERT_THAT(save(*storage, 1, 2, 2), Each("fine"));
  ASSERT_TRUE(*storage->put_if_absent("step-3/a0001-00000000000000ff.manifest", bytes_of("{")));
  EXPECT_THAT(said(prune(*storage, {.keep_last = 1}, Really::yes)),
              AllOf(HasSubstr("WRONG_STATE"), HasSubstr("step-3/a0001-00000000000000ff")));
  EXPECT_THAT(steps_in(*storage), ElementsAre(1, 2));
}

}  // namespace
}  // namespace baton::checkpoint
