// E9: a SHA-256 of each slice, for those who have to reckon with somebody who changes files on purpose.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/checkpoint_validator.h"
#include "tests/checkpoint/world.h"
#include "wire/sha256.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const SaveOptions kWithSha256{.sha256 = true};

std::vector<TensorInfo> tensors(Rank rank, Rank ranks) {
  return {rows("large", Dtype::u8, {40, 100'000}, rank, ranks),
          rows("small", Dtype::u8, {40, 8}, rank, ranks)};
}
std::vector<TensorInfo> first_row(Rank, Rank) {
  return {{"large", Dtype::u8, {40, 100'000}, {{0, 0}, {1, 100'000}}}};
}
std::vector<TensorInfo> small_only(Rank rank, Rank ranks) {
  return {rows("small", Dtype::u8, {40, 8}, rank, ranks)};
}

class Sha256 : public ::testing::Test {
 protected:
  // Changes a byte of the file, and the checksums of its blocks with it, in a manifest that is newer.
  void forge(std::uint64_t at) {
    CheckpointMetadata metadata = *find_checkpoint(*storage, "latest");
    ShardMetadata& shard = metadata.shards[0];
    const std::string path = directory.path() + "/store/" + shard.path;
    std::string bytes(std::filesystem::file_size(path), '\0');
    std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes[at] ^= 1;
    std::ofstream(path, std::ios::binary) << bytes;
    BlockSums sums;
    sums.add(bytes_of(bytes));
    shard.block_sums = sums.finish();
    metadata.id.attempt = "a0009-00000000000000ff";
    ASSERT_TRUE(*storage->put_if_absent(manifest_path(metadata.id),
                                        bytes_of(MetadataSerializer::serialize(metadata))));
  }

  const TemporaryDirectory directory;
  const std::unique_ptr<LocalStorage> storage = storage_in(directory);
};

TEST_F(Sha256, OfEachSliceIsInTheManifestIfAskedFor) {
  ASSERT_THAT(save(*storage, 2, 1, 1, tensors, kWithSha256), Each("fine"));
  const auto metadata = find_checkpoint(*storage, "latest");
  const Bytes large = content(tensors(1, 2)[0], 1);
  wire::Sha256 sum;
  sum.add(text_of(large));
  EXPECT_EQ(metadata->shards[1].tensors[0].info.name, "large");
  EXPECT_EQ(metadata->shards[1].tensors[0].sha256, sum.hex());
  EXPECT_THAT(load(*storage, 3, "", 1, tensors), Each("fine"));
  EXPECT_TRUE(CheckpointValidator::verify(*storage, *metadata, {}).is_valid());

  ASSERT_THAT(save(*storage, 2, 2, 2, tensors), Each("fine"));
  EXPECT_EQ(find_checkpoint(*storage, "latest")->shards[0].tensors[0].sha256, "");
}

// Also if the part that is wanted is what it was: nobody knows what else was changed.
TEST_F(Sha256, NoticesWhatWasChangedTogetherWithItsChecksums) {
  ASSERT_THAT(save(*storage, 1, 1, 1, tensors, kWithSha256), Each("fine"));
  const CheckpointMetadata metadata = *find_checkpoint(*storage, "latest");
  const TensorMetadata large = metadata.shards[0].tensors[0];
  forge(large.begin + large.bytes - 1);
  const auto complaint = AllOf(HasSubstr("CORRUPT"), HasSubstr(metadata.shards[0].path),
                               HasSubstr("tensor \"large\""), HasSubstr("another SHA-256"));
  EXPECT_THAT(load(*storage, 2, "", 1, tensors), Each(complaint));
  EXPECT_THAT(load(*storage, 2, "", 1, first_row, {.strict = false}), Each(complaint));
  EXPECT_THAT(load(*storage, 2, "", 1, small_only, {.strict = false}), Each("fine"));
  const auto verified = CheckpointValidator::verify(*storage, *find_checkpoint(*storage, "latest"), {});
  EXPECT_THAT(verified.errors, SizeIs(1));
}

// Without one, this is what a forger can do.
TEST_F(Sha256, IsWhatForgersCannotReckonWith) {
  ASSERT_THAT(save(*storage, 1, 1, 1, tensors), Each("fine"));
  const TensorMetadata large = find_checkpoint(*storage, "latest")->shards[0].tensors[0];
  forge(large.begin);
  EXPECT_THAT(load(*storage, 2, "", 1, tensors), ::testing::Contains("other bytes"));
}

TEST_F(Sha256, IsThereOfWhatIsReferredToAsWell) {
  ASSERT_THAT(save(*storage, 2, 1, 1, tensors), Each("fine"));
  ASSERT_THAT(save(*storage, 2, 2, 1, tensors, {.incremental = true, .sha256 = true}), Each("fine"));
  const auto second = find_checkpoint(*storage, "latest");
  for (const ShardMetadata& shard : second->shards) {
    EXPECT_THAT(shard.path, HasSubstr(second->id.attempt)) << "written again, for the first one has none";
    for (const TensorMetadata& tensor : shard.tensors) EXPECT_NE(tensor.sha256, "");
  }
  ASSERT_THAT(save(*storage, 2, 3, 1, tensors, {.incremental = true, .sha256 = true}), Each("fine"));
  EXPECT_EQ(find_checkpoint(*storage, "latest")->shards, second->shards);
  EXPECT_THAT(load(*storage, 3, "", 1, tensors), Each("fine"));
}

}  // namespace
}  // namespace baton::checkpoint
