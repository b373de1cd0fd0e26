#include "checkpoint/rank_list.h"

#include <fmt/format.h>

namespace baton::checkpoint {

std::string rank_list(const std::vector<Rank>& sorted) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < sorted.size();) {
    std::size_t last = first;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    parts.push_back(first == last ? fmt::format("{}", sorted[first])
                                  : fmt::format("{}-{}", sorted[first], sorted[last]));
    first = last + 1;
  }
  std::string text = sorted.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

}  // namespace baton::checkpoint
