// Finds a task's slot by its lsn. New tasks always have the largest lsn so far, so the index is a sorted
// array in pages: about 8 bytes a task, no rehashing, neighbours lie together, and it can be walked in order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/ids.h"

namespace baton::core {

class IdIndex {
 public:
  void append(Lsn lsn, Slot slot);  // lsn is larger than any before
  Slot find(Lsn lsn) const;         // 0 if there is none
  void erase(Lsn lsn);              // which is there
  // The slot of the first task at or after `lsn`, 0 past the end.
  Slot first_from(Lsn lsn) const;

 private:
  static constexpr std::uint32_t kEntries = 254;
  struct Page {
    std::uint32_t used = 0;  // entries written
    std::uint32_t live = 0;  // … of which are not erased
    struct {
      std::uint32_t delta;  // lsn minus the page's first lsn
      Slot slot;            // 0: erased
    } entries[kEntries];
  };

  std::size_t page_of(Lsn lsn) const;  // the last page that starts at or before lsn
  static std::uint32_t position_in(const Page& page, std::uint64_t delta);
  void tidy(std::size_t page);

  std::vector<Lsn> firsts_;  // first lsn of each page
  std::vector<std::unique_ptr<Page>> pages_;
};

}  // namespace baton::core
