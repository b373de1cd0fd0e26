// An object of JSON, written member by member: what --json prints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace baton::cli {

class JsonObject {
 public:
  JsonObject& text(std::string_view name, std::string_view value);   // broken UTF-8 is shown as U+FFFD
  JsonObject& bytes(std::string_view name, std::string_view value);  // as NAME_base64 if it is not UTF-8
  JsonObject& number(std::string_view name, std::uint64_t value);
  JsonObject& decimal(std::string_view name, double value);
  JsonObject& boolean(std::string_view name, bool value);
  JsonObject& literal(std::string_view name, std::string_view json);  // as it is
  JsonObject& object(std::string_view name, const JsonObject& value);

  std::string whole() const { return '{' + members_ + '}'; }

 private:
  void name(std::string_view text);
  std::string members_;
};

}  // namespace baton::cli
