#include "core/id_index.h"

#include <algorithm>

#include "base/check.h"

namespace baton::core {

void IdIndex::append(Lsn lsn, Slot slot) {
  const bool fits = !pages_.empty() && pages_.back()->used < kEntries && lsn - firsts_.back() <= UINT32_MAX;
  if (!fits) {
    firsts_.push_back(lsn);
    pages_.push_back(std::make_unique<Page>());
  }
  Page& page = *pages_.back();
  const std::uint64_t delta = lsn - firsts_.back();
  BATON_CHECK(page.used == 0 || page.entries[page.used - 1].delta < delta);
  page.entries[page.used++] = {static_cast<std::uint32_t>(delta), slot};
  ++page.live;
}

std::size_t IdIndex::page_of(Lsn lsn) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(firsts_, lsn) - firsts_.begin()) - 1;
}

// The first entry at or after `delta`. Tasks are created at an even pace, so a guess by proportion lands next
// to it, and one cache line is read where a binary search would read four.
std::uint32_t IdIndex::position_in(const Page& page, std::uint64_t delta) {
  const std::uint64_t last = page.entries[page.used - 1].delta;
  if (delta > last) return page.used;
  auto at = last == 0 ? 0 : static_cast<std::uint32_t>(delta * (page.used - 1) / last);
  while (at > 0 && page.entries[at - 1].delta >= delta) --at;
  while (page.entries[at].delta < delta) ++at;
  return at;
}

Slot IdIndex::find(Lsn lsn) const {
  if (firsts_.empty() || lsn < firsts_.front()) return 0;
  const std::size_t number = page_of(lsn);
  const Page& page = *pages_[number];
  const std::uint64_t delta = lsn - firsts_[number];
  const std::uint32_t at = position_in(page, delta);
  return at < page.used && page.entries[at].delta == delta ? page.entries[at].slot : 0;
}

Slot IdIndex::first_from(Lsn lsn) const {
  if (firsts_.empty()) return 0;
  const std::size_t start = lsn < firsts_.front() ? 0 : page_of(lsn);
  for (std::size_t number = start; number < pages_.size(); ++number) {
    const Page& page = *pages_[number];
    const std::uint64_t delta = lsn > firsts_[number] ? lsn - firsts_[number] : 0;
    for (std::uint32_t at = position_in(page, delta); at < page.used; ++at) {
      if (page.entries[at].slot != 0) return page.entries[at].slot;
    }
  }
  return 0;
}

void IdIndex::erase(Lsn lsn) {
  const std::size_t number = page_of(lsn);
  Page& page = *pages_[number];
  const std::uint32_t at = position_in(page, lsn - firsts_[number]);
  BATON_CHECK(at < page.used && page.entries[at].slot != 0);
  page.entries[at].slot = 0;
  --page.live;
  if (page.live < kEntries / 4) tidy(number);
}

// Keeps pages at least a quarter full on average: an empty page goes, a sparse one joins its successor.
// The last page is left alone, since appends go there.
void IdIndex::tidy(std::size_t number) {
  if (number + 1 == pages_.size()) return;
  Page& page = *pages_[number];
  Page& next = *pages_[number + 1];
  const Lsn gap = firsts_[number + 1] - firsts_[number];
  if (page.live > 0) {
    const bool joins = number + 2 < pages_.size() && page.live + next.live <= kEntries / 2 &&
                       gap + next.entries[next.used - 1].delta <= UINT32_MAX;
    if (!joins) return;
    auto joined = std::make_unique<Page>();
    const auto take = [&](const Page& from, std::uint64_t shift) {
      for (std::uint32_t at = 0; at < from.used; ++at) {
        if (from.entries[at].slot == 0) continue;
        joined->entries[joined->used++] = {static_cast<std::uint32_t>(from.entries[at].delta + shift),
                                           from.entries[at].slot};
      }
    };
    take(page, 0);
    take(next, gap);
    joined->live = joined->used;
    firsts_[number + 1] = firsts_[number];
    pages_[number + 1] = std::move(joined);
  }
  firsts_.erase(firsts_.begin() + static_cast<std::ptrdiff_t>(number));
  pages_.erase(pages_.begin() + static_cast<std::ptrdiff_t>(number));
}

}  // namespace baton::core
