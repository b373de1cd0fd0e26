#include "core/stream/versions.h"

#include <iterator>
#include <limits>

namespace baton::core::streams {
namespace {

constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();

}  // namespace

bool Versions::contains(std::uint32_t version) const {
  const auto behind = runs_.upper_bound(version);
  return behind != runs_.begin() && std::prev(behind)->second >= version;
}

bool Versions::add(std::uint32_t version) {
  const auto behind = runs_.upper_bound(version);
  const auto before = behind == runs_.begin() ? runs_.end() : std::prev(behind);
  if (before != runs_.end() && before->second >= version) return false;
  std::uint32_t last = version;
  if (behind != runs_.end() && behind->first - 1 == version) {
    last = behind->second;
    runs_.erase(behind);
  }
  if (before != runs_.end() && before->second + 1 == version)
    before->second = last;
  else
    runs_.emplace(version, last);
  return true;
}

void Versions::drop_up_to(std::uint32_t version) {
  while (!runs_.empty() && runs_.begin()->first <= version) {
    const std::uint32_t last = runs_.begin()->second;
    runs_.erase(runs_.begin());
    if (last > version) runs_.emplace(version + 1, last);
  }
}

std::uint32_t Versions::last_behind(std::uint32_t version) const {
  const auto behind = version == kLast ? runs_.end() : runs_.upper_bound(version + 1);
  if (behind == runs_.begin() || version == kLast) return version;
  const auto& [first, last] = *std::prev(behind);
  return last > version ? last : version;
}

}  // namespace baton::core::streams
