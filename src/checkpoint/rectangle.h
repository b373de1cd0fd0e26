// What N ranks wrote and what M ranks want, as rectangles: their intersections, and where the bytes of one
// lie in the other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "checkpoint/tensor.h"

namespace baton::checkpoint {

// Nothing if they have no element in common. Both are within the same shape.
std::optional<Rectangle> intersection(const Rectangle& a, const Rectangle& b);

// Elements from `begin` to before `end` of the shape in row-major order, as at most 2d - 1 rectangles, in
// this order: laid one behind the other, their elements are those of the range. Empty for an empty range.
std::vector<Rectangle> rectangles_of(const Shape& shape, std::uint64_t begin, std::uint64_t end);

// Elements that lie together in both: `count` of them, from `from` in the one and from `to` in the other.
struct Run {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t count = 0;
  friend bool operator==(const Run&, const Run&) = default;
};
// The elements of `part`, which lies within both, from the row-major elements of `source` to those of
// `target`; with `from` growing.
void for_each_run(const Rectangle& part, const Rectangle& source, const Rectangle& target,
                  const std::function<void(const Run&)>& run);

// What of `shape` none of `slices` covers, or which two overlap without being the same; in words.
// Empty slices cover nothing and are fine.
std::optional<std::string> what_is_wrong_with(const Shape& shape, std::vector<Rectangle> slices);

}  // namespace baton::checkpoint
