// Finds a task's slot by its lsn. New tasks always have the largest lsn so far, so the index is a sorted
// array in pages: about 8 bytes a task, no rehashing, neighbours lie together, and it can be walked in order.
#pragma once

#include <cstdint>
#include <vector>

#include "base/paged.h"
#include "core/ids.h"

namespace baton::core {

class IdIndex {
 public:
  void append(Lsn lsn, Slot slot);  // lsn is larger than any before
  Slot find(Lsn lsn) const;         // 0 if there is none
  void erase(Lsn lsn);              // which is there
  Slot newest() const;              // of the task that was added last; 0 if it is gone
  // The slot of the first task at or after `lsn`, 0 past the end.
  Slot first_from(Lsn lsn) const;
  std::size_t pages() const { return pages_.size(); }  // of 255 tasks at most, 63 on average at least

 private:
  static constexpr std::uint32_t kEntries = 255;
  struct Entry {
    std::uint32_t delta = 0;  // lsn minus the page's first lsn
    Slot slot = 0;            // 0: erased
  };
  struct Entries {
    Entry at[kEntries];
    std::uint32_t next = 0;
  };
  // What a search needs to know of a page, apart from it: so that a look-up reads one line of the page
  // itself.
  struct Page {
    Lsn first = 0;
    Slot entries = 0;
    std::uint16_t used = 0;  // entries written
    std::uint16_t live = 0;  // … of which are not erased
  };

  std::size_t page_of(Lsn lsn) const;                          // the last page that starts at or before lsn
  std::uint32_t position_in(std::size_t page, Lsn lsn) const;  // of the first entry at or after lsn
  Lsn end_of(std::size_t page) const;
  void tidy(std::size_t page);

  std::vector<Page> pages_;
  Slab<Entries> entries_;
  Lsn newest_ = 0;
};

}  // namespace baton::core
