#include "cli/quantities.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <optional>
#include <span>

namespace baton::cli {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t size;  // in milliseconds, or bytes
};
constexpr Unit kTimes[] = {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};
constexpr Unit kSizes[] = {{"TiB", std::uint64_t{1} << 40},
                           {"GiB", std::uint64_t{1} << 30},
                           {"MiB", std::uint64_t{1} << 20},
                           {"KiB", std::uint64_t{1} << 10},
                           {"B", 1}};

std::unexpected<Error> wrong(std::string message) {
  return failure(Errc::invalid_request, std::move(message));
}

// Digits at the beginning of `text`, which is moved behind them.
std::optional<std::uint64_t> take_digits(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// Letters at the beginning of `text`, which is moved behind them, as the size of the unit they name.
std::optional<std::uint64_t> take_unit(std::string_view& text, std::span<const Unit> units) {
  const std::string_view name = text.substr(0, text.find_first_of("0123456789"));
  const auto unit = std::ranges::find(units, name, &Unit::name);
  if (unit == units.end()) return {};
  text.remove_prefix(name.size());
  return unit->size;
}

std::optional<Duration> parse_time(std::string_view text) {
  if (text == "0") return Duration{};
  std::uint64_t total = 0;
  do {
    const auto number = take_digits(text);
    const auto unit = number ? take_unit(text, kTimes) : std::nullopt;
    if (!unit || *number > (static_cast<std::uint64_t>(kTimeMax.ms) - total) / *unit) return {};
    total += *number * *unit;
  } while (!text.empty());
  return milliseconds(static_cast<std::int64_t>(total));
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  const auto number = take_digits(text);
  if (!number || text.empty()) return number;
  const auto unit = take_unit(text, kSizes);
  if (!unit || !text.empty() || *number > UINT64_MAX / *unit) return {};
  return *number * *unit;
}

}  // namespace

Result<std::uint64_t> read_number(std::string_view text, std::uint64_t min, std::uint64_t max) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos)
    return wrong(fmt::format("'{}' is not a number", text));
  std::string_view rest = text;
  const auto number = take_digits(rest);
  if (!number || *number < min || *number > max)
    return wrong(fmt::format("{} is not from {} to {}", text, min, max));
  return *number;
}

Result<Duration> read_time(std::string_view text, Duration min, Duration max) {
  const auto time = parse_time(text);
  if (!time) return wrong(fmt::format("'{}' is no time such as 250ms, 30s, 5m or 1h30m", text));
  if (*time < min || *time > max)
    return wrong(fmt::format("{} is not from {} to {}", text, time_text(min), time_text(max)));
  return *time;
}

Result<std::uint64_t> read_size(std::string_view text, std::uint64_t min, std::uint64_t max) {
  const auto size = parse_size(text);
  if (!size) return wrong(fmt::format("'{}' is no size such as 4096, 256KiB or 64MiB", text));
  if (*size < min || *size > max) return wrong(fmt::format("{} is not from {} to {} bytes", text, min, max));
  return *size;
}

Instant wall_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return {std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000};
}

std::string counted(std::uint64_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string time_text(Duration duration) {
  std::string text;
  auto left = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.ms, 0));
  for (const Unit& unit : kTimes) {
    if (left >= unit.size) text += fmt::format("{}{}", left / unit.size, unit.name);
    left %= unit.size;
  }
  return text.empty() ? "0" : text;
}

std::string rough_text(Duration duration) {
  const std::int64_t ms = std::max<std::int64_t>(duration.ms, 0);
  if (ms < seconds(1).ms) return fmt::format("{}ms", ms);
  if (ms < minutes(1).ms) return fmt::format("{}s", ms / 1000);
  if (ms < hours(1).ms) return fmt::format("{}m{:02}s", ms / 60'000, ms / 1000 % 60);
  if (ms < days(1).ms) return fmt::format("{}h{:02}m", ms / 3'600'000, ms / 60'000 % 60);
  return fmt::format("{}d{:02}h", ms / 86'400'000, ms / 3'600'000 % 24);
}

std::string milliseconds_text(std::uint64_t microseconds) {
  return fmt::format("{}ms", static_cast<double>(microseconds / 10) / 100);
}

std::string size_text(std::uint64_t bytes) {
  for (const Unit& unit : kSizes) {
    if (bytes < unit.size) continue;
    if (bytes % unit.size == 0) return fmt::format("{}{}", bytes / unit.size, unit.name);
    return fmt::format("{:.1f}{}", static_cast<double>(bytes) / static_cast<double>(unit.size), unit.name);
  }
  return "0B";
}

}  // namespace baton::cli
