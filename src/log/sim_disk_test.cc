// The simulated disk itself: a disk that is kinder than a real one would make every crash test worthless.
#include "tests/sim/sim_disk.h"

#include <gtest/gtest.h>

namespace baton::sim {
namespace {

using log::kSectorBytes;

const auto kKeepNothing = [] { return false; };
const auto kKeepEverything = [] { return true; };

// A file of two sectors, durable by name and as zeros.
std::unique_ptr<log::File> durable_file(SimDisk& disk) {
  auto file = disk.create("f", 2 * kSectorBytes).value();
  EXPECT_TRUE(file->sync());
  EXPECT_TRUE(disk.sync_directory(""));
  EXPECT_EQ(disk.pending(), 0u);
  return file;
}

Bytes ones(std::size_t length) { return Bytes(length, std::byte{1}); }

TEST(SimDisk, KeepsAnySubsetOfTheSectorsThatWereNotSynced) {
  for (unsigned subset = 0; subset < 4; ++subset) {
    SimDisk disk;
    ASSERT_TRUE(durable_file(disk)->write(0, ones(2 * kSectorBytes)));
    ASSERT_EQ(disk.pending(), 2u);
    unsigned asked = 0;
    disk.crash([&] { return (subset >> asked++ & 1) != 0; });
    const Bytes content = disk.content("f");
    EXPECT_EQ(content[0] == std::byte{1}, (subset & 1) != 0);
    EXPECT_EQ(content[kSectorBytes] == std::byte{1}, (subset & 2) != 0);
  }
}

TEST(SimDisk, KeepsWhatWasSynced) {
  SimDisk disk;
  auto file = durable_file(disk);
  ASSERT_TRUE(file->write(0, ones(2 * kSectorBytes)));
  ASSERT_TRUE(file->sync());
  disk.crash(kKeepNothing);
  EXPECT_EQ(disk.content("f"), ones(2 * kSectorBytes));
}

TEST(SimDisk, LosesNamesThatWereNotSynced) {
  SimDisk disk;
  durable_file(disk);
  ASSERT_TRUE(disk.rename("f", "g"));
  SimDisk other(disk);
  disk.crash(kKeepNothing);
  EXPECT_TRUE(disk.exists("f") && !disk.exists("g"));
  other.crash(kKeepEverything);
  EXPECT_TRUE(!other.exists("f") && other.exists("g"));
}

TEST(SimDisk, ForgetsTheWriteOfAFailedSyncThoughItStillShowsIt) {
  SimDisk disk;
  auto file = durable_file(disk);
  ASSERT_TRUE(file->write(0, ones(kSectorBytes)));
  disk.fail_sync(disk.syncs() + 1, SyncFault::keeps_cache);
  EXPECT_FALSE(file->sync());
  EXPECT_TRUE(file->sync()) << "the next one reports success";
  EXPECT_EQ(disk.content("f")[0], std::byte{1});
  Bytes medium(kSectorBytes);
  ASSERT_TRUE(disk.open_uncached("f").value()->read(0, medium));
  EXPECT_EQ(medium[0], std::byte{0});
  disk.crash(kKeepEverything);
  EXPECT_EQ(disk.content("f")[0], std::byte{0});
}

TEST(SimDisk, MayDropTheCacheOrLieWhenASyncFails) {
  for (const SyncFault fault : {SyncFault::drops_cache, SyncFault::lies}) {
    SimDisk disk;
    auto file = durable_file(disk);
    ASSERT_TRUE(file->write(0, ones(kSectorBytes)));
    disk.fail_sync(disk.syncs() + 1, fault);
    EXPECT_EQ(file->sync().has_value(), fault == SyncFault::lies);
    EXPECT_EQ(disk.content("f")[0], fault == SyncFault::lies ? std::byte{1} : std::byte{0});
    disk.crash(kKeepNothing);
    EXPECT_EQ(disk.content("f")[0], std::byte{0});
  }
}

TEST(SimDisk, DoesNothingWithoutPower) {
  SimDisk disk;
  auto file = durable_file(disk);
  disk.power_off_after(disk.operations() + 1);
  EXPECT_TRUE(file->write(0, ones(1)));
  EXPECT_FALSE(file->write(1, ones(1)));
  EXPECT_FALSE(file->sync());
  EXPECT_FALSE(disk.remove("f"));
  disk.crash(kKeepNothing);
  EXPECT_TRUE(disk.exists("f"));
}

TEST(SimDisk, IsIndependentOfItsCopy) {
  SimDisk disk;
  auto file = durable_file(disk);
  SimDisk copy(disk);
  ASSERT_TRUE(file->write(0, ones(1)));
  EXPECT_EQ(copy.content("f")[0], std::byte{0});
  EXPECT_EQ(copy.pending(), 0u);
}

}  // namespace
}  // namespace baton::sim
