#include "pipeline/shared_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "tests/temporary_directory.h"

namespace {
thread_local std::map<ino_t, int> synced;  // how often, by which file or folder
}
// In place of the C library's: whether a name is durable shows only when the power fails.
extern "C" int fsync(int descriptor) {
  struct stat about{};
  if (::fstat(descriptor, &about) == 0) ++synced[about.st_ino];
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

namespace baton::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(AListOfFiles, IsInOrderAndWithoutWhatIsHidden) {
  TemporaryDirectory folder;
  const SharedFiles files(folder.path());
  for (const char* name : {"b", ".hidden", "a"}) ASSERT_TRUE(files.write(name, "x"));
  EXPECT_THAT(files.list(".").value(), ElementsAre("a", "b"));
  EXPECT_THAT(files.list("none").value(), IsEmpty());
}

TEST(AListOfFiles, IsNotShorterBecauseItCannotBeRead) {  // P3
  TemporaryDirectory folder;
  const SharedFiles files(folder.path());
  ASSERT_TRUE(files.write("queue", "a file where there should be a folder"));
  const auto names = files.list("queue");
  ASSERT_FALSE(names);
  EXPECT_THAT(names.error().message, HasSubstr(folder.path() + "/queue"));
}

TEST(AFileInASharedFolder, IsAsOldAsTheFolderSays) {
  TemporaryDirectory folder;
  {
    const SharedFiles files(folder.path());
    ASSERT_TRUE(files.write("one", "x"));
    EXPECT_TRUE(files.age("one").value());
    EXPECT_FALSE(files.age("none").value());
  }
  std::filesystem::remove(folder.path() + "/one");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "what tells the time is left there";
}

int syncs_of(const std::string& path) {
  struct stat about{};
  return ::stat(path.c_str(), &about) == 0 ? synced[about.st_ino] : 0;
}

TEST(ANameInASharedFolder, IsDurableOnceItIsThere) {  // P4 P17
  synced.clear();
  TemporaryDirectory folder;
  const SharedFiles files(folder.path());
  for (const char* name : {"leased", "ended"}) ASSERT_TRUE(files.make_folder(name));
  EXPECT_GT(syncs_of(folder.path()), 0) << "the folders";
  const std::string leased = folder.path() + "/leased", ended = folder.path() + "/ended";
  ASSERT_TRUE(files.write("leased/a", "x"));
  EXPECT_EQ(syncs_of(leased), 1);
  ASSERT_TRUE(files.write_new("leased/b", "x").value());
  EXPECT_EQ(syncs_of(leased), 2);
  ASSERT_TRUE(files.rename("leased/a", "ended/a").value());
  EXPECT_EQ(syncs_of(ended), 1);
}

}  // namespace
}  // namespace baton::pipeline
