#include "core/stream/versions.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <set>
#include <vector>

namespace baton::core::streams {
namespace {

std::vector<std::uint32_t> all_of(const Versions& versions) {
  std::vector<std::uint32_t> all;
  versions.visit([&](std::uint32_t version) { all.push_back(version); });
  return all;
}

// S17, S19: whoever waits for one event takes no more room, and no more time, for each that comes meanwhile.
TEST(Versions, ThatFollowEachOtherAreOne) {
  Versions versions;
  for (std::uint32_t version = 2; version <= 100'000; ++version) EXPECT_TRUE(versions.add(version));
  EXPECT_EQ(versions.runs(), 1u);
  EXPECT_EQ(versions.last_behind(0), 0u) << "1 is missing";
  EXPECT_EQ(versions.last_behind(1), 100'000u);
  versions.drop_up_to(99'999);
  EXPECT_EQ(all_of(versions), std::vector<std::uint32_t>{100'000});
}

TEST(Versions, AreWhatASetWouldHave) {
  std::minstd_rand dice;
  for (int times = 0; times < 200; ++times) {
    Versions versions;
    std::set<std::uint32_t> expected;
    for (int step = 0; step < 60; ++step) {
      const auto version = static_cast<std::uint32_t>(1 + dice() % 40);
      if (dice() % 8 == 0) {
        versions.drop_up_to(version / 2);
        expected.erase(expected.begin(), expected.upper_bound(version / 2));
      } else {
        EXPECT_EQ(versions.add(version), expected.insert(version).second);
      }
      EXPECT_EQ(versions.contains(version), expected.contains(version));
      std::uint32_t last = version;
      while (expected.contains(last + 1)) ++last;
      EXPECT_EQ(versions.last_behind(version), last);
      ASSERT_EQ(all_of(versions), std::vector<std::uint32_t>(expected.begin(), expected.end()));
    }
  }
}

TEST(Versions, HaveAnEnd) {
  constexpr auto kLast = std::numeric_limits<std::uint32_t>::max();
  Versions versions;
  EXPECT_TRUE(versions.add(kLast));
  EXPECT_TRUE(versions.add(0));
  EXPECT_TRUE(versions.add(kLast - 1));
  EXPECT_FALSE(versions.add(kLast));
  EXPECT_EQ(all_of(versions), (std::vector<std::uint32_t>{0, kLast - 1, kLast}));
  EXPECT_EQ(versions.last_behind(kLast - 2), kLast);
  EXPECT_EQ(versions.last_behind(kLast), kLast);
  versions.drop_up_to(kLast);
  EXPECT_EQ(versions.runs(), 0u);
}

}  // namespace
}  // namespace baton::core::streams
