// What survives a power failure: bytes before the names that lead to them, and nothing that is only hoped
// for.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "checkpoint/retrying_storage.h"
#include "tests/checkpoint/disk_calls.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<RetryingStorage> patient_storage_in(const TemporaryDirectory& directory) {
  return std::make_unique<RetryingStorage>(storage_in(directory), RetryOptions{.pause = [](Duration) {}});
}

// C6
TEST(ASave, IsDurableBeforeItHasAName) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const DiskCalls calls(directory.path() + "/store");
  ASSERT_THAT(save(*storage, 1, 1, 1), Each("fine"));
  EXPECT_THAT(calls.all(), ElementsAre("fsync ",         // it has the name step-1
                                       "fsync /step-1",  // which has that of the attempt
                                       "fsync /step-1/a0001/r00000.safetensors",  // its bytes
                                       "fsync /step-1/a0001",                     // its name
                                       "fsync ",                                  // for the manifest, again
                                       "fsync /step-1/a0001.manifest.tmp",        // its bytes
                                       "link /step-1/a0001.manifest",             // the decision
                                       "fsync /step-1"));                         // which is durable
}

// C6, C10: whichever sync fails
TEST(ASave, ThatCouldNotBeMadeDurableHasFailed) {
  int failing = 0;
  for (;; ++failing) {
    const TemporaryDirectory directory;
    const auto storage = patient_storage_in(directory);
    int synced = 0;
    std::string failed;
    const DiskCalls calls(directory.path() + "/store", [&](const std::string& call) {
      if (!call.starts_with("fsync") || synced++ != failing) return 0;
      failed = call;
      return EIO;
    });
    const auto heard = save(*storage, 1, 1, 1);
    if (failed.empty()) break;
    // A file aside is written anew, and nothing is left of the one that failed.
    if (failed.ends_with(".tmp")) {
      EXPECT_THAT(heard, Each("fine")) << failed;
    } else {
      EXPECT_THAT(heard, Each(HasSubstr("Input/output error"))) << failed;
    }
  }
  EXPECT_EQ(failing, 7);
}

// C6, C10: also for ranks of other processes, to whom the disk seems fine
TEST(ASave, WhoseDecisionMayNotBeDurableHasFailedForAllRanks) {
  const TemporaryDirectory directory;
  const std::unique_ptr<Storage> storages[] = {patient_storage_in(directory), patient_storage_in(directory),
                                               patient_storage_in(directory)};
  bool is_decided = false;
  bool has_failed = false;
  const DiskCalls calls(directory.path() + "/store", [&](const std::string& call) {
    if (call.starts_with("link")) is_decided = true;
    if (!call.starts_with("fsync") || !is_decided || std::exchange(has_failed, true)) return 0;
    return EIO;
  });
  std::string heard[3];
  as_ranks(3, [&](Collective& collective) {
    const State state(model(collective.rank(), 3), 1);
    heard[collective.rank()] =
        said(CheckpointCoordinator(collective, *storages[collective.rank()])
                 .coordinate_save("step-1", [&]() -> Result<ShardData> { return state.shard(); }, {}));
  });
  EXPECT_TRUE(has_failed);
  EXPECT_THAT(heard, Each(HasSubstr("rank 0: ")));
  EXPECT_THAT(heard, Each(HasSubstr("Input/output error")));
  EXPECT_THAT(heard, Each(heard[0]));
}

// C6: a checkpoint whose manifest comes back after its files are gone would be damaged
TEST(ARemoval, ThatCouldNotBeMadeDurableHasFailed) {
  const TemporaryDirectory directory;
  const auto storage = patient_storage_in(directory);
  ASSERT_TRUE(storage->put_if_absent("step-1/file", bytes_of("x")));
  bool has_failed = false;
  const DiskCalls calls(directory.path() + "/store",
                        [&](const std::string&) { return std::exchange(has_failed, true) ? 0 : EIO; });
  EXPECT_THAT(said(storage->remove("step-1/file")), HasSubstr("Input/output error"));
}

// C6: whoever did it before may have been killed before it was durable
TEST(ANameThatWasGivenOrTakenBefore, IsMadeDurable) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::filesystem::create_directory(directory.path() + "/store/step-1");
  const DiskCalls calls(directory.path() + "/store");
  ASSERT_TRUE(storage->remove("step-1/file"));
  EXPECT_THAT(calls.all(), ElementsAre("fsync /step-1"));
  ASSERT_TRUE(storage->remove("step-2/file"));
  ASSERT_TRUE(storage->put_if_absent("step-1/file", bytes_of("x")));
  EXPECT_THAT(calls.all(), ElementsAre("fsync /step-1", "fsync ", "fsync /step-1/file.tmp",
                                       "link /step-1/file", "fsync /step-1"));
}

}  // namespace
}  // namespace baton::checkpoint
