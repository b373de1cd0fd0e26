#include "pipeline/problem.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace baton::pipeline {
namespace {

// Line and column.
std::pair<int, int> place_of(const Problem& problem) {
  const std::size_t column = problem.where.rfind(':');
  if (column == std::string::npos || column == 0) return {};
  const std::size_t line = problem.where.rfind(':', column - 1);
  return {std::atoi(problem.where.c_str() + line + 1), std::atoi(problem.where.c_str() + column + 1)};
}

}  // namespace

void sort_by_place(std::vector<Problem>& problems) { std::ranges::stable_sort(problems, {}, place_of); }

}  // namespace baton::pipeline
