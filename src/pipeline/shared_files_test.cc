#include "pipeline/shared_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/temporary_directory.h"

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

}  // namespace
}  // namespace baton::pipeline
