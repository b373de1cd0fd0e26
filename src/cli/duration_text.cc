#include "cli/duration_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace baton::cli {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t ms;
};
constexpr Unit kUnits[] = {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};
constexpr std::int64_t kMax = days(36'500).ms;

}  // namespace

std::optional<Duration> parse_duration(std::string_view text) {
  if (text == "0") return Duration{};
  if (text.empty()) return {};
  std::int64_t total = 0;
  while (!text.empty()) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number < 0) return {};
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const std::string_view name = text.substr(0, text.find_first_of("0123456789-"));
    const auto* unit = std::ranges::find(kUnits, name, &Unit::name);
    if (unit == std::end(kUnits) || number > (kMax - total) / unit->ms) return {};
    total += number * unit->ms;
    text.remove_prefix(name.size());
  }
  return Duration{total};
}

std::string duration_text(Duration duration) {
  if (duration.ms <= 0) return "0";
  std::string text;
  std::int64_t left = duration.ms;
  for (const Unit& unit : kUnits) {
    if (left >= unit.ms) text += fmt::format("{}{}", left / unit.ms, unit.name);
    left %= unit.ms;
  }
  return text;
}

std::string rough_text(Duration duration) {
  const std::int64_t ms = std::max<std::int64_t>(duration.ms, 0);
  if (ms < 1000) return fmt::format("{}ms", ms);
  if (ms < minutes(1).ms) return fmt::format("{}s", ms / 1000);
  if (ms < hours(1).ms) return fmt::format("{}m{:02}s", ms / 60'000, ms / 1000 % 60);
  if (ms < days(1).ms) return fmt::format("{}h{:02}m", ms / 3'600'000, ms / 60'000 % 60);
  return fmt::format("{}d{:02}h", ms / 86'400'000, ms / 3'600'000 % 24);
}

}  // namespace baton::cli
