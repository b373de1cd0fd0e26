// What becomes of old checkpoints, and of what failed saves left.
#include "checkpoint/retention.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "checkpoint/atomic_commit_protocol.h"
#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/references.h"
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
  ASSERT_THAT(removed->fates, SizeIs(9));
  for (const Fate& fate : removed->fates)
    EXPECT_EQ(fate.is_kept, std::ranges::count(removed->checkpoints, fate.id) == 0) << to_text(fate.id);
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

// C12: whoever looks for what `ls` shows hears why it is still there, and of nothing that went before
TEST(Garbage, ThatIsLeftIsCounted) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const CheckpointId id = *new_attempt(*storage, "step-1");
  ASSERT_TRUE((*storage->create(directory_of(id) + "/r00000.safetensors", 0))->finish());
  const std::int64_t now = list_attempts(*storage)->back().modified_ms + 1000;
  const auto collected = [&](Duration abandoned_after, std::int64_t at_ms) {
    const Removed removed = *collect_garbage(*storage, abandoned_after, at_ms, Really::yes);
    return std::vector<std::uint64_t>{removed.checkpoints.size(), removed.young, removed.remembered};
  };
  EXPECT_THAT(collected(hours(1), now), ElementsAre(0, 1, 0));
  EXPECT_THAT(collected({}, now), ElementsAre(1, 0, 1));
  EXPECT_THAT(collected({}, now), ElementsAre(0, 0, 1));
  EXPECT_THAT(collected({}, now + 2 * kRememberedFor.ms), ElementsAre(1, 0, 0));
  EXPECT_THAT(*list_attempts(*storage), IsEmpty());
}

// C12: a step that was saved again is still one step
TEST(Prune, CountsWhatIsMeantAndNotItsAttempts) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  for (const std::uint64_t step : {1, 2, 3, 3, 3}) ASSERT_THAT(save(*storage, 1, step, step), Each("fine"));
  ASSERT_TRUE(prune(*storage, {.keep_last = 2}, Really::yes));
  EXPECT_THAT(steps_in(*storage), ElementsAre(2, 3));
}

// C12: of a name the later attempt, of all the one that `latest` finds
TEST(Prune, KeepsWhatANameMeansAndTheNewestWhateverTheirSteps) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  const auto add = [&](const std::string& attempt, std::uint64_t step) {
    CheckpointMetadata metadata = *find_checkpoint(*storage, "step-1");
    metadata.id = {"best", attempt};
    metadata.training.step = step;
    EXPECT_TRUE(AtomicCommitProtocol(*storage).commit(metadata));
  };
  add("a0001-00000000000000ad", 20);
  add("a0002-00000000000000ad", 30);
  add("a0003-00000000000000ad", 5);
  ASSERT_TRUE(prune(*storage, {.keep_last = 2}, Really::yes));
  EXPECT_THAT(steps_in(*storage), ElementsAre(5, 30));
  EXPECT_EQ(find_checkpoint(*storage, "best")->training.step, 5U);
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

// C12: the number of an attempt may outgrow its four digits
TEST(Prune, KnowsTheTenThousandthAttemptForTheNewest) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const CheckpointId newest{"best", "a10000-00000000000000ad"};
  for (const CheckpointId& id : {CheckpointId{"best", "a9999-00000000000000ad"}, newest})
    ASSERT_TRUE(AtomicCommitProtocol(*storage).commit({.id = id, .world_size = 1}));
  ASSERT_TRUE(prune(*storage, {.keep_last = 1}, Really::yes));
  const auto left = list_attempts(*storage);
  ASSERT_THAT(*left, SizeIs(1));
  EXPECT_EQ(left->front().id, newest);
}

// C12: a disk of its own has a lost+found, which only root may list
TEST(Checkpoints, BesideADirectoryThatIsNotOursAreFound) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  ASSERT_THAT(save(*storage, 1, 2, 2), Each("fine"));
  ASSERT_TRUE(storage->put_if_absent("lost+found/file", bytes_of("x")));
  FaultyStorage of_somebody_else(*storage, [](Call call, const std::string& path) -> Status {
    if (call == Call::list && path == "lost+found") return failure(Errc::permission_denied, path);
    return {};
  });
  const auto listed = list_attempts(of_somebody_else);
  ASSERT_TRUE(listed) << said(listed);
  EXPECT_THAT(*listed, SizeIs(2));
  EXPECT_THAT(load(of_somebody_else, 1, "", 2), Each("fine"));
  EXPECT_TRUE(collect_garbage(of_somebody_else, {}, INT64_MAX / 2, Really::yes));
  EXPECT_TRUE(prune(of_somebody_else, {.keep_last = 1}, Really::yes));
}

// C12: somebody prunes, or takes a pin away, while others look
TEST(Checkpoints, ThatGoMeanwhileAreNoTrouble) {
  for (const std::string going : {"step-1", "pins"}) {
    const TemporaryDirectory directory;
    const auto storage = storage_in(directory);
    for (const std::uint64_t step : {1, 2}) ASSERT_THAT(save(*storage, 1, step, step), Each("fine"));
    ASSERT_TRUE(pin(*storage, "step-2"));
    FaultyStorage meanwhile(*storage, [&](Call call, const std::string& path) -> Status {
      return call == Call::list && path == going ? storage->remove_directory(going) : Status{};
    });
    const auto listed = list_attempts(meanwhile);
    ASSERT_TRUE(listed) << said(listed);
    EXPECT_THAT(*listed, SizeIs(going == "pins" ? 2 : 1));
  }
}

// C12: nor between the listing and the reading of a manifest
TEST(Checkpoints, WhoseManifestGoesMeanwhileAreGone) {
  for (const std::string prefix : {"step-2", "best"}) {
    const TemporaryDirectory directory;
    const auto storage = storage_in(directory);
    ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
    const CheckpointId newest{prefix, "a0001-00000000000000ad"};
    ASSERT_TRUE(
        AtomicCommitProtocol(*storage).commit({.id = newest, .world_size = 1, .training = {.step = 2}}));
    const auto pruned = [&](Call call, const std::string& path) -> Status {
      return call == Call::get && path == manifest_path(newest) ? storage->remove(path) : Status{};
    };
    FaultyStorage meanwhile(*storage, pruned);
    EXPECT_THAT(load(meanwhile, 2, "", 1), Each("fine"));
    ASSERT_TRUE(
        AtomicCommitProtocol(*storage).commit({.id = newest, .world_size = 1, .training = {.step = 2}}));
    const auto listed = list_attempts(meanwhile);
    ASSERT_TRUE(listed) << said(listed);
    EXPECT_THAT(*listed, SizeIs(1));
  }
}

// C12: one that goes itself holds nothing any more
TEST(Prune, TakesTheFilesOfAChainThatGoesAsAWhole) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  ASSERT_THAT(save(*storage, 1, 2, 1, model, {.incremental = true}), Each("fine"));
  ASSERT_THAT(save(*storage, 1, 3, 9), Each("fine"));
  const auto planned = prune(*storage, {.keep_last = 1}, Really::no);
  const auto removed = prune(*storage, {.keep_last = 1}, Really::yes);
  ASSERT_TRUE(planned && removed) << said(removed);
  EXPECT_EQ(removed->files, planned->files);
  ASSERT_THAT(*storage->list(""), SizeIs(1));
  EXPECT_THAT(load(*storage, 1, "", 9), Each("fine"));
}

// C12
TEST(Prune, LeavesNoEmptyDirectories) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  for (const std::uint64_t step : {1, 2, 3}) ASSERT_THAT(save(*storage, 1, step, step), Each("fine"));
  ASSERT_TRUE(prune(*storage, {.keep_last = 1}, Really::yes));
  ASSERT_THAT(*storage->list(""), SizeIs(1));
  EXPECT_EQ(storage->list("")->front().name, "step-3");
  EXPECT_THAT(save(*storage, 1, 1, 1), Each("fine"));
}

// C12: a directory goes as soon as nothing is in it, and a save may just be about to put something there
TEST(Saves, IntoADirectoryThatIsGoingSucceed) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 200; ++round) {
        const std::string path = fmt::format("step-1/a{}/file", thread);
        const auto put = storage->put_if_absent(path, bytes_of("x"));
        ASSERT_TRUE(put) << said(put);
        ASSERT_TRUE(storage->remove(path));
        const auto created = storage->create(path, 0);
        ASSERT_TRUE(created) << said(created);
        ASSERT_TRUE((*created)->finish());
        ASSERT_TRUE(storage->remove(path));
      }
    });
  }
  threads.clear();
  EXPECT_THAT(*storage->list(""), IsEmpty());
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

// C12: beside checkpoints people keep what they like
TEST(Garbage, IsAManifestThatWasBeingWrittenAndNoOtherFile) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  const std::string aside = "step-1/a0002-00000000000000ad.manifest.00000000000000be.tmp";
  for (const std::string& path :
       {aside, std::string("step-1/notes.tmp"), std::string("step-1/my.manifest.tmp")})
    ASSERT_TRUE(*storage->put_if_absent(path, bytes_of("x")));
  EXPECT_THAT(collect_garbage(*storage, {}, INT64_MAX / 2, Really::yes)->files, ElementsAre(aside));
  EXPECT_TRUE(storage->get("step-1/notes.tmp"));
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

// C6: a rank that slept through the end of its save, and finds its checkpoint pruned when it wakes up
TEST(GivingUp, HarmsNoCheckpointThatRefersToTheFiles) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 2, 1, 1), Each("fine"));
  const CheckpointId old = find_checkpoint(*storage, "step-1")->id;
  ASSERT_THAT(save(*storage, 2, 2, 1, model, {.incremental = true}), Each("fine"));
  ASSERT_TRUE(prune(*storage, {.keep_last = 1}, Really::yes));
  const Error why{Errc::lease_lost, "rank 1 was given up", {}};
  EXPECT_EQ(AtomicCommitProtocol(*storage).give_up(old, why).error(), why);
  EXPECT_THAT(load(*storage, 2, "step-2", 1), Each("fine"));
  // What nobody refers to any more goes with the next collection.
  ASSERT_THAT(save(*storage, 2, 3, 3), Each("fine"));
  ASSERT_TRUE(prune(*storage, {.keep_last = 1}, Really::yes));
  EXPECT_THAT(collect_garbage(*storage, {}, INT64_MAX / 2, Really::yes)->files, SizeIs(2));
}

// C2: a store may have thousands of checkpoints, and a job as many ranks
TEST(GivingUp, HasOneRankLookAtTheOtherCheckpoints) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  for (const std::uint64_t step : {1, 2, 3}) ASSERT_THAT(save(*storage, 4, step, step), Each("fine"));
  std::mutex mutex;
  std::vector<std::string> read;
  FaultyStorage watched(*storage, [&](Call call, const std::string& path) -> Status {
    const std::lock_guard lock(mutex);
    if (call == Call::get && path.ends_with(".manifest")) read.push_back(path.substr(0, path.find('/')));
    return {};
  });
  const auto overlapping = [](Rank, Rank) { return std::vector{rows("w", Dtype::u8, {8, 8}, 0, 2)}; };
  EXPECT_THAT(save(watched, 4, 4, 4, overlapping, {.incremental = true}), Each(HasSubstr("\"w\"")));
  EXPECT_EQ(std::ranges::count(read, "step-1"), 1);
  EXPECT_EQ(std::ranges::count(read, "step-2"), 1);
  EXPECT_THAT(*storage->list("step-4"), SizeIs(1)) << "that it was given up";
}

// C6: also of a rank that is still writing when the others have tidied up
TEST(GivingUp, RemovesWhatARankWroteLater) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const CheckpointId id = *new_attempt(*storage, "step-1");
  const Error why{Errc::no_space, "disk full", {}};
  ASSERT_TRUE((*storage->create(shard_path(id, 0), 0))->finish());
  EXPECT_EQ(AtomicCommitProtocol(*storage).give_up(id, why, 0).error(), why);
  ASSERT_TRUE((*storage->create(shard_path(id, 1), 0))->finish());
  EXPECT_EQ(AtomicCommitProtocol(*storage).give_up(id, why, 2).error(), why);
  EXPECT_TRUE(storage->open(shard_path(id, 1))) << "which is for rank 1 to see to";
  EXPECT_EQ(AtomicCommitProtocol(*storage).give_up(id, why, 1).error(), why);
  EXPECT_FALSE(storage->list(directory_of(id)));
}

// C12: and one that has begun while somebody prunes
TEST(Prune, KeepsFilesOfTheBaseOfASaveThatFoundItJustBefore) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  const auto base = find_checkpoint(*storage, "step-1");
  ASSERT_THAT(save(*storage, 1, 2, 2), Each("fine"));
  const CheckpointId under_way = *new_attempt(*storage, "step-3");
  FaultyStorage meanwhile(*storage, [&](Call call, const std::string& path) -> Status {
    const bool is_going = call == Call::remove && path == manifest_path(base->id);
    EXPECT_TRUE(!is_going || hold_files(*storage, under_way, *base));
    return {};
  });
  const auto removed = prune(meanwhile, {.keep_last = 1}, Really::yes);
  ASSERT_TRUE(removed) << said(removed);
  EXPECT_THAT(removed->checkpoints, ElementsAre(base->id));
  EXPECT_THAT(removed->files, IsEmpty());
  EXPECT_FALSE(hold_files(*storage, *new_attempt(*storage, "step-4"), *base)) << "it is gone";
}

// C12: a listing takes its time, and what is saved and pruned meanwhile makes it out of date
TEST(Garbage, IsNotWhatACheckpointRefersToThatWasCommittedMeanwhile) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  bool has_begun = false;
  FaultyStorage meanwhile(*storage, [&](Call call, const std::string& path) -> Status {
    if (call != Call::list || path != "step-1" || std::exchange(has_begun, true)) return {};
    EXPECT_THAT(save(*storage, 1, 2, 1, model, {.incremental = true}), Each("fine"));
    return prune(*storage, {.keep_last = 1}, Really::yes) ? Status{} : failure(Errc::io_failed, "no prune");
  });
  const auto removed = collect_garbage(meanwhile, {}, INT64_MAX / 2, Really::yes);
  ASSERT_TRUE(removed) << said(removed);
  EXPECT_THAT(removed->files, IsEmpty());
  EXPECT_THAT(load(*storage, 2, "step-2", 1), Each("fine"));
}

// C12: what a manifest that cannot be read refers to is unknown
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
