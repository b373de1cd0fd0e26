// The file of settings, which is TOML; the library that reads it is known here alone.
#include <fmt/format.h>

#include <toml++/toml.h>

#include "cli/settings.h"
#include "cli/table.h"

namespace baton::cli {
namespace {

constexpr std::size_t kShownMax = 40;  // characters of a name that is not ours

std::string_view wanted(Setting::Kind kind) {
  switch (kind) {
    case Setting::Kind::text: return "a string";
    case Setting::Kind::number: return "a whole number";
    case Setting::Kind::time: return "a time in quotes, such as \"30s\"";
    case Setting::Kind::size: return "a number of bytes, or a size in quotes, such as \"64MiB\"";
  }
  return "something else";
}

// As it would be written on the command line; none if the type does not fit.
std::optional<std::string> text_of(const toml::node& value, Setting::Kind kind) {
  const bool may_be_number = kind == Setting::Kind::number || kind == Setting::Kind::size;
  if (value.is_integer() && may_be_number) return std::to_string(value.as_integer()->get());
  if (value.is_string() && kind != Setting::Kind::number) return value.as_string()->get();
  return {};
}

// The reader of TOML stops at the end of the line, and says what it met there.
std::string_view hint_for(std::string_view complaint) {
  const bool is_in_string = complaint.find("string: ") != complaint.npos;
  const bool is_at_an_end = complaint.find("control characters") != complaint.npos ||
                            complaint.find("end-of-file") != complaint.npos;
  return is_in_string && is_at_an_end ? "; is a quote not closed?" : "";
}

}  // namespace

Status read_settings(const Settings& settings, std::string_view text, const std::string& path) {
  const auto wrong = [&](const toml::source_region& where, const std::string& what) {
    return failure(Errc::invalid_request, fmt::format("{}:{}: {}", path, where.begin.line, what));
  };
  try {
    for (const toml::table parsed = toml::parse(text, path); const auto& [key, value] : parsed) {
      const Setting* setting = settings.find(key.str());
      if (setting == nullptr) {
        const Setting* meant = settings.nearest(key.str());
        return wrong(key.source(), fmt::format("there is no setting '{}'{}", printable(key.str(), kShownMax),
                                               meant == nullptr ? "" : "; is it " + meant->name + "?"));
      }
      const auto word = text_of(value, setting->kind);
      if (!word)
        return wrong(value.source(), fmt::format("{} has to be {}", setting->name, wanted(setting->kind)));
      if (auto set = setting->set(*word); !set)
        return wrong(value.source(), fmt::format("{}: {}", setting->name, set.error().message));
    }
  } catch (const toml::parse_error& error) {
    return wrong(error.source(),
                 fmt::format("{}{}", printable(error.description(), 200), hint_for(error.description())));
  }
  return {};
}

}  // namespace baton::cli
