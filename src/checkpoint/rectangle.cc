#include "checkpoint/rectangle.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace baton::checkpoint {
namespace {

// How many elements further the next one along each dimension is.
Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

std::uint64_t place_in(const Rectangle& whole, const Shape& strides, const Shape& point) {
  std::uint64_t place = 0;
  for (std::size_t d = 0; d < point.size(); ++d) place += (point[d] - whole.offset[d]) * strides[d];
  return place;
}

bool overlap(const Rectangle& a, const Rectangle& b) {
  for (std::size_t d = 0; d < a.offset.size(); ++d)
    if (a.offset[d] + a.shape[d] <= b.offset[d] || b.offset[d] + b.shape[d] <= a.offset[d]) return false;
  return true;
}

// Along which they begin at the most different places, so that few of them lie side by side in it.
std::size_t most_cut(std::size_t dimensions, const std::vector<Rectangle>& slices) {
  std::size_t best = 0;
  std::size_t most = 0;
  for (std::size_t d = 0; d < dimensions; ++d) {
    std::vector<std::uint64_t> begins;
    begins.reserve(slices.size());
    for (const Rectangle& slice : slices) begins.push_back(slice.offset[d]);
    std::ranges::sort(begins);
    const std::size_t different = begins.size() - std::ranges::unique(begins).size();
    if (different <= most) continue;
    most = different;
    best = d;
  }
  return best;
}

bool is_empty(const Rectangle& rectangle) { return elements_of(rectangle.shape) == 0; }

}  // namespace

std::optional<Rectangle> intersection(const Rectangle& a, const Rectangle& b) {
  Rectangle common{a.offset, a.shape};
  for (std::size_t d = 0; d < a.offset.size(); ++d) {
    const std::uint64_t begin = std::max(a.offset[d], b.offset[d]);
    const std::uint64_t end = std::min(a.offset[d] + a.shape[d], b.offset[d] + b.shape[d]);
    if (begin >= end) return {};
    common.offset[d] = begin;
    common.shape[d] = end - begin;
  }
  return common;
}

// Along the first dimension: the rest of the first row, whole rows, the beginning of the last row.
std::vector<Rectangle> rectangles_of(const Shape& shape, std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return {};
  if (shape.empty()) return {Rectangle{}};
  const Shape rest(shape.begin() + 1, shape.end());
  const std::uint64_t row = *elements_of(rest);
  std::vector<Rectangle> all;
  const auto add_within_row = [&](std::uint64_t index, std::uint64_t from, std::uint64_t to) {
    for (Rectangle& part : rectangles_of(rest, from, to)) {
      part.offset.insert(part.offset.begin(), index);
      part.shape.insert(part.shape.begin(), 1);
      all.push_back(std::move(part));
    }
  };
  std::uint64_t first = begin / row;
  const std::uint64_t last = end / row;
  if (begin % row != 0) {
    add_within_row(first, begin % row, std::min(row, end - first * row));
    ++first;
  }
  if (first < last) {
    Rectangle rows = whole(shape);
    rows.offset[0] = first;
    rows.shape[0] = last - first;
    all.push_back(std::move(rows));
  }
  if (first <= last && end % row != 0) add_within_row(last, 0, end % row);
  return all;
}

void for_each_run(const Rectangle& part, const Rectangle& source, const Rectangle& target,
                  const std::function<void(const Run&)>& run) {
  if (is_empty(part)) return;
  const std::size_t dimensions = part.shape.size();
  const Shape source_strides = strides_of(source.shape);
  const Shape target_strides = strides_of(target.shape);

  // Trailing dimensions that are whole in both lie together; one more may be cut.
  std::size_t inner = dimensions;
  std::uint64_t together = 1;
  while (inner > 0) {
    together *= part.shape[--inner];
    const bool is_whole =
        part.shape[inner] == source.shape[inner] && part.shape[inner] == target.shape[inner];
    if (!is_whole) break;
  }

  Shape point = part.offset;
  for (;;) {
    run({place_in(source, source_strides, point), place_in(target, target_strides, point), together});
    std::size_t d = inner;
    for (; d > 0; --d) {
      if (++point[d - 1] < part.offset[d - 1] + part.shape[d - 1]) break;
      point[d - 1] = part.offset[d - 1];
    }
    if (d == 0) return;
  }
}

std::optional<std::string> what_is_wrong_with(const Shape& shape, std::vector<Rectangle> slices) {
  std::erase_if(slices, is_empty);
  std::ranges::sort(slices);
  const auto same = std::ranges::unique(slices);
  slices.erase(same.begin(), same.end());
  const std::size_t along = most_cut(shape.size(), slices);
  if (!shape.empty())
    std::ranges::stable_sort(slices, {}, [&](const Rectangle& slice) { return slice.offset[along]; });

  std::uint64_t covered = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    covered += *elements_of(slices[i].shape);
    for (std::size_t j = i + 1; j < slices.size(); ++j) {
      // In the order of where they begin along it: nothing further on can reach back.
      if (!shape.empty() && slices[j].offset[along] >= slices[i].offset[along] + slices[i].shape[along])
        break;
      if (overlap(slices[i], slices[j]))
        return fmt::format("the slices {} and {} overlap", to_text(slices[i]), to_text(slices[j]));
    }
  }
  const std::uint64_t wanted = *elements_of(shape);
  if (covered == wanted) return {};
  return fmt::format("{} of its {} elements are in no slice", wanted - covered, wanted);
}

}  // namespace baton::checkpoint
