// Damage: everything is noticed, everybody hears the same, and what was good before still loads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/checkpoint_validator.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

struct Saved {
  TemporaryDirectory directory;
  std::unique_ptr<LocalStorage> storage =
      *LocalStorage::open_directory(directory.path() + "/store", IoMode::buffered);
  fs::path path_of(const ShardMetadata& shard) const { return directory.path() + "/store/" + shard.path; }
};

std::vector<TensorInfo> two_small(Rank rank, Rank ranks) {
  return {rows("left", Dtype::u8, {4, 8}, rank, ranks), rows("right", Dtype::f32, {2, 4}, rank, ranks)};
}

// C8: every single-bit flip of every file of a checkpoint, and where it is
TEST(Damage, EverySingleBitOfAShardIsNoticedAndLocated) {
  Saved saved;
  ASSERT_THAT(save(*saved.storage, 1, 1, 1, two_small), Each("fine"));
  const CheckpointMetadata metadata = *find_checkpoint(*saved.storage, "latest");
  const ShardMetadata& shard = metadata.shards[0];
  const std::string good = read_file(saved.path_of(shard));
  std::fstream file(saved.path_of(shard), std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](std::size_t at, char byte) {
    file.seekp(static_cast<std::streamoff>(at)).put(byte).flush();
  };
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    const std::size_t at = bit / 8;
    put(at, static_cast<char>(good[at] ^ (1 << bit % 8)));
    const auto result = CheckpointValidator::verify(*saved.storage, metadata, {});
    ASSERT_EQ(result.errors.size(), 1U) << bit;
    ASSERT_THAT(result.errors[0], HasSubstr(shard.path));
    for (const TensorMetadata& tensor : shard.tensors) {
      const bool is_hit = at >= tensor.begin && at < tensor.begin + tensor.bytes;
      ASSERT_EQ(result.errors[0].find('"' + tensor.info.name + '"') != std::string::npos, is_hit)
          << bit << result.errors[0];
    }
    put(at, good[at]);
  }
  EXPECT_TRUE(CheckpointValidator::verify(*saved.storage, metadata, {}).is_valid());
}

// C8
TEST(Damage, EverySingleBitOfAManifestIsNoticed) {
  Saved saved;
  ASSERT_THAT(save(*saved.storage, 1, 1, 1, two_small), Each("fine"));
  const Bytes good = *saved.storage->get(manifest_path(find_checkpoint(*saved.storage, "latest")->id));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto parsed = MetadataSerializer::parse(text_of(bad), "it");
    ASSERT_FALSE(parsed) << bit;
    ASSERT_EQ(parsed.error().code, Errc::corrupt) << bit;
  }
}

// C8
TEST(Damage, AShardThatIsCutExtendedSwappedOrGoneIsNamed) {
  Saved saved;
  ASSERT_THAT(save(*saved.storage, 2, 1, 1, two_small), Each("fine"));
  const CheckpointMetadata metadata = *find_checkpoint(*saved.storage, "latest");
  const fs::path first = saved.path_of(metadata.shards[0]);
  const fs::path second = saved.path_of(metadata.shards[1]);
  const std::string good = read_file(first);
  const auto complaint = AllOf(HasSubstr("CORRUPT"), HasSubstr(metadata.shards[0].path));

  write_file(first, good.substr(0, good.size() - 1));
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small), Each(complaint));
  write_file(first, good + "x");
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small), Each(complaint));
  write_file(first, read_file(second));
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small), Each(complaint));
  fs::remove(first);
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small),
              Each(AllOf(complaint, HasSubstr("is missing in " + saved.directory.path() + "/store;"))));
  write_file(first, good);
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small), Each("fine"));
}

// C8: all ranks together, though only one of them met the damage
TEST(Damage, AllRanksFallBackTogetherToTheNewestGoodOne) {
  Saved saved;
  for (std::uint64_t step = 1; step <= 4; ++step)
    ASSERT_THAT(save(*saved.storage, 2, step, step, two_small), Each("fine"));
  const CheckpointMetadata newest = *find_checkpoint(*saved.storage, "4");
  const fs::path shard = saved.path_of(newest.shards[1]);
  std::string bad = read_file(shard);
  bad.back() ^= 1;
  write_file(shard, bad);
  const fs::path manifest =
      saved.directory.path() + "/store/" + manifest_path(find_checkpoint(*saved.storage, "3")->id);
  write_file(manifest, read_file(manifest).substr(1));

  EXPECT_THAT(load(*saved.storage, 2, "", 4, two_small), Each(HasSubstr("CORRUPT")));
  EXPECT_THAT(load(*saved.storage, 2, "", 2, two_small, {.fall_back = true}), Each("fine"));
  as_ranks(2, [&](Collective& collective) {
    State state(two_small(collective.rank(), 2));
    const auto loaded = CheckpointLoader(collective, *saved.storage)
                            .coordinate_load("", state.targets(), {.fall_back = true});
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->report.passed_over.size(), 2U);
    EXPECT_EQ(loaded->metadata.training.step, 2U);
  });
}

// C8: what a damaged one left in memory is in no checkpoint, and must not pass for what was loaded
TEST(Damage, LeavesNoBytesWhereTheOneBeforeHasNone) {
  Saved saved;
  const auto left = [](Rank rank, Rank ranks) { return std::vector{two_small(rank, ranks)[0]}; };
  ASSERT_THAT(save(*saved.storage, 2, 1, 1, two_small), Each("fine"));
  ASSERT_THAT(save(*saved.storage, 2, 2, 2, left), Each("fine"));
  ASSERT_THAT(save(*saved.storage, 2, 3, 3, two_small), Each("fine"));
  const fs::path shard = saved.path_of(find_checkpoint(*saved.storage, "3")->shards[1]);
  std::string bad = read_file(shard);
  bad.back() ^= 1;
  write_file(shard, bad);

  const LoadOptions lax{.strict = false, .fall_back = true};
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small, lax), Each("fine")) << "the first has all of it";
  EXPECT_THAT(load(*saved.storage, 2, "", 2, left, lax), Each("fine"));
  ASSERT_TRUE(saved.storage->remove(manifest_path(find_checkpoint(*saved.storage, "1")->id)));
  EXPECT_THAT(
      load(*saved.storage, 2, "", 2, two_small, lax),
      Each(AllOf(HasSubstr("CORRUPT"), HasSubstr("step-3"), HasSubstr("step-2"), HasSubstr("\"right\""))));
}

// C8: whoever meets the damage is told how to go on
TEST(Damage, ComesWithTheWayRoundIt) {
  Saved saved;
  for (std::uint64_t step = 1; step <= 2; ++step)
    ASSERT_THAT(save(*saved.storage, 2, step, step, two_small), Each("fine"));
  const CheckpointMetadata newest = *find_checkpoint(*saved.storage, "latest");
  const fs::path manifest = saved.directory.path() + "/store/" + manifest_path(newest.id);
  const std::string good = read_file(manifest);
  const auto tells_the_way = [&] {
    EXPECT_THAT(
        load(*saved.storage, 2, "", 2, two_small),
        Each(AllOf(HasSubstr("CORRUPT"), HasSubstr("; with fall_back the newest one that is whole"))));
    EXPECT_THAT(load(*saved.storage, 2, "2", 2, two_small),
                Each(AllOf(HasSubstr("CORRUPT"), HasSubstr("; load another one, or the latest with"))));
    EXPECT_THAT(load(*saved.storage, 2, "2", 2, two_small, {.fall_back = true}),
                Each(AllOf(HasSubstr("no checkpoint is whole"), Not(HasSubstr("fall_back")))));
  };
  write_file(manifest, good.substr(1));
  tells_the_way();
  write_file(manifest, good);
  fs::remove(saved.path_of(newest.shards[1]));
  tells_the_way();
  EXPECT_THAT(
      load(*saved.storage, 2, "3", 2, two_small),
      Each(AllOf(HasSubstr("NOT_FOUND"), HasSubstr("\"3\" in"), HasSubstr("; the newest is step-2"))));
}

// C8: a job that begins anew on NOT_FOUND must not do so on top of what a damaged checkpoint left in memory
TEST(Damage, WhenNothingIsWholeItIsNotTakenForNothingBeingThere) {
  Saved saved;
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small, {.fall_back = true}), Each(HasSubstr("NOT_FOUND")));
  ASSERT_THAT(save(*saved.storage, 2, 1, 1, two_small), Each("fine"));
  fs::remove(saved.path_of(find_checkpoint(*saved.storage, "latest")->shards[0]));
  const auto complaint =
      AllOf(HasSubstr("CORRUPT"), HasSubstr("no checkpoint is whole"), HasSubstr("is missing"));
  for (const std::string name : {"", "1", "step-1"})
    EXPECT_THAT(load(*saved.storage, 2, name, 1, two_small, {.fall_back = true}), Each(complaint)) << name;
  const fs::path manifest =
      saved.directory.path() + "/store/" + manifest_path(find_checkpoint(*saved.storage, "latest")->id);
  write_file(manifest, read_file(manifest).substr(1));
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small, {.fall_back = true}),
              Each(AllOf(HasSubstr("CORRUPT"), HasSubstr("no checkpoint is whole"))));
  EXPECT_THAT(load(*saved.storage, 2, "2", 1, two_small, {.fall_back = true}), Each(HasSubstr("NOT_FOUND")));
}

TEST(Damage, AManifestOfANewerFormatIsNotGuessedAt) {
  Saved saved;
  ASSERT_THAT(save(*saved.storage, 1, 1, 1, two_small), Each("fine"));
  CheckpointMetadata newer = *find_checkpoint(*saved.storage, "latest");
  newer.major = kFormatMajor + 1;
  newer.id = {"step-2", "a0001-00000000000000ad"};
  ASSERT_TRUE(
      *saved.storage->put_if_absent(manifest_path(newer.id), bytes_of(MetadataSerializer::serialize(newer))));
  EXPECT_THAT(load(*saved.storage, 1, "", 1, two_small),
              Each(AllOf(HasSubstr("UNSUPPORTED_VERSION"), HasSubstr("use a newer one"))));
  EXPECT_THAT(load(*saved.storage, 1, "", 1, two_small, {.fall_back = true}), Each("fine"));
}

// C8: somebody copied files about
TEST(Damage, AManifestOfAnotherCheckpointIsNoneOfThisOne) {
  Saved saved;
  ASSERT_THAT(save(*saved.storage, 1, 1, 1, two_small), Each("fine"));
  const CheckpointId real = find_checkpoint(*saved.storage, "latest")->id;
  const CheckpointId copied{"step-2", real.attempt};
  ASSERT_TRUE(*saved.storage->put_if_absent(manifest_path(copied), *saved.storage->get(manifest_path(real))));
  EXPECT_THAT(load(*saved.storage, 2, "step-2", 1, two_small),
              Each(AllOf(HasSubstr("CORRUPT"),
                         HasSubstr(manifest_path(copied) + " is the manifest of " + to_text(real)))));
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small, {.fall_back = true}), Each("fine"));
}

}  // namespace
}  // namespace baton::checkpoint
