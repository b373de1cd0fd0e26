#include "pipeline/fetched_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/temporary_directory.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;

TEST(AFolderForArtifacts, HasNothingOfAnEarlierRun) {  // P15
  const TemporaryDirectory directory;
  const std::string folder = directory.path() + "/fetched/linux";
  ASSERT_TRUE(make_ready_for("monday", folder));
  std::ofstream(folder + "/app") << "of monday";
  fs::create_directories(folder + "/deep/er");
  ASSERT_TRUE(make_ready_for("monday", folder));
  EXPECT_TRUE(fs::exists(folder + "/app")) << "another module of the same run may be using it";
  ASSERT_TRUE(make_ready_for("tuesday", folder));
  EXPECT_FALSE(fs::exists(folder + "/app"));
  EXPECT_FALSE(fs::exists(folder + "/deep"));
}

TEST(AFolderForArtifacts, KeepsWhatPeoplePutThere) {  // P15
  const TemporaryDirectory directory;
  const std::string folder = directory.path() + "/src";
  fs::create_directories(folder);
  std::ofstream(folder + "/main.cc") << "int main() {}";
  for (const char* run : {"monday", "tuesday"}) ASSERT_TRUE(make_ready_for(run, folder));
  EXPECT_TRUE(fs::exists(folder + "/main.cc"));
}

}  // namespace
}  // namespace baton::pipeline
