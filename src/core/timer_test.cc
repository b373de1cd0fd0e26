#include "core/timer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace baton::core {
namespace {

// A timer beside a plain ordered set, with the positions it tells.
struct Watched {
  Timer timer;
  std::map<Slot, std::uint32_t> positions;
  std::set<std::tuple<Instant, Lsn, Slot>> wanted;

  auto remember() {
    return [this](Slot slot, std::uint32_t position) { positions[slot] = position; };
  }
  void insert(Instant at, Lsn lsn, Slot slot) {
    timer.insert({at, lsn, slot}, remember());
    wanted.emplace(at, lsn, slot);
  }
  void erase(std::tuple<Instant, Lsn, Slot> entry) {
    timer.erase(positions.at(std::get<2>(entry)), remember());
    positions.erase(std::get<2>(entry));
    wanted.erase(entry);
  }
  void change(std::tuple<Instant, Lsn, Slot> entry, Instant at) {
    timer.change(positions.at(std::get<2>(entry)), at, remember());
    wanted.erase(entry);
    std::get<0>(entry) = at;
    wanted.insert(entry);
  }
  void check() const {
    ASSERT_EQ(timer.size(), wanted.size());
    ASSERT_EQ(timer.empty(), wanted.empty());
    if (wanted.empty()) return;
    const auto& [at, lsn, slot] = *wanted.begin();
    ASSERT_EQ(timer.first().at, at);
    ASSERT_EQ(timer.first().lsn, lsn);
    ASSERT_EQ(timer.first().slot, slot);
    ASSERT_EQ(positions.at(slot), 0u);
  }
};

TEST(Timer, GivesTheEarliestHoweverItIsChanged) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Watched watched;
    for (Lsn lsn = 1; lsn <= 3000; ++lsn) {
      const Instant at{static_cast<std::int64_t>(random() % 50)};  // many at the same time
      const auto any = [&] {
        return *std::next(watched.wanted.begin(),
                          static_cast<std::ptrdiff_t>(random() % watched.wanted.size()));
      };
      if (watched.wanted.empty() || random() % 3 == 0) {
        watched.insert(at, lsn, static_cast<Slot>(lsn));
      } else if (random() % 3 == 0) {
        watched.erase(any());
      } else {
        watched.change(any(), at);
      }
      watched.check();
    }
    while (!watched.wanted.empty()) {
      watched.erase(*watched.wanted.begin());
      watched.check();
    }
  }
}

// Ties go to the smaller lsn, so the order does not depend on the order of insertion.
TEST(Timer, CountsWhatIsDueUpToALimit) {
  std::mt19937_64 random(1);
  Watched watched;
  for (Lsn lsn = 1; lsn <= 500; ++lsn)
    watched.insert(Instant{static_cast<std::int64_t>(random() % 100)}, lsn, static_cast<Slot>(lsn));
  for (std::int64_t now = -1; now <= 100; ++now) {
    const auto due = static_cast<std::uint32_t>(std::ranges::count_if(
        watched.wanted, [&](const auto& entry) { return std::get<0>(entry).ms <= now; }));
    std::uint32_t plenty = 1000, few = 7;
    EXPECT_EQ(watched.timer.count_due(Instant{now}, plenty), due);
    EXPECT_EQ(plenty, 1000 - due);
    EXPECT_EQ(watched.timer.count_due(Instant{now}, few), std::min(due, 7u));
  }
}

TEST(Timer, BreaksTiesByLsn) {
  for (const bool backwards : {false, true}) {
    Watched watched;
    for (Lsn i = 1; i <= 40; ++i) {
      const Lsn lsn = backwards ? 41 - i : i;
      watched.insert(Instant{7}, lsn, static_cast<Slot>(lsn));
    }
    for (Lsn lsn = 1; lsn <= 40; ++lsn) {
      EXPECT_EQ(watched.timer.first().lsn, lsn);
      watched.erase(*watched.wanted.begin());
    }
  }
}

}  // namespace
}  // namespace baton::core
