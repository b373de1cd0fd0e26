// What goes wrong in simple checkpoint code, one test for each: none of it may happen here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "checkpoint/atomic_commit_protocol.h"
#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/safetensors.h"
#include "tests/checkpoint/faulty_storage.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

namespace fs = std::filesystem;
using Call = FaultyStorage::Call;

std::vector<std::string> files_in(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (!entry.is_directory()) files.push_back(entry.path().filename().string());
  return files;
}

// C6, 1: the manifest appears whole or not at all, and every cut of one is known to be one
TEST(Defects, AManifestThatIsCutOffIsNoCheckpoint) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  const auto id = find_checkpoint(*storage, "latest")->id;
  const Bytes manifest = *storage->get(manifest_path(id));
  for (std::size_t length = 0; length < manifest.size(); ++length)
    EXPECT_FALSE(MetadataSerializer::parse(text_of(ByteView(manifest).first(length)), "it")) << length;

  // One whose writer died while it was written has no name yet.
  FaultyStorage dying(*storage, [](Call call, const std::string&) -> Status {
    if (call == Call::put) return failure(Errc::io_failed, "died");
    return {};
  });
  EXPECT_THAT(save(dying, 1, 2, 2), Each(HasSubstr("died")));
  EXPECT_THAT(load(*storage, 1, "", 1), Each("fine"));
}

// C6, 2: a save is decided by the protocol and by nothing else
TEST(Defects, ASaveThatWasGivenUpMeanwhileDoesNotCommit) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  FaultyStorage overtaken(*storage, [&](Call call, const std::string& path) -> Status {
    if (call != Call::finish) return {};
    const auto slash = path.find('/');
    const CheckpointId id{path.substr(0, slash), path.substr(slash + 1, path.rfind('/') - slash - 1)};
    EXPECT_EQ(*AtomicCommitProtocol(*storage).abort(id, "thought dead"), Verdict::abort);
    return {};
  });
  EXPECT_THAT(save(overtaken, 2, 1, 1), Each(HasSubstr("given up")));
  EXPECT_FALSE(find_checkpoint(*storage, "latest"));
}

// C6: of a committer and an aborter one decides, and both hear which
TEST(Defects, CommitAndAbortRaceForOneName) {
  for (int round = 0; round < 50; ++round) {
    const TemporaryDirectory directory;
    const auto storage = storage_in(directory);
    CheckpointMetadata metadata{.id = {"step-1", "a0001-00000000000000ff"}, .world_size = 1};
    Result<Verdict> of_committer = Verdict::abort;
    Result<Verdict> of_aborter = Verdict::commit;
    {
      std::jthread committer([&] { of_committer = AtomicCommitProtocol(*storage).commit(metadata); });
      std::jthread aborter(
          [&] { of_aborter = AtomicCommitProtocol(*storage).abort(metadata.id, "too slow"); });
    }
    ASSERT_TRUE(of_committer);
    ASSERT_TRUE(of_aborter);
    EXPECT_EQ(*of_committer, *of_aborter);
    EXPECT_EQ(find_checkpoint(*storage, "latest").has_value(), *of_committer == Verdict::commit);
  }
}

// C6, 3: saving under the same name again harms nothing, whether it succeeds or fails
TEST(Defects, SavingUnderTheSameNameAgainLeavesTheOldOneWhole) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 2, 1, 1), Each("fine"));
  FaultyStorage failing(*storage, [](Call call, const std::string& path) -> Status {
    if (call == Call::finish && path.ends_with("r00001.safetensors"))
      return failure(Errc::io_failed, "no more disk");
    return {};
  });
  ASSERT_THAT(save(failing, 2, 1, 2), Each("IO_FAILED: rank 1: no more disk"));
  EXPECT_THAT(load(*storage, 2, "step-1", 1), Each("fine"));
  ASSERT_THAT(save(*storage, 2, 1, 3), Each("fine"));
  EXPECT_THAT(load(*storage, 2, "step-1", 3), Each("fine"));
  std::vector<AttemptState> states;
  const auto attempts = *list_attempts(*storage);
  for (const Attempt& attempt : attempts) states.push_back(attempt.state);
  EXPECT_THAT(states, ElementsAre(AttemptState::committed, AttemptState::aborted, AttemptState::committed));
}

// C8, 4: checksums are looked at when a checkpoint is loaded
TEST(Defects, WhatIsDamagedIsNotLoaded) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  const auto metadata = find_checkpoint(*storage, "latest");
  const std::string path = directory.path() + "/store/" + metadata->shards[0].path;
  const std::uint64_t at = metadata->shards[0].tensors[0].begin;
  std::FILE* file = std::fopen(path.c_str(), "r+b");
  std::fseek(file, static_cast<long>(at), SEEK_SET);
  const int byte = std::fgetc(file);
  std::fseek(file, static_cast<long>(at), SEEK_SET);
  std::fputc(byte ^ 1, file);
  std::fclose(file);
  EXPECT_THAT(load(*storage, 2, "", 1), Each(AllOf(HasSubstr("CORRUPT"), HasSubstr(metadata->shards[0].path),
                                                   HasSubstr(metadata->shards[0].tensors[0].info.name))));
}

// C11, 5: sizes are counted in 64 bits, and nobody has to hold a shard to read it
TEST(Defects, AShardMayBeLargerThanMemory) {
  const auto plan = plan_safetensors(
      {whole_tensor("w", Dtype::f64, {std::uint64_t{1} << 40}), whole_tensor("b", Dtype::u8, {1})});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->tensors[1].begin, 4096 + (std::uint64_t{8} << 40));

  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const auto large = [](Rank, Rank) {
    return std::vector{whole_tensor("w", Dtype::u8, {5 * kBlockBytes + 1})};
  };
  ASSERT_THAT(save(*storage, 1, 1, 1, large), Each("fine"));
  const auto reader = storage->open(find_checkpoint(*storage, "latest")->shards[0].path);
  std::uint64_t seen = 0;
  EXPECT_TRUE((*reader)->read({{0, (*reader)->size()}}, [&](std::uint64_t offset, ByteView piece) -> Status {
    EXPECT_EQ(offset, seen);
    EXPECT_LE(piece.size(), kBlockBytes);
    seen += piece.size();
    return {};
  }));
  EXPECT_EQ(seen, (*reader)->size());
}

// C7, 6: more ranks than there were
TEST(Defects, RanksThatGetNothingLoadNothing) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const auto few_rows = [](Rank rank, Rank ranks) {
    return std::vector{rows("w", Dtype::f32, {6, 3}, rank, ranks)};
  };
  ASSERT_THAT(save(*storage, 2, 1, 1, few_rows), Each("fine"));
  EXPECT_THAT(load(*storage, 9, "", 1, few_rows), Each("fine"));
}

// C9, 7
TEST(Defects, ATensorThatAllRanksHaveIsWrittenOnce) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const auto same = [](Rank, Rank) { return std::vector{whole_tensor("w", Dtype::f32, {100})}; };
  ASSERT_THAT(save(*storage, 4, 1, 1, same), Each("fine"));
  EXPECT_THAT(find_checkpoint(*storage, "latest")->shards, SizeIs(1));
}

// C2, 8: the error of one rank, before anything was written or after, reaches all, and all are in step
TEST(Defects, AnErrorOfOneRankReachesAllAndTheNextSaveWorks) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  as_ranks(3, [&](Collective& collective) {
    const State state(model(collective.rank(), 3), 4);
    CheckpointCoordinator coordinator(collective, *storage);
    const auto broken = coordinator.coordinate_save("step-1",
                                                    [&]() -> Result<ShardData> {
                                                      if (collective.rank() == 2)
                                                        return failure(Errc::exhausted, "out of memory");
                                                      return state.shard();
                                                    },
                                                    {});
    EXPECT_EQ(said(broken), "EXHAUSTED: rank 2: out of memory");
    EXPECT_EQ(
        said(coordinator.coordinate_save("step-2", [&]() -> Result<ShardData> { return state.shard(); }, {})),
        "fine");
  });
  EXPECT_THAT(load(*storage, 1, "", 4), Each("fine"));
}

// C2, 9
TEST(Defects, ASaveThatARankDoesNotJoinNamesIt) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  InProcessGroup group(3);
  const auto absent = *group.join(1);
  std::vector<std::string> heard(3);
  {
    std::vector<std::jthread> threads;
    for (const Rank rank : {0U, 2U}) {
      threads.emplace_back([&, rank] {
        const auto collective = *group.join(rank);
        const State state(model(rank, 3), 1);
        // The time of rank 0 is up first, whichever of them comes first.
        const Duration deadline = rank == 0 ? milliseconds(100) : minutes(5);
        heard[rank] =
            said(CheckpointCoordinator(*collective, *storage)
                     .coordinate_save("step-1", [&]() -> Result<ShardData> { return state.shard(); },
                                      {.deadline = deadline}));
      });
    }
  }
  EXPECT_THAT(heard[0], AllOf(HasSubstr("DEADLINE_EXCEEDED"), HasSubstr("save step-1 ready"),
                              HasSubstr("missing: rank 1")));
  EXPECT_EQ(heard[2], heard[0]);
}

// C3, 10: an old job that wakes up and a new one, on the same path
TEST(Defects, AnOldJobThatWakesUpCannotMixWithTheNewOne) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::string of_old;
  std::vector<std::string> of_new;
  {
    // The old job is about to commit when the new one saves the same step.
    FaultyStorage slow(*storage, [&](Call call, const std::string& path) -> Status {
      if (call == Call::put && path.ends_with(".manifest") && of_new.empty())
        of_new = save(*storage, 3, 1, 2);
      return {};
    });
    const auto heard = save(slow, 2, 1, 1);
    EXPECT_THAT(heard, Each("fine"));
  }
  EXPECT_THAT(of_new, Each("fine"));
  const auto attempts = list_attempts(*storage);
  ASSERT_THAT(*attempts, SizeIs(2));
  for (const Attempt& attempt : *attempts) {
    const std::uint64_t version = attempt.metadata->world_size == 3 ? 2 : 1;
    EXPECT_THAT(load(*storage, 2, to_text(attempt.id), version), Each("fine"));
  }
}

// C6, 11: however many ranks there were, nothing of a failed save stays
TEST(Defects, AFailedSaveOfManyRanksLeavesNothingBehind) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  FaultyStorage failing(*storage, [](Call call, const std::string& path) -> Status {
    if (call == Call::finish && path.ends_with("r00117.safetensors"))
      return failure(Errc::no_space, "disk full");
    return {};
  });
  constexpr Rank kRanks = 120;
  const auto cut = [](Rank rank, Rank ranks) {
    return std::vector{rows("w", Dtype::u8, {kRanks, 8}, rank, ranks)};
  };
  EXPECT_THAT(save(failing, kRanks, 1, 1, cut), Each("NO_SPACE: rank 117: disk full"));
  EXPECT_THAT(files_in(directory.path()),
              ::testing::ElementsAre(::testing::EndsWith(".manifest")));  // that it was given up
  EXPECT_FALSE(find_checkpoint(*storage, "latest"));
}

// C12, 12: what there is can be listed, in an order that no clock can disturb
TEST(Defects, CheckpointsAreListedByStepAndAttempt) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  for (const std::uint64_t step : {20U, 3U, 100U}) ASSERT_THAT(save(*storage, 1, step, step), Each("fine"));
  for (std::uint64_t version = 1; version <= 12; ++version)
    ASSERT_THAT(save(*storage, 1, 20, version), Each("fine"));
  const auto attempts = *list_attempts(*storage);
  ASSERT_THAT(attempts, SizeIs(15));
  EXPECT_EQ(attempts.front().metadata->training.step, 3U);
  EXPECT_EQ(attempts.back().metadata->training.step, 100U);
  EXPECT_THAT(load(*storage, 1, "step-20", 12), Each("fine"));
  EXPECT_THAT(load(*storage, 1, "", 100), Each("fine"));
}

// A named one is found without reading the manifests of all.
TEST(Defects, ACheckpointThatIsNamedIsLookedForUnderItsNameOnly) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  for (const std::uint64_t step : {1U, 2U, 3U}) ASSERT_THAT(save(*storage, 1, step, step), Each("fine"));
  std::vector<std::string> read;
  FaultyStorage watched(*storage, [&](FaultyStorage::Call call, const std::string& path) -> Status {
    if (call == FaultyStorage::Call::get) read.push_back(path);
    return {};
  });
  const auto found = find_checkpoint(watched, "step-2");
  ASSERT_TRUE(found) << said(found);
  EXPECT_THAT(read, ElementsAre(manifest_path(found->id)));
  EXPECT_EQ(find_checkpoint(watched, to_text(found->id))->id, found->id);
  EXPECT_EQ(find_checkpoint(watched, "2")->id, found->id);
  for (const char* name : {"step-4", "../store/step-2", "..", "", "/", "pins"})
    EXPECT_EQ(find_checkpoint(watched, name).error().code, Errc::not_found) << name;
}

}  // namespace
}  // namespace baton::checkpoint
