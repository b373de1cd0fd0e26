// What a save writes, what it refuses, and what is left when it fails.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/save_exchange.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::uint64_t bytes_in(const std::string& directory) {
  std::uint64_t sum = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.path().extension() == ".safetensors") sum += entry.file_size();
  return sum;
}

// C4, C5
TEST(Save, GivesRankZeroTheMetadata) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::vector<std::optional<CheckpointMetadata>> got(2);
  as_ranks(2, [&](Collective& collective) {
    const State state(model(collective.rank(), 2), 1);
    SaveOptions options{.training = {.step = 40, .epoch = 2, .learning_rate = 0.5, .optimizer = "adam"},
                        .sharding = {.strategy = "fsdp", .precision = "bf16", .details = {{"zero", "3"}}},
                        .custom = {{"run", "blue"}}};
    auto saved = CheckpointCoordinator(collective, *storage)
                     .coordinate_save(
                         "best",
                         [&]() -> Result<ShardData> {
                           ShardData mine = state.shard();
                           mine.objects["seed"] = "[1,2,3]";
                           mine.objects["rng/" + std::to_string(collective.rank())] =
                               std::to_string(collective.rank());
                           return mine;
                         },
                         options);
    ASSERT_TRUE(saved) << said(saved);
    got[collective.rank()] = saved->metadata;
  });
  ASSERT_TRUE(got[0]);
  EXPECT_FALSE(got[1]);
  EXPECT_EQ(got[0]->training, (TrainingMetadata{40, 2, 0.5, "adam"}));
  EXPECT_EQ(got[0]->sharding.details.at("zero"), "3");
  EXPECT_EQ(got[0]->custom.at("run"), "blue");
  EXPECT_EQ(got[0]->objects.at("seed"), "[1,2,3]");
  EXPECT_EQ(got[0]->objects.at("rng/1"), "1");
  EXPECT_EQ(got[0]->world_size, 2U);
  EXPECT_EQ(*got[0], *find_checkpoint(*storage, "best"));
}

// C9
TEST(Save, WritesReplicatedTensorsOnceAndSharesTheWork) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const auto replicated = [](Rank, Rank) {
    std::vector<TensorInfo> infos;
    for (int i = 0; i < 8; ++i)
      infos.push_back(whole_tensor("w" + std::to_string(i), Dtype::f32, {256, 1024}));
    return infos;
  };
  ASSERT_THAT(save(*storage, 4, 1, 1, replicated), Each("fine"));
  const auto metadata = find_checkpoint(*storage, "latest");
  ASSERT_TRUE(metadata);
  EXPECT_EQ(metadata->tensor_bytes(), 8U << 20);
  ASSERT_THAT(metadata->shards, SizeIs(4));
  for (const ShardMetadata& shard : metadata->shards) EXPECT_THAT(shard.tensors, SizeIs(2));
  EXPECT_THAT(load(*storage, 2, "", 1, replicated), Each("fine"));
}

TEST(Save, OfWhatIsNoWholeTensorIsRefusedOnAllRanks) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const Shape shape{8, 2};
  const auto hole = [&](Rank rank, Rank) {
    return std::vector{TensorInfo{"w", Dtype::f32, shape, {{rank * 4, 0}, {3, 2}}}};
  };
  EXPECT_THAT(save(*storage, 2, 1, 1, hole),
              Each(AllOf(HasSubstr("tensor \"w\""), HasSubstr("4 of its 16 elements are in no slice"))));
  const auto overlap = [&](Rank rank, Rank) {
    return std::vector{TensorInfo{"w", Dtype::f32, shape, {{rank * 3, 0}, {5, 2}}}};
  };
  EXPECT_THAT(save(*storage, 2, 1, 1, overlap), Each(HasSubstr("overlap")));
  const auto two_types = [&](Rank rank, Rank) {
    return std::vector{whole_tensor("w", rank == 0 ? Dtype::f32 : Dtype::f16, shape)};
  };
  EXPECT_THAT(save(*storage, 2, 1, 1, two_types),
              Each(HasSubstr("F32 [8, 2] on rank 0 and F16 [8, 2] on rank 1")));
  const auto twice = [&](Rank, Rank) {
    return std::vector{whole_tensor("w", Dtype::f32, shape), whole_tensor("w", Dtype::f32, shape)};
  };
  EXPECT_THAT(save(*storage, 1, 1, 1, twice), Each(HasSubstr("twice")));
  EXPECT_FALSE(find_checkpoint(*storage, "latest"));
}

// C9 and incremental: unchanged slices are referred to
TEST(Save, DoesNotWriteAgainWhatHasNotChanged) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 2, 1, 1), Each("fine"));
  const std::uint64_t once = bytes_in(directory.path());
  ASSERT_THAT(save(*storage, 2, 2, 1, model, {.incremental = true}), Each("fine"));
  EXPECT_EQ(bytes_in(directory.path()), once);
  EXPECT_THAT(load(*storage, 3, "step-2", 1), Each("fine"));
  ASSERT_THAT(save(*storage, 2, 3, 9, model, {.incremental = true}), Each("fine"));
  EXPECT_GT(bytes_in(directory.path()), once);
  EXPECT_THAT(load(*storage, 3, "step-3", 9), Each("fine"));
  EXPECT_THAT(load(*storage, 3, "step-2", 1), Each("fine"));
}

// C6: a damaged file is not carried on into every later checkpoint
TEST(Save, WritesAgainWhatIsDamagedWhereItWouldReferToIt) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 2, 1, 1), Each("fine"));
  const auto base = find_checkpoint(*storage, "latest");
  ASSERT_TRUE(base);
  {
    std::fstream file(directory.path() + "/store/" + base->shards[1].path,
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(base->shards[1].tensors[0].begin));
    file.put('?');
  }
  ASSERT_THAT(save(*storage, 2, 2, 1, model, {.incremental = true}), Each("fine"));
  EXPECT_THAT(load(*storage, 3, "step-2", 1), Each("fine"));
  const auto newest = find_checkpoint(*storage, "latest");
  EXPECT_EQ(newest->shards[0].path, base->shards[0].path);  // which is whole
  EXPECT_NE(newest->shards[1].path, base->shards[1].path);
}

// C4: before anything is written
TEST(Save, OfANameThatIsNoTextIsRefused) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const auto nameless = [](Rank rank, Rank) {
    return std::vector{whole_tensor(rank == 1 ? "w\xff" : "w", Dtype::u8, {1})};
  };
  EXPECT_THAT(save(*storage, 2, 1, 1, nameless),
              Each(AllOf(HasSubstr("INVALID_REQUEST: rank 1"), HasSubstr("\"w\uFFFD\" is not"))));
  as_ranks(2, [&](Collective& collective) {
    const auto saved = CheckpointCoordinator(collective, *storage)
                           .coordinate_save("step-1",
                                            [&]() -> Result<ShardData> {
                                              ShardData mine;
                                              mine.objects[collective.rank() == 1 ? "o\xff" : "o"] = "1";
                                              return mine;
                                            },
                                            {});
    EXPECT_THAT(said(saved), AllOf(HasSubstr("INVALID_REQUEST: rank 1"), HasSubstr("\"o\uFFFD\" is not")));
  });
  EXPECT_THAT(*list_attempts(*storage), SizeIs(0));
}

// C6: a checkpoint that nobody could read would also keep all others from being pruned
TEST(Save, OfWhatCannotBeReadBackIsRefused) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  EXPECT_THAT(save(*storage, 2, 1, 1, model, {.custom = {{"run", "\xff"}}}),
              Each(HasSubstr("INVALID_REQUEST")));
  const double none = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(save(*storage, 2, 2, 1, model, {.training = {.learning_rate = none}}), Each("fine"));
  EXPECT_TRUE(std::isnan(find_checkpoint(*storage, "latest")->training.learning_rate));
  EXPECT_THAT(load(*storage, 2, "", 1), Each("fine"));
}

// C4: a training loop may go to another directory
TEST(Save, GoesWhereItsStorageWasWhenItWasOpened) {
  const TemporaryDirectory directory;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  const auto made = *LocalStorage::open_directory("store");
  const auto found = *LocalStorage::open_existing("./store");
  std::filesystem::current_path(before);
  EXPECT_THAT(save(*made, 1, 1, 1), Each("fine"));
  EXPECT_THAT(load(*found, 1, "", 1), Each("fine"));
  EXPECT_THAT(load(**LocalStorage::open_existing(directory.path() + "/store"), 1, "", 1), Each("fine"));
}

// C4: states are nested, and what was saved can be read back
TEST(Save, OfWhatIsNestedGoesAsDeepAsItSays) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const auto nested = [&](std::size_t depth) {
    std::string heard;
    as_ranks(1, [&](Collective& collective) {
      ShardData mine;
      mine.objects["deep"] = std::string(depth, '[') + std::string(depth, ']');
      heard = said(CheckpointCoordinator(collective, *storage)
                       .coordinate_save("deep", [&]() -> Result<ShardData> { return std::move(mine); }, {}));
    });
    return heard;
  };
  EXPECT_EQ(nested(kObjectDepthMax), "fine");
  EXPECT_EQ(find_checkpoint(*storage, "deep")->objects.at("deep").size(), 2 * kObjectDepthMax);
  EXPECT_EQ(
      nested(kObjectDepthMax + 1),
      "INVALID_REQUEST: object \"deep\" has more than 320 arrays and objects of JSON in each other, which "
      "is the most");
}

// C4: more slices than a rank may bring to one operation, and more than it may report
TEST(Save, OfVeryManySlicesExchangesThemBesideTheShards) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const auto many = [](Rank rank, Rank) {
    std::vector<TensorInfo> infos;
    for (int i = 0; i < (rank == 0 ? 12'000 : 60'000); ++i)
      infos.push_back(whole_tensor(fmt::format("rank.{}.tensor.{}", rank, i), Dtype::u8, {1}));
    return infos;
  };
  ASSERT_THAT(save(*storage, 2, 1, 1, many), Each("fine"));
  EXPECT_THAT(load(*storage, 2, "", 1, many), Each("fine"));
  const auto entries = storage->list(directory_of(find_checkpoint(*storage, "latest")->id));
  for (const StorageEntry& entry : *entries) EXPECT_THAT(entry.name, EndsWith(".safetensors"));
}

// X5: however many ranks there are, what they tell each other fits into an operation
TEST(Save, OfManyRanksBringsLessOfEach) {
  Announcement announcement;
  for (int i = 0; i < 60'000; ++i)
    announcement.slices.push_back(whole_tensor(fmt::format("tensor.{}", i), Dtype::u8, {1}));
  for (const std::size_t ranks : {2, 64, 512, 4096}) {
    for (announcement.slices.resize(60'000); !announcement.slices.empty();
         announcement.slices.resize(announcement.slices.size() / 2))
      EXPECT_LE(encode(announcement, static_cast<Rank>(ranks)).size() * ranks * ranks, kHeardBytesMax)
          << ranks;
    EXPECT_LE(brought_max(ranks, 1) * ranks, kHeardBytesMax / 2);
    EXPECT_GT(brought_max(ranks, 1), 0U);
  }
}

// C4: also of one that was to refer to another checkpoint, which it holds until then
TEST(Save, ThatIsRefusedLeavesNothing) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 2, 1, 1), Each("fine"));
  const auto mismatched = [](Rank rank, Rank) {
    return std::vector{whole_tensor("tensor", rank == 0 ? Dtype::u8 : Dtype::i8, {1})};
  };
  EXPECT_THAT(save(*storage, 2, 2, 2, mismatched, {.incremental = true}), Each(HasSubstr("CONFLICT")));
  const auto malformed = [](Rank rank, Rank) {
    return std::vector{whole_tensor(rank == 1 ? "" : "tensor", Dtype::u8, {1})};
  };
  EXPECT_THAT(save(*storage, 2, 3, 3, malformed, {.incremental = true}), Each(HasSubstr("rank 1")));
  const auto attempts = *list_attempts(*storage);
  for (const Attempt& attempt : attempts)
    EXPECT_NE(attempt.state, AttemptState::undecided) << to_text(attempt.id);
}

// C2, C4
TEST(Save, OfVeryManySlicesThatFailsLeavesNothing) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const auto many = [](Rank rank, Rank) {
    std::vector<TensorInfo> infos;
    for (int i = 0; i < 60'000; ++i)
      infos.push_back(whole_tensor(fmt::format("tensor.{}", i), rank == 0 ? Dtype::u8 : Dtype::i8, {1}));
    return infos;
  };
  EXPECT_THAT(save(*storage, 2, 1, 1, many),
              Each(AllOf(HasSubstr("tensor.0"), HasSubstr("rank 0"), HasSubstr("rank 1"))));
  const auto attempts = *list_attempts(*storage);
  ASSERT_EQ(attempts.size(), 1U);
  EXPECT_EQ(attempts[0].state, AttemptState::aborted);
  EXPECT_FALSE(storage->list(directory_of(attempts[0].id)));
}

// C5: a tensor in very many slices of one file
TEST(Save, OfOneTensorInVeryManySlicesTakesNoLonger) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const auto many = [](Rank, Rank) {
    std::vector<TensorInfo> infos;
    for (std::uint64_t i = 0; i < 20'000; ++i) infos.push_back({"tensor", Dtype::u8, {20'000}, {{i}, {1}}});
    return infos;
  };
  ASSERT_THAT(save(*storage, 1, 1, 1, many), Each("fine"));
  EXPECT_THAT(load(*storage, 1, "", 1, many), Each("fine"));
}

// C11: every way of reading and writing brings the same
TEST(Save, IsTheSameInEveryModeOfInputAndOutput) {
  for (const IoMode written : {IoMode::direct_ring, IoMode::direct, IoMode::buffered}) {
    const TemporaryDirectory directory;
    const auto storage = *LocalStorage::open_directory(directory.path() + "/store", written);
    const auto large = [](Rank rank, Rank ranks) {
      auto infos = model(rank, ranks);
      infos.push_back(rows("large", Dtype::f32, {3001, 1021}, rank, ranks));
      return infos;
    };
    ASSERT_THAT(save(*storage, 2, 1, 5, large), Each("fine")) << describe(written);
    for (const IoMode read : {IoMode::direct_ring, IoMode::direct, IoMode::buffered}) {
      const auto reader = *LocalStorage::open_directory(directory.path() + "/store", read);
      EXPECT_THAT(load(*reader, 3, "", 5, large), Each("fine")) << describe(read);
    }
  }
}

}  // namespace
}  // namespace baton::checkpoint
