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
      std::string_view line = std::string_view(value).substr(from, to - from);
      if (line.ends_with('\r')) line.remove_suffix(1);  // nor do lines that are shown end so
      if (line.size() >= kShortest) needles.push_back(line);
      from = to + 1;
    }
  }
  return needles;
}

std::size_t Secrets::longest() const {
  std::size_t longest = 0;
  for (const std::string_view needle : masked()) longest = std::max(longest, needle.size());
  return longest;
}

std::vector<std::string> Secrets::found_in(std::string_view text) const {
  std::vector<std::string> found;
  for (const std::string_view needle : masked()) {
    if (text.find(needle) != std::string_view::npos) found.emplace_back(needle);
  }
  return found;
}

std::vector<bool> Secrets::hidden(std::string_view text) const {
  std::vector<bool> hidden(text.size());
  for (const std::string_view needle : masked()) {
    std::size_t done = 0;
    for (std::size_t at = 0; (at = text.find(needle, at)) != std::string_view::npos; ++at) {
      for (std::size_t i = std::max(at, done); i < at + needle.size(); ++i) hidden[i] = true;
      done = at + needle.size();
    }
  }
  return hidden;
}

std::string shown(std::string_view text, const std::vector<bool>& hidden) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!hidden[i])
      shown += text[i];
    else if (i == 0 || !hidden[i - 1])
      shown += kMask;
  }
  return shown;
}

std::string Secrets::mask(std::string_view text) const {
  return empty() ? std::string(text) : shown(text, hidden(text));
}

}  // namespace baton::pipeline
