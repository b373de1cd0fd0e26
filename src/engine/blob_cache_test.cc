#include "engine/blob_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace baton::engine {
namespace {

Bytes some(std::size_t size, std::uint64_t number) { return Bytes(size, static_cast<std::byte>(number)); }

TEST(BlobCache, GivesBackWhatWasKeptUnderANumber) {
  BlobCache cache(1 << 20);
  cache.keep(5, some(10, 5));
  cache.keep(9, some(20, 9));
  ASSERT_NE(cache.find(5), nullptr);
  EXPECT_EQ(*cache.find(5), some(10, 5));
  EXPECT_EQ(*cache.find(9), some(20, 9));
  for (const std::uint64_t number : {0, 4, 6, 8, 10}) EXPECT_EQ(cache.find(number), nullptr) << number;
}

TEST(BlobCache, ForgetsTheOldestFirstAndNeverHoldsMoreThanItMay) {
  std::mt19937_64 random(1);
  const std::size_t bytes_max = 4096;
  BlobCache cache(bytes_max);
  std::vector<std::uint64_t> kept;
  std::uint64_t number = 0;
  for (int step = 0; step < 500; ++step) {
    number += 1 + random() % 20;
    if (random() % 4 == 0) {
      cache.pass(number);
      EXPECT_EQ(cache.find(number), nullptr);
    } else {
      cache.keep(number, some(1 + random() % 600, number));
      kept.push_back(number);
    }
    EXPECT_LE(cache.bytes(), bytes_max);
    // From the oldest that is still there on, nothing is missing.
    const auto oldest =
        std::ranges::find_if(kept, [&](const auto& one) { return cache.find(one) != nullptr; });
    for (auto at = kept.begin(); at != kept.end(); ++at) {
      const auto found = cache.find(*at);
      EXPECT_EQ(found != nullptr, at >= oldest);
      EXPECT_TRUE(!found || *found == some(found->size(), *at));
    }
  }
}

// It is written in blocks, none of which a blob reaches beyond.
TEST(BlobCache, GivesBackWhatIsLeftOfSeveralRounds) {
  constexpr std::size_t kBlob = 300'000, kCacheBytes = std::size_t{12} << 20;
  BlobCache cache(kCacheBytes);
  constexpr std::uint64_t kBlobs = 5 * kCacheBytes / kBlob;
  for (std::uint64_t number = 1; number <= kBlobs; ++number) {
    cache.keep(number, some(kBlob + number, number));
    std::uint64_t oldest = number;
    for (SharedBytes found; (found = cache.find(oldest)); --oldest) {
      // At one go: byte by byte this takes minutes where each access is watched.
      ASSERT_EQ(found->size(), kBlob + oldest);
      EXPECT_EQ(std::memcmp(found->data(), some(kBlob + oldest, oldest).data(), found->size()), 0);
    }
    EXPECT_GE(number - oldest, std::min<std::uint64_t>(number, 3 * ((4 << 20) / (kBlob + kBlobs) - 1)));
  }
}

TEST(BlobCache, ForgetsNothingForWhatDoesNotFit) {
  BlobCache cache(1000);
  cache.keep(1, some(100, 1));
  cache.keep(2, some(1000, 2));
  EXPECT_NE(cache.find(1), nullptr);
  EXPECT_EQ(cache.find(2), nullptr);
}

TEST(BlobCache, MayBeTooSmallForAnything) {
  BlobCache cache(0);
  cache.keep(1, some(1, 1));
  cache.pass(7);
  cache.keep(8, {});
  EXPECT_EQ(cache.find(1), nullptr);
  EXPECT_EQ(cache.find(8), nullptr);
  EXPECT_EQ(cache.bytes(), 0);
}

}  // namespace
}  // namespace baton::engine
