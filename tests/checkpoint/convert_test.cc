// Checkpoints made into others and into files, in pieces that are smaller than what they hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "checkpoint/aligned_memory.h"
#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/convert.h"
#include "checkpoint/difference.h"
#include "checkpoint/retrying_storage.h"
#include "checkpoint/tensor_pieces.h"
#include "tests/checkpoint/faulty_storage.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

// Larger than a piece, and no multiple of anything.
std::vector<TensorInfo> large(Rank rank, Rank ranks) {
  const std::uint64_t row = kPieceBytes / 2 / 3 * 2 / 4 + 5;
  return {columns("columns", Dtype::f32, {3, row}, rank, ranks),
          rows("row", Dtype::u8, {1, kPieceBytes + 77}, rank, ranks), whole_tensor("scalar", Dtype::i64, {}),
          whole_tensor("nothing", Dtype::u8, {0, 4})};
}

// C7, C11
TEST(Reshard, BringsEveryElementAlsoOfTensorsThatAreLargerThanAPiece) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 2, 1, 1, large, {.sha256 = true}), Each("fine"));
  const CheckpointMetadata first = *find_checkpoint(*storage, "latest");
  std::uint64_t told = 0;
  const auto done = reshard(*storage, first, 3, [&](std::uint64_t bytes) { told = bytes; });
  ASSERT_TRUE(done) << said(done);
  EXPECT_EQ(told, first.tensor_bytes());
  const CheckpointMetadata second = *find_checkpoint(*storage, "latest");
  EXPECT_EQ(second.id, done->id);
  EXPECT_EQ(second.world_size, 3U);
  for (const ShardMetadata& shard : second.shards)
    for (const TensorMetadata& slice : shard.tensors) EXPECT_NE(slice.sha256, "");  // E9: as it was
  EXPECT_THAT(load(*storage, 2, "", 1, large), Each("fine"));

  const auto same = compare(*storage, first, second, {});
  ASSERT_TRUE(same) << said(same);
  EXPECT_EQ(same->same, 4U);
  EXPECT_GT(same->bytes_read, first.tensor_bytes());
}

// C8
TEST(Reshard, OfAManifestThatMakesNoSenseIsRefused) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 2, 1, 1), Each("fine"));
  CheckpointMetadata metadata = *find_checkpoint(*storage, "latest");
  for (TensorMetadata& tensor : metadata.shards[1].tensors)
    if (tensor.info.name == "embedding") tensor.info.global_shape = {}, tensor.info.slice = {};
  const auto complaint = HasSubstr("has two types or shapes");
  EXPECT_THAT(said(reshard(*storage, metadata, 3, {})), complaint);
  EXPECT_THAT(said(export_whole(*storage, metadata, *storage, "model.safetensors", {})), complaint);
}

// C8, E9: between the look at it and the copy
TEST(FlatExport, OfAFileThatIsDamagedMeanwhileIsRefused) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  const CheckpointMetadata metadata = *find_checkpoint(*storage, "latest");
  int opened = 0;
  FaultyStorage spoiling(*storage, [&](FaultyStorage::Call call, const std::string& path) -> Status {
    if (call == FaultyStorage::Call::open && ++opened == 2) {
      std::fstream file(directory.path() + "/store/" + path, std::ios::in | std::ios::out | std::ios::binary);
      const auto at = static_cast<std::streamoff>(metadata.shards[0].tensors[0].begin);
      file.seekg(at);
      const int byte = file.get();
      file.seekp(at), file.put(static_cast<char>(byte ^ 1));
    }
    return {};
  });
  const auto flat = *LocalStorage::open_directory(directory.path() + "/flat");
  EXPECT_THAT(said(export_flat(spoiling, metadata, *flat, {})), HasSubstr("was changed while it was copied"));
  EXPECT_TRUE(flat->list("")->empty());
}

// C5, C11
TEST(Import, BringsBackWhatWasExported) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 3, 1, 1, large), Each("fine"));
  const auto exported =
      export_whole(*storage, *find_checkpoint(*storage, "latest"), *storage, "model.safetensors", {});
  ASSERT_TRUE(exported) << said(exported);
  const auto imported = import_files(*storage, {"model.safetensors"}, *storage, "step-2", 2, {});
  ASSERT_TRUE(imported) << said(imported);
  EXPECT_EQ(imported->bytes, exported->bytes);
  EXPECT_THAT(load(*storage, 2, "step-2", 1, large), Each("fine"));
}

// C10: also if its tensors end where a block of the disk does
TEST(Import, OfAnExportThatWasKilledIsRefused) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const auto even = [](Rank, Rank) { return std::vector{whole_tensor("w", Dtype::u8, {2 * kPieceBytes})}; };
  ASSERT_THAT(save(*storage, 1, 1, 1, even), Each("fine"));
  const std::string root = directory.path() + "/store/";
  const auto kill = [&](std::uint64_t bytes) {  // with one piece of two, as if it ended here
    if (bytes != kPieceBytes) return;
    std::filesystem::copy_file(root + "whole.safetensors", root + "killed.safetensors");
  };
  ASSERT_TRUE(
      export_whole(*storage, *find_checkpoint(*storage, "latest"), *storage, "whole.safetensors", kill));
  EXPECT_EQ(std::filesystem::file_size(root + "whole.safetensors") % kMemoryAlignment, 0U);
  EXPECT_THAT(said(import_files(*storage, {"killed.safetensors"}, *storage, "step-2", 2, {})),
              HasSubstr("CORRUPT"));
  EXPECT_TRUE(import_files(*storage, {"whole.safetensors"}, *storage, "step-2", 2, {}));
}

// C10
TEST(Import, OfAFileThatCannotBeReadToItsEndLeavesNothing) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  ASSERT_TRUE(
      export_whole(*storage, *find_checkpoint(*storage, "latest"), *storage, "model.safetensors", {}));
  int pieces = 0;
  FaultyStorage breaking(*storage, [&](FaultyStorage::Call call, const std::string&) -> Status {
    if (call == FaultyStorage::Call::piece && ++pieces > 4) return failure(Errc::io_failed, "broken");
    return {};
  });
  EXPECT_THAT(said(import_files(breaking, {"model.safetensors"}, *storage, "step-2", 2, {})),
              HasSubstr("broken"));
  EXPECT_EQ(find_checkpoint(*storage, "latest")->training.step, 1U);
  const auto attempts = *list_attempts(*storage);
  ASSERT_EQ(attempts.size(), 2U);
  EXPECT_EQ(attempts[1].state, AttemptState::aborted);
  EXPECT_FALSE(storage->list(directory_of(attempts[1].id)));
}

// C11: each file that is open has memory for its blocks
TEST(Import, OfManyFilesHasOneOpenAtATime) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::vector<std::string> files;
  for (std::uint64_t step = 1; step <= 12; ++step) {
    const std::string name = "w" + std::to_string(step);
    const auto one = [&](Rank, Rank) {
      return std::vector{whole_tensor(name, Dtype::u8, {3}), whole_tensor("wide " + name, Dtype::f64, {3})};
    };
    ASSERT_THAT(save(*storage, 1, step, 1, one), Each("fine"));
    files.push_back(name + ".safetensors");
    ASSERT_TRUE(export_whole(*storage, *find_checkpoint(*storage, "latest"), *storage, files.back(), {}));
  }
  const auto open_now = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const std::ptrdiff_t before = open_now();
  std::ptrdiff_t most = 0;
  FaultyStorage watched(*storage, [&](FaultyStorage::Call, const std::string&) -> Status {
    most = std::max(most, open_now() - before);
    return {};
  });
  const auto imported = import_files(watched, files, *storage, "all", 20, {});
  ASSERT_TRUE(imported) << said(imported);
  EXPECT_EQ(imported->tensors, 24U);
  EXPECT_LE(most, 2) << "one that is read, and the one that is written";
  const auto all = [](Rank, Rank) {
    std::vector<TensorInfo> infos;
    for (int step = 1; step <= 12; ++step) {
      infos.push_back(whole_tensor("w" + std::to_string(step), Dtype::u8, {3}));
      infos.push_back(whole_tensor("wide w" + std::to_string(step), Dtype::f64, {3}));
    }
    return infos;
  };
  EXPECT_THAT(load(*storage, 1, "all", 1, all), Each("fine"));
}

// Two files of a tensor each, and another one, as large as the second, that can take its place.
struct Replaced {
  TemporaryDirectory directory;
  std::unique_ptr<LocalStorage> storage = storage_in(directory);
  std::vector<std::string> files{"first.safetensors", "second.safetensors"};

  Replaced() {
    make("first.safetensors", "a", 1);
    make("second.safetensors", "b", 1);
    make("another.safetensors", "b", 2);
  }
  void make(const std::string& file, const std::string& tensor, std::uint64_t version) const {
    const auto one = [&](Rank, Rank) { return std::vector{whole_tensor(tensor, Dtype::u8, {3})}; };
    EXPECT_THAT(save(*storage, 1, 1, version, one), Each("fine"));
    EXPECT_TRUE(export_whole(*storage, *find_checkpoint(*storage, "latest"), *storage, file, {}));
  }
  void replace() const {
    const std::string root = directory.path() + "/store/";
    std::filesystem::rename(root + "another.safetensors", root + "second.safetensors");
  }
  void expect_refused(Storage& from) const {
    EXPECT_THAT(said(import_files(from, files, *storage, "step-2", 2, {})),
                HasSubstr("second.safetensors was changed while it was imported"));
    EXPECT_EQ(find_checkpoint(*storage, "latest")->training.step, 1U);
  }
};

// C6: never a mixture
TEST(Import, OfAFileThatIsReplacedBeforeItIsOpenedAgainIsRefused) {
  const Replaced world;
  int reads = 0;
  FaultyStorage replacing(*world.storage, [&](FaultyStorage::Call call, const std::string&) -> Status {
    if (call == FaultyStorage::Call::read && ++reads == 5) world.replace();  // behind two of each header
    return {};
  });
  world.expect_refused(replacing);
}

// C6, C10
TEST(Import, OfAFileThatIsReplacedBetweenTwoTriesIsRefused) {
  const Replaced world;
  int reads = 0;
  const auto fault = [&](FaultyStorage::Call call, const std::string&) -> Status {
    if (call != FaultyStorage::Call::read || ++reads != 6) return {};
    world.replace();  // just when the tensor of the second file was to be read
    return failure(Errc::io_failed, "out of reach for a moment");
  };
  RetryingStorage replacing(std::make_unique<FaultyStorage>(*world.storage, fault),
                            {.pause = [](Duration) {}});
  world.expect_refused(replacing);
}

TEST(Import, OfATensorThatIsThereTwiceIsRefused) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  ASSERT_TRUE(
      export_whole(*storage, *find_checkpoint(*storage, "latest"), *storage, "model.safetensors", {}));
  EXPECT_THAT(
      said(import_files(*storage, {"model.safetensors", "model.safetensors"}, *storage, "step-2", 2, {})),
      HasSubstr("twice"));
}

}  // namespace
}  // namespace baton::checkpoint
