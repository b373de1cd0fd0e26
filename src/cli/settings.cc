#include "cli/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "cli/duration_text.h"
#include "cli/size_text.h"

namespace baton::cli {
namespace {

constexpr std::size_t kNameMax = 64;  // letters that are compared; ours are shorter

std::unexpected<Error> wrong(std::string message) {
  return failure(Errc::invalid_request, std::move(message));
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

// How many letters have to be changed, added or taken away to make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t at = 0; at < row.size(); ++at) row[at] = at;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row.back();
}

}  // namespace

Setting& Settings::add(std::string_view name, Setting::Kind kind, const char* about, std::string otherwise) {
  const std::size_t space = std::min(name.find(' '), name.size());
  return all_.emplace_back(Setting{.name = std::string(name.substr(0, space)),
                                   .kind = kind,
                                   .value_name = std::string(name.substr(std::min(space + 1, name.size()))),
                                   .about = about,
                                   .otherwise = std::move(otherwise),
                                   .set = {}});
}

void Settings::text(std::string_view name, std::string& value, const char* about) {
  add(name, Setting::Kind::text, about, value).set = [&value](const std::string& text) -> Status {
    value = text;
    return {};
  };
}

void Settings::number(std::string_view name, std::uint64_t& value, const char* about, std::uint64_t min,
                      std::uint64_t max) {
  add(name, Setting::Kind::number, about, std::to_string(value)).set =
      [=, &value](const std::string& text) -> Status {
    const auto number = parse_number(text);
    if (!number) return wrong(fmt::format("'{}' is not a number", text));
    if (*number < min || *number > max) return wrong(fmt::format("{} is not from {} to {}", text, min, max));
    value = *number;
    return {};
  };
}

void Settings::time(std::string_view name, Duration& value, const char* about, Duration min, Duration max) {
  add(name, Setting::Kind::time, about, duration_text(value)).set =
      [=, &value](const std::string& text) -> Status {
    const auto duration = parse_duration(text);
    if (!duration) return wrong(fmt::format("'{}' is no time such as 250ms, 30s, 5m or 1h30m", text));
    if (*duration < min || *duration > max)
      return wrong(fmt::format("{} is not from {} to {}", text, duration_text(min), duration_text(max)));
    value = *duration;
    return {};
  };
}

void Settings::size(std::string_view name, std::uint64_t& bytes, const char* about, std::uint64_t min,
                    std::uint64_t max) {
  add(name, Setting::Kind::size, about, size_text(bytes)).set = [=,
                                                                 &bytes](const std::string& text) -> Status {
    const auto size = parse_size(text);
    if (!size) return wrong(fmt::format("'{}' is no size such as 4096, 256KiB or 64MiB", text));
    if (*size < min || *size > max)
      return wrong(fmt::format("{} is not from {} to {} bytes", text, min, max));
    bytes = *size;
    return {};
  };
}

const Setting* Settings::find(std::string_view name) const {
  const auto found = std::ranges::find(all_, name, &Setting::name);
  return found == all_.end() ? nullptr : &*found;
}

const Setting* Settings::nearest(std::string_view name) const {
  name = name.substr(0, kNameMax);
  const auto how_far = [&](const Setting& one) { return distance(one.name, name); };
  const auto found = std::ranges::min_element(all_, {}, how_far);
  return found == all_.end() || how_far(*found) > name.size() / 2 ? nullptr : &*found;
}

}  // namespace baton::cli
