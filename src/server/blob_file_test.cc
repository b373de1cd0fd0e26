#include "server/blob_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

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
  NewBlobFile file(folder, hash, 6);
  EXPECT_TRUE(file.open());
  EXPECT_TRUE(file.append("secret"));
  EXPECT_TRUE(file.finish());
  ::umask(before);
  EXPECT_EQ(mode_of(directory.path() + "/blobs"), 0700u);
  EXPECT_EQ(mode_of(folder), 0700u);
  EXPECT_EQ(mode_of(folder + "/" + hash), 0600u);
}

}  // namespace
}  // namespace baton::server
