// Saves and loads on a real disk that breaks, or whose quota is used up: everybody hears the system's own
// words and the file, soon, and what was good before still loads. Mounting needs root.
#include "tests/failing_disk.h"

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
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kMiB = 1 << 20;
const SaveOptions kSaveSoon{.deadline = seconds(60)};
const LoadOptions kLoadSoon{.deadline = seconds(60)};

std::vector<TensorInfo> large(Rank rank, Rank ranks) {
  return {rows("large", Dtype::u8, {12, 1 << 20}, rank, ranks)};
}

std::string store_on(const FailingDisk& disk) { return disk.path() + "/store"; }

class ABrokenDisk : public testing::TestWithParam<IoMode> {
 protected:
  // Small directories lie beside their inodes, at the front of the device, so it is the data that is lost.
  const FailingDisk disk_{"ext4", "-q -F -b 4096 -O ^has_journal,inline_data", 128 * kMiB};
};
INSTANTIATE_TEST_SUITE_P(Mode, ABrokenDisk,
                         testing::Values(IoMode::direct_ring, IoMode::direct, IoMode::buffered),
                         [](const auto& tested) {
                           return tested.param == IoMode::direct_ring ? "Ring"
                                  : tested.param == IoMode::direct    ? "Direct"
                                                                      : "Buffered";
                         });

// C10
TEST_P(ABrokenDisk, IsHeardOfByEveryRankThatSavesAndLeavesTheCheckpointBefore) {
  SKIP_WITHOUT(disk_);
  const auto storage = *LocalStorage::open_directory(store_on(disk_), GetParam());
  ASSERT_THAT(save(*storage, 3, 1, 1, large), Each("fine"));
  ASSERT_TRUE(disk_.break_from(disk_.written_end()));
  const auto heard = save(*storage, 3, 2, 2, large, kSaveSoon);
  EXPECT_THAT(heard, Each(AllOf(HasSubstr("IO_FAILED"), HasSubstr("Input/output error"), HasSubstr("rank "),
                                HasSubstr(store_on(disk_) + "/step-2/"), HasSubstr(".safetensors"))));
  EXPECT_THAT(causes(heard), Each(causes(heard)[0]));
  EXPECT_THAT(load(*storage, 2, "", 1, large, kLoadSoon), Each("fine"));
}

// C8, C10
TEST_P(ABrokenDisk, IsHeardOfByEveryRankThatLoadsAndTheOneBeforeIsLoadedInstead) {
  SKIP_WITHOUT(disk_);
  const auto storage = *LocalStorage::open_directory(store_on(disk_), GetParam());
  ASSERT_THAT(save(*storage, 3, 1, 1, large), Each("fine"));
  const std::int64_t intact = disk_.written_end();
  ASSERT_THAT(save(*storage, 3, 2, 2, large), Each("fine"));
  ASSERT_GT(disk_.written_end(), intact);
  ASSERT_TRUE(disk_.break_from(intact));
  // What is in the page cache is not read from the disk.
  ASSERT_TRUE(
      disk_.run_on_it("for file in %/store/*/*/*; do dd of=$file oflag=nocache conv=notrunc count=0; done"));

  const auto heard = load(*storage, 2, "", 2, large, kLoadSoon);
  EXPECT_THAT(heard, Each(AllOf(HasSubstr("IO_FAILED"), HasSubstr("Input/output error"),
                                HasSubstr(store_on(disk_) + "/step-2/"))));
  EXPECT_THAT(heard, Each(heard[0]));
  as_ranks(2, [&](Collective& collective) {
    State state(large(collective.rank(), 2));
    const auto loaded =
        CheckpointLoader(collective, *storage)
            .coordinate_load("", state.targets(), {.fall_back = true, .deadline = seconds(60)});
    ASSERT_TRUE(loaded) << said(loaded);
    EXPECT_EQ(state, State(large(collective.rank(), 2), 1));
    EXPECT_THAT(loaded->report.passed_over,
                ElementsAre(AllOf(HasSubstr("step-2"), HasSubstr("Input/output error"))));
  });
}

// C10
TEST(AQuota, IsHeardOfByEveryRankAndLeavesNothingBehind) {
  const FailingDisk disk("btrfs", "", 128 * kMiB);
  SKIP_WITHOUT(disk);
  ASSERT_TRUE(disk.run_on_it("btrfs quota enable %"));
  const auto storage = *LocalStorage::open_directory(store_on(disk));
  const auto small = [](Rank rank, Rank ranks) {
    return std::vector{rows("large", Dtype::u8, {12, 1 << 10}, rank, ranks)};
  };
  ASSERT_THAT(save(*storage, 3, 1, 1, small), Each("fine"));
  ASSERT_TRUE(disk.run_on_it("btrfs qgroup limit 8M 0/5 %"));
  const auto heard = save(*storage, 3, 2, 2, large, kSaveSoon);
  EXPECT_THAT(heard, Each(AllOf(HasSubstr("NO_SPACE"), HasSubstr("Disk quota exceeded"), HasSubstr("rank "),
                                HasSubstr("raise the quota"), HasSubstr(".safetensors"))));
  EXPECT_THAT(load(*storage, 2, "", 1, small), Each("fine"));

  ASSERT_TRUE(disk.run_on_it("btrfs qgroup limit none 0/5 %"));
  EXPECT_TRUE(collect_garbage(*storage, {}, INT64_MAX / 2, Really::yes));
  std::vector<AttemptState> states;
  const auto attempts = *list_attempts(*storage);
  for (const Attempt& attempt : attempts) states.push_back(attempt.state);
  EXPECT_THAT(states, ElementsAre(AttemptState::committed));
  EXPECT_THAT(save(*storage, 3, 2, 2, large), Each("fine"));
  EXPECT_THAT(load(*storage, 2, "", 2, large), Each("fine"));
}

}  // namespace
}  // namespace baton::checkpoint
