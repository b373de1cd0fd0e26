#include "pipeline/similar.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace baton::pipeline {
namespace {

// How many letters to put in, leave out, replace or swap with their neighbour.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> best(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        best[i][j] = i + j;
        continue;
      }
      const bool same = a[i - 1] == b[j - 1];
      best[i][j] = std::min({best[i - 1][j] + 1, best[i][j - 1] + 1, best[i - 1][j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) best[i][j] = std::min(best[i][j], best[i - 2][j - 2] + 1);
    }
  }
  return best[a.size()][b.size()];
}

}  // namespace

std::string suggestion(std::string_view word, std::span<const std::string> among) {
  constexpr std::size_t kWordMax = 100;  // the time it takes grows with the square
  if (word.size() > kWordMax) return {};
  const std::string* closest = nullptr;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& other : among) {
    if (other.size() > kWordMax) continue;
    if (const std::size_t far = distance(word, other); far < least) {
      least = far;
      closest = &other;
    }
  }
  return closest ? " (did you mean '" + *closest + "'?)" : std::string();
}

}  // namespace baton::pipeline
