#include "pipeline/near_blobs.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "pipeline/folder_blobs.h"

namespace baton::pipeline {
namespace {

// Counts what is fetched of it, and may lie.
class FarBlobs : public TemporaryBlobs {
 public:
  Status pour(const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) override {
    ++fetched;
    if (is_damaged) return into(std::string(blob.bytes, '?'));
    return TemporaryBlobs::pour(blob, into, stop);
  }
  std::atomic<int> fetched = 0;
  std::atomic<bool> is_damaged = false;
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

}  // namespace
}  // namespace baton::pipeline
