#include "cli/settings.h"

#include <algorithm>
#include <utility>

#include "cli/quantities.h"

namespace baton::cli {
namespace {

constexpr std::size_t kNameMax = 64;  // letters that are compared; ours are shorter

// Puts what was read into `value`, or hands the complaint on.
template <class Value>
Status put(Value& value, const Result<Value>& read) {
  if (read) value = *read;
  return read ? Status() : std::unexpected(read.error());
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
  add(name, Setting::Kind::number, about, std::to_string(value)).set = [=, &value](const std::string& text) {
    return put(value, read_number(text, min, max));
  };
}

void Settings::time(std::string_view name, Duration& value, const char* about, Duration min, Duration max) {
  add(name, Setting::Kind::time, about, time_text(value)).set = [=, &value](const std::string& text) {
    return put(value, read_time(text, min, max));
  };
}

void Settings::size(std::string_view name, std::uint64_t& bytes, const char* about, std::uint64_t min,
                    std::uint64_t max) {
  add(name, Setting::Kind::size, about, size_text(bytes)).set = [=, &bytes](const std::string& text) {
    return put(bytes, read_size(text, min, max));
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
