#include "cli/size_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace baton::cli {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr Unit kUnits[] = {{"TiB", std::uint64_t{1} << 40},
                           {"GiB", std::uint64_t{1} << 30},
                           {"MiB", std::uint64_t{1} << 20},
                           {"KiB", std::uint64_t{1} << 10},
                           {"B", 1}};

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return {};
  const std::string_view name = text.substr(static_cast<std::size_t>(end - text.data()));
  if (name.empty()) return number;
  const auto* unit = std::ranges::find(kUnits, name, &Unit::name);
  if (unit == std::end(kUnits) || number > UINT64_MAX / unit->bytes) return {};
  return number * unit->bytes;
}

std::string size_text(std::uint64_t bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes < unit.bytes) continue;
    if (bytes % unit.bytes == 0) return fmt::format("{}{}", bytes / unit.bytes, unit.name);
    return fmt::format("{:.1f}{}", static_cast<double>(bytes) / static_cast<double>(unit.bytes), unit.name);
  }
  return "0B";
}

}  // namespace baton::cli
