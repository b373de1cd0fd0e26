// Saves onto a real file system that is too small, or cannot be written: everybody hears the system's own
// words and the file, what was good before still loads, and what the attempt left can be freed. Mounting
// needs root.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "checkpoint/catalog.h"
#include "checkpoint/retention.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

// A file system of 2 MiB, seen by this process alone, so that it is gone with it whatever happens.
class SmallDisk {
 public:
  SmallDisk() {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("baton-test", path().c_str(), "tmpfs", 0, "size=2m") != 0)
      trouble_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (trouble_.empty()) ::umount2(path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  const std::string& path() const { return directory_.path(); }
  const std::string& trouble() const { return trouble_; }

  std::uint64_t free_bytes() const {
    struct statvfs status{};
    EXPECT_EQ(::statvfs(path().c_str(), &status), 0);
    return status.f_bavail * status.f_bsize;
  }
  // Somebody else's file takes all that is left.
  void fill() const {
    std::ofstream file(path() + "/others");
    const std::string block(4096, 'x');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void make_room() const { fs::remove(path() + "/others"); }
  void make_read_only() const {
    ASSERT_EQ(::mount("none", path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, "size=2m"), 0);
  }

 private:
  const TemporaryDirectory directory_;
  std::string trouble_;
};

#define SKIP_WITHOUT(disk) \
  if (!(disk).trouble().empty()) GTEST_SKIP() << "a file system cannot be mounted here: " << (disk).trouble()

std::unique_ptr<LocalStorage> storage_on(const SmallDisk& disk) {
  return *LocalStorage::open_directory(disk.path() + "/store");
}

std::vector<TensorInfo> large(Rank rank, Rank ranks) {
  return {rows("small", Dtype::u8, {ranks, 8}, rank, ranks),
          rows("large", Dtype::u8, {4, 1 << 20}, rank, ranks)};
}

// C10
TEST(FullDisk, IsHeardOfByEveryRankAndLeavesNothingBehind) {
  const SmallDisk disk;
  SKIP_WITHOUT(disk);
  const auto storage = storage_on(disk);
  ASSERT_THAT(save(*storage, 3, 1, 1), Each("fine"));
  const std::uint64_t before = disk.free_bytes();
  const auto heard = save(*storage, 3, 2, 2, large);
  EXPECT_THAT(heard, Each(AllOf(HasSubstr("NO_SPACE"), HasSubstr("No space left on device"),
                                HasSubstr(".safetensors"), HasSubstr("rank "))));
  EXPECT_THAT(heard, Each(heard[0]));
  EXPECT_THAT(load(*storage, 2, "", 1), Each("fine"));
  EXPECT_GE(disk.free_bytes() + (64 << 10), before) << "that it was given up needs little";
}

// C10: not even that it is given up can be written down
TEST(FullDisk, IsNoEndOfTheCheckpointBefore) {
  const SmallDisk disk;
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
  const SmallDisk disk;
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
  const SmallDisk disk;
  SKIP_WITHOUT(disk);
  ASSERT_THAT(save(*storage_on(disk), 2, 1, 1), Each("fine"));
  disk.make_read_only();
  const auto storage = LocalStorage::open_existing(disk.path() + "/store");
  ASSERT_TRUE(storage) << said(storage);
  const auto heard = save(**storage, 2, 2, 2);
  EXPECT_THAT(heard, Each(AllOf(HasSubstr("PERMISSION_DENIED"), HasSubstr("Read-only file system"),
                                HasSubstr("step-2"))));
  EXPECT_THAT(load(**storage, 3, "", 1), Each("fine"));
}

}  // namespace
}  // namespace baton::checkpoint
