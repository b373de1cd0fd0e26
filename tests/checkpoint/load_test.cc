// What N ranks saved, M ranks load: every byte, and not many more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/checkpoint/faulty_storage.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

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

}  // namespace
}  // namespace baton::checkpoint
