#include "cli/json_object.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "wire/text.h"

namespace baton::cli {

void JsonObject::name(std::string_view text) {
  if (!members_.empty()) members_ += ',';
  wire::put_json_string(members_, text);
  members_ += ':';
}

JsonObject& JsonObject::text(std::string_view key, std::string_view value) {
  name(key);
  wire::put_json_string(members_, wire::as_utf8(value));
  return *this;
}

JsonObject& JsonObject::bytes(std::string_view key, std::string_view value) {
  if (is_utf8(value)) return text(key, value);
  name(std::string(key) + "_base64");
  members_ += '"';
  wire::put_base64(members_, value);
  members_ += '"';
  return *this;
}

JsonObject& JsonObject::number(std::string_view key, std::uint64_t value) {
  name(key);
  members_ += std::to_string(value);
  return *this;
}

JsonObject& JsonObject::decimal(std::string_view key, double value) {
  name(key);
  members_ += fmt::format("{:.3f}", value);
  return *this;
}

JsonObject& JsonObject::boolean(std::string_view key, bool value) {
  name(key);
  members_ += value ? "true" : "false";
  return *this;
}

JsonObject& JsonObject::literal(std::string_view key, std::string_view json) {
  name(key);
  members_ += json;
  return *this;
}

JsonObject& JsonObject::object(std::string_view key, const JsonObject& value) {
  name(key);
  members_ += value.whole();
  return *this;
}

}  // namespace baton::cli
