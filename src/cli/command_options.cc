// Options whose values are more than text.
#include <fmt/format.h>

#include <algorithm>

#include "cli/command_line.h"
#include "cli/quantities.h"

namespace baton::cli {
namespace {

// Puts what was read into `value`, or hands the complaint on.
template <class Value, class Read>
Status put(Value& value, const Result<Read>& read) {
  if (!read) return std::unexpected(read.error());
  value = static_cast<Value>(*read);
  return {};
}

}  // namespace

Command& Command::choice(const char* name, std::string& value, const std::vector<std::string>& among,
                         const char* description) {
  parsed(name, description, value, [=, &value](const std::string& text) -> Status {
    if (std::ranges::find(among, text) == among.end())
      return failure(Errc::invalid_request, fmt::format("'{}' is none of {}", text, fmt::join(among, ", ")));
    value = text;
    return {};
  });
  entry_->choices[entry_->last] = among;
  return *this;
}

Command& Command::number(const char* name, std::uint64_t& value, const char* description, std::uint64_t min,
                         std::uint64_t max) {
  return parsed(name, description, std::to_string(value),
                [=, &value](const std::string& text) { return put(value, read_number(text, min, max)); });
}

Command& Command::number(const char* name, std::uint32_t& value, const char* description, std::uint32_t max) {
  return parsed(name, description, std::to_string(value),
                [=, &value](const std::string& text) { return put(value, read_number(text, 0, max)); });
}

Command& Command::number(const char* name, std::optional<std::uint32_t>& value, const char* description,
                         std::uint32_t max) {
  return parsed(name, description, {},
                [=, &value](const std::string& text) { return put(value, read_number(text, 0, max)); });
}

Command& Command::duration(const char* name, Duration& value, const char* description) {
  return parsed(name, description, value.ms == 0 ? "" : time_text(value),
                [&value](const std::string& text) { return put(value, read_time(text)); });
}

Command& Command::duration(const char* name, std::optional<Duration>& value, const char* description) {
  return parsed(name, description, {},
                [&value](const std::string& text) { return put(value, read_time(text)); });
}

}  // namespace baton::cli
