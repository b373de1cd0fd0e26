#include "core/names.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "core/limits.h"

namespace baton::core {

bool is_name(std::string_view text) {
  const auto graphic = [](char c) { return c > ' ' && c <= '~'; };
  return !text.empty() && text.size() <= kNameBytesMax && std::ranges::all_of(text, graphic);
}

ScopedName::ScopedName(std::string_view ns, std::string_view name) : length_(ns.size() + 1 + name.size()) {
  static_assert(sizeof text_ == 2 * kNameBytesMax + 1);
  BATON_CHECK(length_ <= sizeof text_);
  std::memcpy(text_, ns.data(), ns.size());
  text_[ns.size()] = ' ';
  std::memcpy(text_ + ns.size() + 1, name.data(), name.size());
}

Result<Capabilities> Capabilities::of(std::span<const std::string> names) {
  if (names.size() > kCapabilitiesMax)
    return failure(Errc::too_large, std::to_string(names.size()) + " capabilities; the limit is 16");
  std::vector<std::string_view> sorted(names.begin(), names.end());
  std::ranges::sort(sorted);
  sorted.erase(std::ranges::unique(sorted).begin(), sorted.end());
  Capabilities set;
  for (const std::string_view name : sorted) {
    if (!is_name(name)) {
      return failure(Errc::invalid_request, "a capability is 1 to 128 graphic ASCII characters");
    }
    if (!set.joined_.empty()) set.joined_ += ' ';
    set.joined_ += name;
  }
  return set;
}

Capabilities Capabilities::from_canonical(std::string_view text) {
  Capabilities set;
  set.joined_ = text;
  return set;
}

bool covers(std::string_view offered, std::string_view needed) {
  const auto take = [](std::string_view& list) {
    const std::string_view name = list.substr(0, list.find(' '));
    list.remove_prefix(std::min(list.size(), name.size() + 1));
    return name;
  };
  while (!needed.empty()) {
    const std::string_view wanted = take(needed);
    std::string_view next;
    do {
      if (offered.empty()) return false;
      next = take(offered);
    } while (next < wanted);
    if (next != wanted) return false;
  }
  return true;
}

}  // namespace baton::core
