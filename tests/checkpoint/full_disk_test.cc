// Saves onto a real file system that is too small, or cannot be written: everybody hears the system's own
// words and the file, what was good before still loads, and what the attempt left can be freed. Mounting
// needs root.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/catalog.h"
#include "checkpoint/retention.h"
#include "tests/checkpoint/world.h"
#include "tests/small_disk.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<LocalStorage> storage_on(const SmallDisk& disk) {
  return *LocalStorage::open_directory(disk.path() + "/store");
}

std::vector<TensorInfo> large(Rank rank, Rank ranks) {
  return {rows("small", Dtype::u8, {ranks, 8}, rank, ranks),
          rows("large", Dtype::u8, {4, 1 << 20}, rank, ranks)};
}

// C10
TEST(FullDisk, IsHeardOfByEveryRankAndLeavesNothingBehind) {
  const SmallDisk disk("2m");
  SKIP_WITHOUT(disk);
  const auto storage = storage_on(disk);
  ASSERT_THAT(save(*storage, 3, 1, 1), Each("fine"));
  const std::uint64_t before = disk.free_bytes();
  const auto heard = save(*storage, 3, 2, 2, large);
  EXPECT_THAT(heard, Each(AllOf(HasSubstr("NO_SPACE"), HasSubstr("No space left on device"),
                                HasSubstr(".safetensors"), HasSubstr("rank "))));
  EXPECT_THAT(causes(heard), Each(causes(heard)[0]));
  EXPECT_THAT(load(*storage, 2, "", 1), Each("fine"));
  EXPECT_GE(disk.free_bytes() + (64 << 10), before) << "that it was given up needs little";
}

// C10: not even that it is given up can be written down
TEST(FullDisk, IsNoEndOfTheCheckpointBefore) {
  const SmallDisk disk("2m");
  SKIP_WITHOUT(disk);
  const auto storage = storage_on(disk);
  ASSERT_THAT(save(*storage, 2, 1, 1), Each("fine"));
  const std::uint64_t before = disk.free_bytes();
  disk.fill();
  EXPECT_THAT(save(*storage, 2, 2, 2),
              Each(AllOf(HasSubstr("NO_SPACE"), HasSubstr("No space left on device"), HasSubstr("step-2"))));
  EXPECT_THAT(load(*storage, 3, "", 1), Each("fine"));

  disk.make_room();
  EXPECT_TRUE(collect_garbage(*storage, {}, INT64_MAX / 2, Really::yes));
  const auto attempts = *list_attempts(*storage);
  for (const Attempt& attempt : attempts)
    EXPECT_NE(attempt.state, AttemptState::undecided) << to_text(attempt.id);
  EXPECT_GE(disk.free_bytes() + (64 << 10), before);
  EXPECT_THAT(save(*storage, 2, 2, 2), Each("fine"));
  EXPECT_THAT(load(*storage, 3, "", 2), Each("fine"));
}

// C10: old checkpoints can be removed where there is no room for a single byte more
TEST(FullDisk, CanBePruned) {
  const SmallDisk disk("2m");
  SKIP_WITHOUT(disk);
  const auto storage = storage_on(disk);
  for (const std::uint64_t step : {1, 2, 3}) ASSERT_THAT(save(*storage, 2, step, step), Each("fine"));
  disk.fill();
  const auto removed = prune(*storage, {.keep_last = 1}, Really::yes);
  ASSERT_TRUE(removed) << said(removed);
  EXPECT_EQ(removed->checkpoints.size(), 2U);
  EXPECT_THAT(save(*storage, 2, 4, 4), Each("fine"));
}

// C10
TEST(ReadOnlyDisk, IsHeardOfByEveryRankAndCanStillBeLoadedFrom) {
  const SmallDisk disk("2m");
  SKIP_WITHOUT(disk);
  ASSERT_THAT(save(*storage_on(disk), 2, 1, 1), Each("fine"));
  disk.make_read_only();
  const auto storage = LocalStorage::open_existing(disk.path() + "/store");
  ASSERT_TRUE(storage) << said(storage);
  const auto heard = save(**storage, 2, 2, 2);
  EXPECT_THAT(heard, Each(AllOf(HasSubstr("PERMISSION_DENIED"), HasSubstr("Read-only file system"),
                                HasSubstr("step-2"))));
  EXPECT_THAT(heard, Each(heard[0]));  // without the same once more, for giving it up
  EXPECT_THAT(heard[0], Not(HasSubstr("given up")));
  EXPECT_THAT(load(**storage, 3, "", 1), Each("fine"));
}

}  // namespace
}  // namespace baton::checkpoint
