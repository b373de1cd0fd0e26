// What N ranks saved, M ranks load: every byte, and not many more.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "tests/checkpoint/faulty_storage.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::uint64_t bytes_in(const std::string& directory) {
  std::uint64_t sum = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    if (entry.path().extension() == ".safetensors") sum += entry.file_size();
  return sum;
}

// C4, C7: N -> M, larger and smaller, with slices by rows, by columns, flat, empty, whole and scalar
TEST(Load, BringsWhatAnyNumberOfRanksSavedToAnyNumberOfRanks) {
  for (const Rank writers : {1U, 2U, 3U, 8U}) {
    const TemporaryDirectory directory;
    const auto storage = storage_in(directory);
    ASSERT_THAT(save(*storage, writers, 7, 1), Each("fine"));
    for (const Rank readers : {1U, 2U, 3U, 5U, 8U}) {
      SCOPED_TRACE(testing::Message() << writers << " to " << readers);
      EXPECT_THAT(load(*storage, readers, "", 1), Each("fine"));
    }
  }
}

// C7: any cut into rectangles, loaded by any other
TEST(Load, BringsTheSameForRandomCuts) {
  std::mt19937_64 dice(7);
  for (int round = 0; round < 30; ++round) {
    const Shape shape{dice() % 9 + 1, dice() % 6 + 1, dice() % 12 + 1};
    const std::uint64_t all = *elements_of(shape);
    const auto random_cut = [&](Rank ranks) {
      std::vector<std::uint64_t> ends(ranks - 1);
      for (std::uint64_t& end : ends) end = dice() % (all + 1);
      std::ranges::sort(ends);
      ends.insert(ends.begin(), 0);
      ends.push_back(all);
      return [shape, ends](Rank rank, Rank) {
        std::vector<TensorInfo> infos;
        for (const Rectangle& part : rectangles_of(shape, ends[rank], ends[rank + 1]))
          infos.push_back({"w", Dtype::f32, shape, part});
        return infos;
      };
    };
    const TemporaryDirectory directory;
    const auto storage = storage_in(directory);
    const auto writers = static_cast<Rank>(dice() % 4 + 1);
    const auto readers = static_cast<Rank>(dice() % 4 + 1);
    ASSERT_THAT(save(*storage, writers, 1, 3, random_cut(writers)), Each("fine")) << to_text(shape);
    EXPECT_THAT(load(*storage, readers, "", 3, random_cut(readers)), Each("fine")) << to_text(shape);
  }
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

// C7: "each rank reads only the bytes of the tensors it wants": what is needed, and two blocks for each run
TEST(Load, ReadsLittleMoreThanItNeeds) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const auto by_rows = [](Rank rank, Rank ranks) {
    return std::vector{rows("w", Dtype::f32, {4096, 1024}, rank, ranks)};
  };
  ASSERT_THAT(save(*storage, 3, 1, 1, by_rows), Each("fine"));
  as_ranks(5, [&](Collective& collective) {
    State state(by_rows(collective.rank(), 5));
    auto loaded = CheckpointLoader(collective, *storage).coordinate_load("", state.targets(), {});
    ASSERT_TRUE(loaded) << said(loaded);
    EXPECT_LE(loaded->report.bytes_read,
              loaded->report.bytes_needed + 2 * 2 * kBlockBytes);  // of at most two shards
  });
}

// C7, as in the source: whole shards in turn; and M > N gives some ranks none
TEST(Load, DealsOutWholeShardsInTurn) {
  EXPECT_THAT(compute_shard_assignments(5, 2),
              ElementsAre(std::vector<std::size_t>{0, 2, 4}, std::vector<std::size_t>{1, 3}));
  EXPECT_THAT(compute_shard_assignments(1, 3), ElementsAre(SizeIs(1), SizeIs(0), SizeIs(0)));

  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 3, 1, 1), Each("fine"));
  std::vector<std::size_t> got(5);
  as_ranks(5, [&](Collective& collective) {
    auto loaded = CheckpointLoader(collective, *storage).coordinate_load("", 5, {});
    ASSERT_TRUE(loaded) << said(loaded);
    got[collective.rank()] = loaded->shards.size();
    for (const ShardData& shard : loaded->shards)
      for (const TensorSource& tensor : shard.tensors)
        EXPECT_TRUE(std::ranges::equal(tensor.data, content(tensor.info, 1)));
  });
  EXPECT_THAT(got, ElementsAre(1, 1, 1, 0, 0));
}

// C7: before any shard is read
TEST(Load, OfWhatDoesNotFitIsRefusedOnAllRanksBeforeAnythingIsRead) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const auto one = [](Rank, Rank) {
    return std::vector{whole_tensor("w", Dtype::f32, {4, 4}), whole_tensor("old", Dtype::u8, {1})};
  };
  ASSERT_THAT(save(*storage, 1, 1, 1, one), Each("fine"));
  const auto other = [](Rank rank, Rank) {
    if (rank == 0)
      return std::vector{whole_tensor("w", Dtype::f32, {4, 4}), whole_tensor("old", Dtype::u8, {1})};
    return std::vector{whole_tensor("w", Dtype::f16, {4, 5}), whole_tensor("new", Dtype::u8, {1})};
  };
  FaultyStorage no_reads(*storage, [](FaultyStorage::Call call, const std::string&) -> Status {
    EXPECT_NE(call, FaultyStorage::Call::open);
    return {};
  });
  EXPECT_THAT(load(no_reads, 2, "", 1, other),
              Each(AllOf(HasSubstr("CONFLICT"), HasSubstr("rank 1"), HasSubstr("missing: new"),
                         HasSubstr("F32 [4, 4] there, and F16 [4, 5] is wanted"))));

  as_ranks(1, [&](Collective& collective) {
    State state(other(1, 2));
    auto loaded =
        CheckpointLoader(collective, *storage).coordinate_load("", state.targets(), {.strict = false});
    ASSERT_TRUE(loaded) << said(loaded);
    EXPECT_THAT(loaded->report.missing, ElementsAre("new"));
    EXPECT_THAT(loaded->report.unexpected, ElementsAre("old"));
    EXPECT_THAT(loaded->report.mismatched, SizeIs(1));
    EXPECT_THAT(loaded->report.loaded, SizeIs(0));
  });
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

// C7, C13: as Python does, which makes room for what it finds
TEST(Load, AsksForWishesOnceItIsKnownWhatThereIs) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 2, 1, 1), Each("fine"));
  as_ranks(2, [&](Collective& collective) {
    std::optional<State> state;
    const Wishes all = [&](const CheckpointMetadata& metadata) {
      state.emplace(model(collective.rank(), metadata.world_size));
      return state->targets();
    };
    EXPECT_EQ(said(CheckpointLoader(collective, *storage).coordinate_load("", all, {})), "fine");
    EXPECT_EQ(*state, State(model(collective.rank(), 2), 1));
    const Wishes none = [&](const CheckpointMetadata& metadata) -> Result<std::vector<TensorTarget>> {
      if (collective.rank() == 1) return failure(Errc::invalid_request, "there is no room");
      return all(metadata);
    };
    EXPECT_THAT(said(CheckpointLoader(collective, *storage).coordinate_load("", none, {})),
                HasSubstr("rank 1: there is no room"));
  });
}

// C7: as in pipeline parallelism, where no rank has all of the model
TEST(Load, IsStrictAboutWhatAllRanksWantTogether) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const auto one_each = [](Rank rank, Rank) {
    return std::vector{whole_tensor("layer." + std::to_string(rank), Dtype::f32, {8})};
  };
  ASSERT_THAT(save(*storage, 3, 1, 1, one_each), Each("fine"));
  EXPECT_THAT(load(*storage, 3, "", 1, one_each), Each("fine"));
  EXPECT_THAT(load(*storage, 2, "", 1, one_each), Each(AllOf(HasSubstr("CONFLICT"), HasSubstr("layer.2"))));
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
