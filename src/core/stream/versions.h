// Versions of events, kept as runs of those that follow each other: a perspective that waits for one event,
// and has processed all that came after it, has a single one, however many these are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace baton::core::streams {

class Versions {
 public:
  bool contains(std::uint32_t version) const;
  bool add(std::uint32_t version);         // false: it is there already
  void drop_up_to(std::uint32_t version);  // this one included
  // The last of those that follow this one without a gap; itself, if none does.
  std::uint32_t last_behind(std::uint32_t version) const;
  std::size_t runs() const { return runs_.size(); }

  template <class Visit>
  void visit(const Visit& visit_one) const {  // in order
    for (const auto& [first, last] : runs_) {
      for (std::uint32_t version = first;; ++version) {
        visit_one(version);
        if (version == last) break;
      }
    }
  }

 private:
  std::map<std::uint32_t, std::uint32_t> runs_;  // the last by the first; no two touch
};

}  // namespace baton::core::streams
