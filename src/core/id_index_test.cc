#include "core/id_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/check.h"

namespace baton::core {
namespace {

TEST(IdIndex, FindsNothingWhileEmpty) {
  const IdIndex index;
  EXPECT_EQ(index.find(0), 0u);
  EXPECT_EQ(index.find(UINT64_MAX), 0u);
  EXPECT_EQ(index.first_from(0), 0u);
}

TEST(IdIndex, FindsWhatWasAppendedAndNothingBetween) {
  IdIndex index;
  for (Slot slot = 1; slot <= 2000; ++slot) index.append(Lsn{slot} * 3, slot);
  for (Lsn lsn = 0; lsn <= 6003; ++lsn) {
    const bool there = lsn > 0 && lsn % 3 == 0 && lsn <= 6000;
    EXPECT_EQ(index.find(lsn), there ? lsn / 3 : 0) << lsn;
    EXPECT_EQ(index.first_from(lsn), lsn > 6000 ? 0 : std::max<Lsn>(1, (lsn + 2) / 3)) << lsn;
  }
}

TEST(IdIndex, BearsGapsOfAnySize) {
  IdIndex index;
  const std::vector<Lsn> lsns = {1,
                                 2,
                                 UINT32_MAX,
                                 Lsn{UINT32_MAX} + 1,
                                 Lsn{UINT32_MAX} + 2,
                                 Lsn{1} << 40,
                                 (Lsn{1} << 40) + 1,
                                 Lsn{1} << 62,
                                 UINT64_MAX - 1};
  for (Slot slot = 1; slot <= lsns.size(); ++slot) index.append(lsns[slot - 1], slot);
  for (Slot slot = 1; slot <= lsns.size(); ++slot) {
    EXPECT_EQ(index.find(lsns[slot - 1]), slot);
    EXPECT_EQ(index.first_from(lsns[slot - 1]), slot);
  }
  EXPECT_EQ(index.find(3), 0u);
  EXPECT_EQ(index.first_from(3), 3u);
  EXPECT_EQ(index.find((Lsn{1} << 40) + 2), 0u);
}

TEST(IdIndex, AgreesWithAMapHoweverTasksComeAndGo) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 random(seed);
    IdIndex index;
    std::map<Lsn, Slot> known;
    Lsn last = 0;
    Slot slot = 0;
    const std::uint64_t stride = seed % 3 == 0 ? 100'000'000 : 1 + seed;
    for (int step = 0; step < 6000; ++step) {
      // Phases of growing and shrinking, so that pages empty, merge and fill.
      const bool grows = known.empty() || random() % 100 < (step / 1500 % 2 == 0 ? 70u : 25u);
      if (grows) {
        last += 1 + random() % stride;
        index.append(last, ++slot);
        known.emplace(last, slot);
      } else {
        const auto victim =
            random() % 4 == 0
                ? std::prev(known.end())
                : std::next(known.begin(),
                            static_cast<std::ptrdiff_t>(random() % std::min<std::size_t>(known.size(), 40)));
        index.erase(victim->first);
        known.erase(victim);
      }
      const Lsn probe = random() % (last + 2);
      const auto at = known.find(probe);
      ASSERT_EQ(index.find(probe), at == known.end() ? 0 : at->second) << "seed " << seed;
      const auto next = known.lower_bound(probe);
      ASSERT_EQ(index.first_from(probe), next == known.end() ? 0 : next->second) << "seed " << seed;
    }
    for (const auto& [lsn, at] : known) ASSERT_EQ(index.find(lsn), at);
    Lsn from = 0;
    for (const auto& [lsn, at] : known) {
      ASSERT_EQ(index.first_from(from), at);
      from = lsn + 1;
    }
    EXPECT_EQ(index.first_from(from), 0u);
  }
}

// X3: pages that tasks have left are given back, also by a queue that never holds many at a time.
TEST(IdIndex, DoesNotGrowWithTasksThatAreGone) {
  for (const Lsn held : {Lsn{1}, Lsn{10}, Lsn{255}, Lsn{1000}}) {
    IdIndex index;
    for (Lsn lsn = 1; lsn <= 100'000; ++lsn) {
      index.append(lsn, static_cast<Slot>(lsn));
      if (lsn > held) index.erase(lsn - held);
      ASSERT_LE(index.pages(), held / 63 + 2) << "holding " << held;
    }
  }
}

// X3
TEST(IdIndex, DoesNotGrowWhenItIsEmptiedPageByPage) {
  IdIndex index;
  for (Lsn lsn = 1; lsn <= 255 * 100; ++lsn) {
    index.append(lsn, 1);
    if (lsn % 255 != 0) continue;
    for (Lsn old = lsn - 254; old <= lsn; ++old) index.erase(old);
    ASSERT_LE(index.pages(), 2u);
  }
}

// T72
TEST(IdIndex, StopsOverAnLsnThatIsNotTheLargest) {
  const ThrowOnCheck throwing;
  IdIndex index;
  index.append(5, 1);
  EXPECT_THROW(index.append(5, 2), CheckFailure);
  EXPECT_THROW(index.append(4, 2), CheckFailure);
}

}  // namespace
}  // namespace baton::core
