#include "pipeline/secrets.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace baton::pipeline {
namespace {

constexpr std::size_t kShortest = 4;
constexpr std::string_view kMask = "***";

}  // namespace

const std::string* Secrets::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

std::vector<std::string> Secrets::names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_) names.push_back(name);
  return names;
}

std::vector<std::string_view> Secrets::masked() const {
  std::vector<std::string_view> needles;
  for (const auto& [name, value] : values_) {
    for (std::size_t from = 0; from < value.size();) {
      const std::size_t to = std::min(value.find('\n', from), value.size());
      if (to - from >= kShortest) needles.push_back(std::string_view(value).substr(from, to - from));
      from = to + 1;
    }
  }
  std::ranges::sort(needles, [](std::string_view a, std::string_view b) { return a.size() > b.size(); });
  return needles;
}

std::size_t Secrets::longest() const {
  const auto all = masked();
  return all.empty() ? 0 : all.front().size();
}

std::string Secrets::mask(std::string_view text) const {
  std::string shown(text);
  for (const std::string_view needle : masked()) {
    for (std::size_t at = 0; (at = shown.find(needle, at)) != std::string::npos; at += kMask.size()) {
      shown.replace(at, needle.size(), kMask);
    }
  }
  return shown;
}

}  // namespace baton::pipeline
