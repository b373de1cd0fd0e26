#include "core/id_index.h"

#include <algorithm>

#include "base/check.h"

namespace baton::core {

void IdIndex::append(Lsn lsn, Slot slot) {
  BATON_CHECK(lsn > newest_);
  newest_ = lsn;
  const bool fits =
      !pages_.empty() && pages_.back().used < kEntries && lsn - pages_.back().first <= UINT32_MAX;
  if (!fits) {
    pages_.push_back({.first = lsn, .entries = entries_.take()});
    // What was the last page may have been emptied while it was left alone; nothing else would look at it.
    if (pages_.size() > 1 && pages_[pages_.size() - 2].live == 0) tidy(pages_.size() - 2);
  }
  Page& page = pages_.back();
  entries_[page.entries].at[page.used++] = {static_cast<std::uint32_t>(lsn - page.first), slot};
  ++page.live;
}

// Tasks are created at an even pace, so a guess by proportion lands next to what is looked for, and a look-up
// reads one or two lines of memory where a binary search would read ten. Both searches below start there.

std::size_t IdIndex::page_of(Lsn lsn) const {
  constexpr std::size_t kNear = 4;
  const std::size_t count = pages_.size();
  const double proportion = static_cast<double>(lsn - pages_.front().first) /
                            static_cast<double>(newest_ + 1 - pages_.front().first);
  const auto guess = std::min(static_cast<std::size_t>(proportion * static_cast<double>(count)), count - 1);
  std::size_t begin = guess > kNear ? guess - kNear : 0;
  std::size_t end = std::min(guess + kNear, count);
  if (pages_[begin].first > lsn) begin = 0;
  if (end < count && pages_[end].first <= lsn) end = count;
  const auto iterator = [&](std::size_t index) {
    return pages_.begin() + static_cast<std::ptrdiff_t>(index);
  };
  const auto after = std::upper_bound(iterator(begin), iterator(end), lsn,
                                      [](Lsn wanted, const Page& page) { return wanted < page.first; });
  return static_cast<std::size_t>(after - pages_.begin()) - 1;
}

Lsn IdIndex::end_of(std::size_t page) const {
  return page + 1 < pages_.size() ? pages_[page + 1].first : newest_ + 1;
}

std::uint32_t IdIndex::position_in(std::size_t number, Lsn lsn) const {
  const Page& page = pages_[number];
  if (lsn <= page.first) return 0;
  const std::uint64_t delta = lsn - page.first;
  const std::uint64_t guess = delta * page.used / (end_of(number) - page.first);
  const Entry* const entries = entries_[page.entries].at;
  auto at = static_cast<std::uint32_t>(std::min<std::uint64_t>(guess, page.used));
  while (at > 0 && entries[at - 1].delta >= delta) --at;
  while (at < page.used && entries[at].delta < delta) ++at;
  return at;
}

Slot IdIndex::newest() const {
  if (pages_.empty()) return 0;
  const Page& last = pages_.back();  // which is never tidied
  return entries_[last.entries].at[last.used - 1].slot;
}

Slot IdIndex::find(Lsn lsn) const {
  if (pages_.empty() || lsn < pages_.front().first || lsn > newest_) return 0;
  if (lsn == newest_) return newest();  // what was just created is asked for most
  const std::size_t number = page_of(lsn);
  const Page& page = pages_[number];
  const std::uint32_t at = position_in(number, lsn);
  if (at == page.used) return 0;
  const Entry& entry = entries_[page.entries].at[at];
  return page.first + entry.delta == lsn ? entry.slot : 0;
}

Slot IdIndex::first_from(Lsn lsn) const {
  if (pages_.empty() || lsn > newest_) return 0;
  for (std::size_t number = lsn < pages_.front().first ? 0 : page_of(lsn); number < pages_.size(); ++number) {
    const Page& page = pages_[number];
    for (std::uint32_t at = position_in(number, lsn); at < page.used; ++at) {
      if (const Slot slot = entries_[page.entries].at[at].slot) return slot;
    }
  }
  return 0;
}

void IdIndex::erase(Lsn lsn) {
  const std::size_t number = page_of(lsn);
  Page& page = pages_[number];
  const std::uint32_t at = position_in(number, lsn);
  Entry& entry = entries_[page.entries].at[at];
  BATON_CHECK(at < page.used && page.first + entry.delta == lsn && entry.slot != 0);
  entry.slot = 0;
  --page.live;
  if (page.live < kEntries / 4) tidy(number);
}

// Keeps pages a quarter full on average: an empty page goes, a sparse one takes its successor in. The last
// page is left alone, since appends go there.
void IdIndex::tidy(std::size_t number) {
  if (number + 1 == pages_.size()) return;
  std::size_t superfluous = number;
  Page& page = pages_[number];
  if (page.live > 0) {
    const Page& next = pages_[number + 1];
    const bool joins = number + 2 < pages_.size() && page.live + next.live <= kEntries / 2 &&
                       end_of(number + 1) - page.first <= UINT32_MAX;
    if (!joins) return;
    Entry* const into = entries_[page.entries].at;
    std::uint16_t used = 0;
    const auto take = [&](const Page& from) {
      const auto shift = static_cast<std::uint32_t>(from.first - page.first);
      for (std::uint32_t at = 0; at < from.used; ++at) {
        const Entry entry = entries_[from.entries].at[at];
        if (entry.slot != 0) into[used++] = {entry.delta + shift, entry.slot};
      }
    };
    take(page);
    take(next);
    page.used = page.live = used;
    superfluous = number + 1;
  }
  entries_.give_back(pages_[superfluous].entries);
  pages_.erase(pages_.begin() + static_cast<std::ptrdiff_t>(superfluous));
}

}  // namespace baton::core
