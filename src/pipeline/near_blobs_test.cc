#include "pipeline/near_blobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/folder_blobs.h"
#include "tests/temporary_directory.h"

namespace baton::pipeline {
namespace {

// Counts what is fetched of it, and may lie.
class FarBlobs : public TemporaryBlobs {
 public:
  Status pour(const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) override {
    ++fetched;
    if (on_pour) on_pour(blob);
    if (is_damaged) return into(std::string(blob.bytes, '?'));
    return TemporaryBlobs::pour(blob, into, stop);
  }
  std::atomic<int> fetched = 0;
  std::atomic<bool> is_damaged = false;
  std::function<void(const BlobRef&)> on_pour;
};

// Where temporary folders are made, as long as this is there.
class OwnTemporaryFolder {
 public:
  OwnTemporaryFolder() { ::setenv("TMPDIR", folder_.path().c_str(), 1); }
  ~OwnTemporaryFolder() {
    if (before_.empty())
      ::unsetenv("TMPDIR");
    else
      ::setenv("TMPDIR", before_.c_str(), 1);
  }
  OwnTemporaryFolder(const OwnTemporaryFolder&) = delete;
  OwnTemporaryFolder& operator=(const OwnTemporaryFolder&) = delete;
  const std::string& path() const { return folder_.path(); }

 private:
  const TemporaryDirectory folder_;
  const std::string before_ = std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "";
};

TEST(NearBlobs, FetchEachOnceHoweverManyWantIt) {  // P15
  FarBlobs far;
  NearBlobs near(far);
  const std::string text(100'000, 'x');
  const auto blob = near.put(bytes_of_text(text), {});
  ASSERT_TRUE(blob);
  std::vector<std::jthread> modules;
  for (int i = 0; i < 8; ++i)
    modules.emplace_back([&] { EXPECT_EQ(fetch_text(near, *blob, {}).value_or("nothing"), text); });
  modules.clear();
  EXPECT_EQ(fetch_text(near, *blob, {}).value_or("nothing"), text);
  EXPECT_EQ(far.fetched, 1);
}

TEST(NearBlobs, KeepNoCopyThatIsNotWhatItShouldBe) {  // P15
  FarBlobs far;
  NearBlobs near(far);
  const auto blob = near.put(bytes_of_text("precious"), {});
  far.is_damaged = true;
  EXPECT_EQ(fetch_text(near, *blob, {}).error().code, Errc::corrupt);
  far.is_damaged = false;
  EXPECT_EQ(fetch_text(near, *blob, {}).value_or("nothing"), "precious");
}

TEST(NearBlobs, MakeRoomForNewOnes) {
  FarBlobs far;
  NearBlobs near(far, 10);
  const auto first = near.put(bytes_of_text("first!"), {}), second = near.put(bytes_of_text("second"), {});
  const auto large = near.put(bytes_of_text("more than there is room for"), {});
  for (const auto& blob : {first, second, first}) EXPECT_TRUE(fetch_text(near, *blob, {}));
  EXPECT_EQ(far.fetched, 3);
  EXPECT_TRUE(fetch_text(near, *first, {}));
  EXPECT_EQ(far.fetched, 3);
  EXPECT_EQ(fetch_text(near, *large, {}).value_or("nothing"), "more than there is room for");
}

TEST(NearBlobs, KeepNoMoreWhileSeveralAreOnTheirWay) {
  FarBlobs far;
  NearBlobs near(far, 10);
  const auto first = near.put(bytes_of_text("first!"), {}), second = near.put(bytes_of_text("second"), {});
  far.on_pour = [&](const BlobRef& blob) {
    if (blob != *first) return;
    for (int i = 0; i < 2; ++i) EXPECT_EQ(fetch_text(near, *second, {}).value_or("nothing"), "second");
  };
  EXPECT_TRUE(fetch_text(near, *first, {}));
  EXPECT_EQ(far.fetched, 3) << "there was room for one of them";
  far.is_damaged = true;
  EXPECT_FALSE(fetch_text(near, *second, {}));
  far.is_damaged = false;
  far.fetched = 0;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(fetch_text(near, *second, {}));
  EXPECT_EQ(far.fetched, 1) << "what has not come takes up no room";
}

TEST(TemporaryFolders, OfBlobsAreForTheirOwnerOnly) {  // X4
  const OwnTemporaryFolder temporary;
  FarBlobs far;
  NearBlobs near(far);
  const mode_t before = ::umask(0);
  const auto blob = near.put(bytes_of_text("secret"), {});
  EXPECT_TRUE(fetch_text(near, *blob, {}));
  ::umask(before);
  std::vector<unsigned> modes;
  for (const auto& folder : std::filesystem::directory_iterator(temporary.path())) {
    struct stat about{};
    EXPECT_EQ(::stat(folder.path().c_str(), &about), 0);
    modes.push_back(about.st_mode & 0777);
  }
  EXPECT_THAT(modes, ::testing::ElementsAre(0700u, 0700u));
}

}  // namespace
}  // namespace baton::pipeline
