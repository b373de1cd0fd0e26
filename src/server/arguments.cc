#include "server/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/room.h"

namespace baton::server {
namespace {

constexpr char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
}

bool parse_number(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string upper(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

}  // namespace

bool same_word(std::string_view a, std::string_view b) { return std::ranges::equal(a, b, {}, lower, lower); }

void Arguments::clear() {
  given_.clear();
  complaint_.reset();
}

void Arguments::give_back_room(std::size_t kept_bytes) {
  clear();
  baton::give_back_room(given_, kept_bytes);
}

Status Arguments::read(std::span<const Parameter> parameters, std::span<const std::string_view> words) {
  clear();
  std::size_t at = 0;
  for (const Parameter& parameter : parameters) {
    if (parameter.place == Place::position) {
      if (at == words.size())
        return failure(Errc::invalid_request, fmt::format("{} is missing", parameter.name));
      add(parameter, words[at++]);
    } else if (parameter.place == Place::counted) {
      std::uint64_t count = 0;
      if (at == words.size() || !parse_number(words[at], count))
        return failure(Errc::invalid_request, fmt::format("the number of {} is missing", parameter.name));
      if (count > words.size() - ++at)
        return failure(Errc::invalid_request, fmt::format("fewer {} than announced", parameter.name));
      for (; count > 0; --count) add(parameter, words[at++]);
    }
  }
  while (at < words.size()) {
    const std::string_view word = words[at++];
    const auto known = std::ranges::find_if(parameters, [&](const Parameter& parameter) {
      return parameter.place >= Place::option && same_word(parameter.name, word);
    });
    if (known == parameters.end())
      return failure(Errc::invalid_request, fmt::format("no such option: {:.40}", word));
    if (known->place == Place::option && has(known->name))
      return failure(Errc::invalid_request, fmt::format("{} is given twice", upper(known->name)));
    if (known->kind == Kind::flag) {
      add(*known, "true");
    } else {
      if (at == words.size())
        return failure(Errc::invalid_request, fmt::format("{} needs a value", upper(known->name)));
      add(*known, words[at++]);
    }
  }
  return {};
}

void Arguments::replace(std::span<const Parameter> parameters, std::string_view name,
                        std::string_view value) {
  std::erase_if(given_, [&](const Given& given) { return given.parameter->name == name; });
  const auto known = std::ranges::find(parameters, name, &Parameter::name);
  if (known != parameters.end()) add(*known, value);
}

const Arguments::Given* Arguments::find(std::string_view name) const {
  for (const Given& given : given_) {
    if (given.parameter->name == name) return &given;
  }
  return nullptr;
}

void Arguments::complain(Errc code, std::string message) {
  if (!complaint_) complaint_ = Error{code, std::move(message)};
}

std::string_view Arguments::text(std::string_view name) const {
  const Given* given = find(name);
  return given != nullptr ? given->value : std::string_view{};
}

// The core checks names as well; here the complaint can say which one it was.
std::string Arguments::name(std::string_view name, std::string_view otherwise) {
  const Given* given = find(name);
  const std::string_view value = given != nullptr ? given->value : otherwise;
  if (given != nullptr && !core::is_name(value))
    complain(Errc::invalid_request, fmt::format("{} must be 1 to 128 graphic ASCII characters", name));
  return std::string(value);
}

core::Blob Arguments::blob(std::string_view name) const { return core::Blob(text(name)); }

std::uint64_t Arguments::number(std::string_view name, std::uint64_t otherwise, std::uint64_t max) {
  const Given* given = find(name);
  if (given == nullptr) return otherwise;
  std::uint64_t value = 0;
  if (parse_number(given->value, value) && value <= max) return value;
  complain(Errc::invalid_request, fmt::format("{} must be a number from 0 to {}", name, max));
  return otherwise;
}

Duration Arguments::duration(std::string_view name, Duration otherwise) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
  return {static_cast<std::int64_t>(number(name, static_cast<std::uint64_t>(otherwise.ms), kMax))};
}

core::TaskRef Arguments::task(std::string_view name) {
  auto task = parse_task_ref(text(name));
  if (task) return std::move(*task);
  complain(task.error().code, std::move(task.error().message));
  return {};
}

core::LeaseId Arguments::lease(std::string_view name) {
  auto lease = core::parse_lease_id(text(name));
  if (lease) return *lease;
  complain(lease.error().code, std::move(lease.error().message));
  return {};
}

core::Capabilities Arguments::capabilities(std::string_view name) {
  if (!has(name)) return {};
  std::vector<std::string> names;
  for (const std::string_view one : all(name)) names.emplace_back(one);
  auto capabilities = core::Capabilities::of(names);
  if (capabilities) return std::move(*capabilities);
  complain(capabilities.error().code, std::move(capabilities.error().message));
  return {};
}

std::vector<std::string_view> Arguments::all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Given& given : given_) {
    if (given.parameter->name == name) values.push_back(given.value);
  }
  return values;
}

std::vector<std::pair<std::string, std::string>> Arguments::listed() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Given& given : given_) all.emplace_back(given.parameter->name, given.value);
  return all;
}

Result<core::TaskRef> parse_task_ref(std::string_view text) {
  constexpr std::string_view kPrefix = "key:";
  if (text.starts_with(kPrefix) && text.size() > kPrefix.size())
    return core::TaskRef::by_key(std::string(text.substr(kPrefix.size())));
  auto id = core::parse_task_id(text);
  if (!id)
    return failure(Errc::invalid_request, "a task is named by its id, such as 6743b0aa-1f, or as key:KEY");
  return core::TaskRef(*id);
}

}  // namespace baton::server
