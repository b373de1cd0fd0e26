#include "pipeline/value.h"

#include <boost/json.hpp>
#include <cmath>
#include <stdexcept>

#include "base/utf8.h"
#include "wire/text.h"

namespace baton::pipeline {
namespace {

namespace json = boost::json;

Value from(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null: return {};
    case json::kind::bool_: return {value.get_bool()};
    case json::kind::int64: return {value.get_int64()};
    case json::kind::uint64: return {value.get_uint64()};
    case json::kind::double_: return {value.get_double()};
    case json::kind::string: return {std::string(value.get_string())};
    case json::kind::array: {
      Value::List list;
      list.reserve(value.get_array().size());
      for (const json::value& item : value.get_array()) list.push_back(from(item));
      return {std::move(list)};
    }
    case json::kind::object: {
      Value::Fields fields;
      fields.reserve(value.get_object().size());
      for (const auto& [name, item] : value.get_object()) fields.emplace_back(name, from(item));
      return {std::move(fields)};
    }
  }
  return {};
}

// JSON has no word for what is no number; text says it.
json::value number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

struct Writer {
  json::value operator()(std::nullptr_t) const { return nullptr; }
  json::value operator()(bool truth) const { return truth; }
  json::value operator()(std::int64_t value) const { return value; }
  json::value operator()(std::uint64_t value) const { return value; }
  json::value operator()(double value) const { return number(value); }
  json::value operator()(const std::string& text) const {
    if (is_utf8(text)) return json::string(text);
    if (is_exact) throw std::invalid_argument("there is text in it that is not UTF-8");
    return json::string(wire::as_utf8(text));
  }
  json::value operator()(const Value::List& list) const {
    json::array array;
    array.reserve(list.size());
    for (const Value& item : list) array.push_back(std::visit(*this, item.is));
    return array;
  }
  json::value operator()(const Value::Fields& fields) const {
    json::object object;
    object.reserve(fields.size());
    for (const auto& [name, item] : fields)
      object.insert_or_assign((*this)(name).get_string(), std::visit(*this, item.is));
    return object;
  }

  bool is_exact = false;
};

}  // namespace

const Value* Value::field(std::string_view name) const {
  if (const Fields* all = fields()) {
    for (const auto& [other, value] : *all) {
      if (other == name) return &value;
    }
  }
  return nullptr;
}

Result<Value> from_json(std::string_view text) {
  if (text.size() > kValueBytesMax) {
    return failure(Errc::too_large, "a value of " + std::to_string(text.size()) + " bytes; the limit is " +
                                        std::to_string(kValueBytesMax));
  }
  json::parse_options options;
  options.max_depth = kValueDepthMax;
  json::error_code trouble;
  const json::value parsed = json::parse(json::string_view(text.data(), text.size()), trouble, {}, options);
  if (trouble) return failure(Errc::invalid_request, "not a JSON value: " + trouble.message());
  return from(parsed);
}

std::string to_json(const Value& value) { return json::serialize(std::visit(Writer{}, value.is)); }
std::string to_exact_json(const Value& value) {
  return json::serialize(std::visit(Writer{.is_exact = true}, value.is));
}

std::string_view kind_of(const Value& value) {
  static constexpr std::string_view kKinds[] = {"nothing",  "true or false", "a number", "a number",
                                                "a number", "text",          "a list",   "fields"};
  return kKinds[value.is.index()];
}

}  // namespace baton::pipeline
