// Whether slices make up a tensor.
#include "checkpoint/rectangle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>

namespace baton::checkpoint {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

// A grid of so many by so many, of elements or of larger tiles.
std::vector<Rectangle> tiles(std::uint64_t down, std::uint64_t across, std::uint64_t height,
                             std::uint64_t width) {
  std::vector<Rectangle> all;
  for (std::uint64_t row = 0; row < down; ++row)
    for (std::uint64_t column = 0; column < across; ++column)
      all.push_back({{row * height, column * width}, {height, width}});
  return all;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// C7: along whichever dimension they are cut
TEST(Slices, ThatOverlapOrLeaveSomethingOutAreNoticed) {
  for (const auto& [down, across] : {std::pair(1, 6), std::pair(6, 1), std::pair(3, 4)}) {
    const auto whole = tiles(down, across, 2, 3);
    const Shape shape{down * 2U, across * 3U};
    EXPECT_EQ(what_is_wrong_with(shape, whole), std::nullopt);
    for (std::size_t one = 0; one < whole.size(); ++one) {
      auto without = whole;
      without.erase(without.begin() + static_cast<std::ptrdiff_t>(one));
      EXPECT_THAT(what_is_wrong_with(shape, without), Optional(HasSubstr("6 of its")));
      for (std::size_t other = 0; other < whole.size(); ++other) {
        if (one == other) continue;
        auto twice = without;
        twice.push_back({whole[other].offset, {1, 2}});
        EXPECT_THAT(what_is_wrong_with(shape, twice), Optional(HasSubstr("overlap")));
      }
    }
  }
}

// C7
TEST(Slices, OfOneTensorMayBeVeryMany) {
  constexpr std::uint64_t kMany = 100'000;
  const double begun = cpu_seconds();
  EXPECT_EQ(what_is_wrong_with({4, kMany}, tiles(1, kMany, 4, 1)), std::nullopt);
  EXPECT_EQ(what_is_wrong_with({kMany, 4}, tiles(kMany, 1, 1, 4)), std::nullopt);
  EXPECT_LT(cpu_seconds() - begun, 5);
}

}  // namespace
}  // namespace baton::checkpoint
