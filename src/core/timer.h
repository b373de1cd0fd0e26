// What is due next: a heap of (instant, lsn, slot) in which every item knows its own position, so that it can
// be taken out or moved at any time. Ties go to the smaller lsn, so the order never depends on history.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/paged.h"
#include "base/time.h"
#include "core/ids.h"

namespace baton::core {

class Timer {
 public:
  struct Entry {
    Instant at;
    Lsn lsn = 0;
    Slot slot = 0;
  };

  bool empty() const { return heap_.size() == 0; }
  std::uint32_t size() const { return heap_.size(); }
  const Entry& first() const { return heap_[0]; }

  // How many are due; each takes one off `at_most`, and none is counted beyond that.
  std::uint32_t count_due(Instant now, std::uint32_t& at_most) const {
    std::uint32_t count = 0;
    std::vector<std::uint32_t> positions = {0};
    while (!positions.empty() && at_most > 0) {
      const std::uint32_t position = positions.back();
      positions.pop_back();
      if (position >= heap_.size() || heap_[position].at > now) continue;  // nor is anything below it
      ++count, --at_most;
      for (std::uint32_t child = 1; child <= kWays; ++child) positions.push_back(position * kWays + child);
    }
    return count;
  }

  // `moved(slot, position)` is called for every entry that comes to lie elsewhere.
  void insert(const Entry& entry, auto&& moved) {
    heap_.push_back(entry);
    rise(heap_.size() - 1, moved);
  }
  void erase(std::uint32_t position, auto&& moved) {
    const std::uint32_t last = heap_.size() - 1;
    const Entry orphan = heap_[last];
    heap_.pop_back();
    if (position == last) return;
    heap_[position] = orphan;
    settle(position, moved);
  }
  void change(std::uint32_t position, Instant at, auto&& moved) {
    heap_[position].at = at;
    settle(position, moved);
  }

 private:
  static constexpr std::uint32_t kWays = 4;

  static bool before(const Entry& a, const Entry& b) { return a.at != b.at ? a.at < b.at : a.lsn < b.lsn; }

  void settle(std::uint32_t position, auto&& moved) {
    if (rise(position, moved) == position) sink(position, moved);
  }
  std::uint32_t rise(std::uint32_t position, auto&& moved) {
    const Entry entry = heap_[position];
    while (position > 0) {
      const std::uint32_t parent = (position - 1) / kWays;
      if (!before(entry, heap_[parent])) break;
      put(position, heap_[parent], moved);
      position = parent;
    }
    put(position, entry, moved);
    return position;
  }
  void sink(std::uint32_t position, auto&& moved) {
    const Entry entry = heap_[position];
    for (;;) {
      const std::uint32_t begin = position * kWays + 1;
      if (begin >= heap_.size()) break;
      std::uint32_t least = begin;
      for (std::uint32_t child = begin + 1; child < begin + kWays && child < heap_.size(); ++child) {
        if (before(heap_[child], heap_[least])) least = child;
      }
      if (!before(heap_[least], entry)) break;
      put(position, heap_[least], moved);
      position = least;
    }
    put(position, entry, moved);
  }
  void put(std::uint32_t position, const Entry& entry, auto&& moved) {
    heap_[position] = entry;
    moved(entry.slot, position);
  }

  Paged<Entry, 16> heap_;  // most lanes have few delayed tasks
};

}  // namespace baton::core
