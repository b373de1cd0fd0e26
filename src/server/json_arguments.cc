#include "server/json_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include <boost/json.hpp>

#include "wire/text.h"

namespace baton::server {
namespace {

namespace json = boost::json;

constexpr std::string_view kBase64Suffix = "_base64";
constexpr std::size_t kFlat = 4;
constexpr std::size_t kDepthMax = 104;  // a message's data, in a message, in a list, in the object

std::unexpected<Error> wrong(std::string message) {
  return failure(Errc::invalid_request, std::move(message));
}

// As the word of a command would be; none if the value does not fit the kind.
std::optional<std::string> word_of(const json::value& value, Kind kind) {
  switch (kind) {
    case Kind::text:
    case Kind::bytes:
      if (value.is_string()) return std::string(value.get_string());
      return {};
    case Kind::number:
      if (value.is_int64()) return std::to_string(value.get_int64());
      if (value.is_uint64()) return std::to_string(value.get_uint64());
      return {};
    case Kind::flag:
      if (value.is_bool()) return value.get_bool() ? "true" : "false";
      return {};
    case Kind::json: return json::serialize(value);
  }
  return {};
}

std::string_view kind_name(Kind kind) {
  return kind == Kind::number ? "a whole number" : kind == Kind::flag ? "true or false" : "a string";
}

bool is_list(const Parameter& parameter) {
  return parameter.place == Place::repeated || parameter.place == Place::counted;
}

std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at] == '+' ? ' ' : text[at];
      continue;
    }
    const auto digit = [](char letter) {
      return letter >= '0' && letter <= '9'   ? letter - '0'
             : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10
             : letter >= 'A' && letter <= 'F' ? letter - 'A' + 10
                                              : -1;
    };
    if (text.size() - at < 3 || digit(text[at + 1]) < 0 || digit(text[at + 2]) < 0) return {};
    out += static_cast<char>(digit(text[at + 1]) << 4 | digit(text[at + 2]));
    at += 2;
  }
  return out;
}

}  // namespace

Status JsonArguments::add(std::span<const Parameter> parameters, std::string_view name, std::string value) {
  if (name == "namespace") {
    if (!core::is_name(value)) return wrong("namespace must be 1 to 128 graphic ASCII characters");
    ns_ = std::move(value);
    return {};
  }
  auto known = std::ranges::find(parameters, name, &Parameter::name);
  if (known == parameters.end() && name.ends_with(kBase64Suffix)) {
    known =
        std::ranges::find(parameters, name.substr(0, name.size() - kBase64Suffix.size()), &Parameter::name);
    if (known != parameters.end() && known->kind != Kind::bytes) known = parameters.end();
    auto bytes = wire::from_base64(value);
    if (!bytes) return wrong(fmt::format("{} is not base64", name));
    value = std::move(*bytes);
  }
  if (known == parameters.end()) return wrong(fmt::format("no such argument: {:.40}", name));
  if (!is_list(*known) && arguments_.has(known->name))
    return wrong(fmt::format("{} is given twice", known->name));
  arguments_.add(*known, kept_.emplace_back(std::move(value)));
  return {};
}

Status JsonArguments::read_object(std::span<const Parameter> parameters, std::string_view text) {
  arguments_.clear();
  json::error_code error;
  json::parse_options options;
  const bool nests = std::ranges::any_of(parameters, [](const Parameter& p) { return p.kind == Kind::json; });
  options.max_depth = nests ? kDepthMax : kFlat;
  const json::value parsed = json::parse(text.empty() ? "{}" : text, error, {}, options);
  if (error) return wrong("the body is not JSON: " + error.message());
  if (!parsed.is_object()) return wrong("the body has to be a JSON object");
  for (const auto& [name, value] : parsed.get_object()) {
    std::string_view plain(name);
    if (plain.ends_with(kBase64Suffix)) plain.remove_suffix(kBase64Suffix.size());
    const auto known = std::ranges::find(parameters, plain, &Parameter::name);
    if (known == parameters.end() && plain != "namespace")
      return wrong(fmt::format("no such argument: {:.40}", std::string_view(name)));
    const Kind kind = known == parameters.end() ? Kind::text : known->kind;
    const auto take = [&](const json::value& one) -> Status {
      auto word = word_of(one, kind);
      if (!word) return wrong(fmt::format("{} must be {}", std::string_view(name), kind_name(kind)));
      return add(parameters, name, std::move(*word));
    };
    if (value.is_array() && known != parameters.end() && is_list(*known)) {
      for (const json::value& one : value.get_array())
        if (auto taken = take(one); !taken) return taken;
    } else if (auto taken = take(value); !taken) {
      return taken;
    }
  }
  for (const Parameter& parameter : parameters) {
    const bool required = parameter.place == Place::position || parameter.place == Place::counted;
    if (required && !arguments_.has(parameter.name))
      return wrong(fmt::format("{} is missing", parameter.name));
  }
  return {};
}

Status JsonArguments::read_query(std::span<const Parameter> parameters, std::string_view query) {
  arguments_.clear();
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    const std::size_t equals = std::min(pair.find('='), pair.size());
    auto name = decoded(pair.substr(0, equals));
    auto value = decoded(pair.substr(std::min(equals + 1, pair.size())));
    if (!name || !value) return wrong("the query has a % that is not followed by two hexadecimal digits");
    if (auto added = add(parameters, *name, std::move(*value)); !added) return added;
  }
  for (const Parameter& parameter : parameters) {
    if (parameter.place == Place::position && !arguments_.has(parameter.name))
      return wrong(fmt::format("{} is missing", parameter.name));
  }
  return {};
}

}  // namespace baton::server
