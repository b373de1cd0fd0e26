#include "group/operation.h"

#include <fmt/format.h>

namespace baton::group {
namespace {

constexpr std::string_view kWords[] = {"barrier", "vote", "broadcast", "gather", "all_gather", "all_reduce"};

}  // namespace

std::string_view word(OperationKind kind) { return kWords[static_cast<std::size_t>(kind)]; }

std::optional<OperationKind> kind_of(std::string_view word) {
  for (std::size_t i = 0; i < std::size(kWords); ++i) {
    if (kWords[i] == word) return static_cast<OperationKind>(i);
  }
  return std::nullopt;
}

bool gathers(OperationKind kind) {
  return kind == OperationKind::gather || kind == OperationKind::all_gather ||
         kind == OperationKind::all_reduce;
}

std::string title(const Operation& operation) {
  const bool rooted = operation.kind == OperationKind::broadcast || operation.kind == OperationKind::gather;
  return fmt::format("{} \"{}\"{}", word(operation.kind), operation.name,
                     rooted ? fmt::format(" with root {}", operation.root) : "");
}

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

}  // namespace baton::group
