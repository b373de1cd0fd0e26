#include "server/blob_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/temporary_directory.h"

namespace baton::server {
namespace {

unsigned mode_of(const std::string& path) {
  struct stat about{};
  EXPECT_EQ(::stat(path.c_str(), &about), 0) << path;
  return about.st_mode & 0777;
}

// X4: like the log beside it.
TEST(ABlobFile, IsForItsOwnerOnly) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path() + "/blobs/1-2";
  wire::Sha256 sum;
  sum.add("secret");
  const std::string hash = sum.hex();
  const mode_t before = ::umask(0);
  NewBlobFile file(folder, hash, 6, 0);
  EXPECT_TRUE(file.open());
  EXPECT_TRUE(file.append("secret"));
  EXPECT_TRUE(file.finish());
  ::umask(before);
  EXPECT_EQ(mode_of(directory.path() + "/blobs"), 0700u);
  EXPECT_EQ(mode_of(folder), 0700u);
  EXPECT_EQ(mode_of(folder + "/" + hash), 0600u);
}

// X5: completions and snapshots need the disk when it is nearly full.
TEST(ABlobFile, LeavesWhatIsSetAsideForTheLog) {
  const TemporaryDirectory directory;
  const std::string folder = directory.path() + "/blobs/1-2";
  constexpr std::uint64_t kMoreThanThereIs = std::uint64_t{1} << 60;
  NewBlobFile file(folder, std::string(64, 'a'), 6, kMoreThanThereIs);
  EXPECT_EQ(file.open().error().code, Errc::no_space);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace baton::server
