// What modules hand to each other between machines: text, numbers, truths, lists, and fields by name. As text
// it is JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace baton::pipeline {

inline constexpr std::size_t kValueDepthMax = 64;
inline constexpr std::size_t kValueBytesMax = std::size_t{4} << 30;

struct Value {
  using List = std::vector<Value>;
  using Fields = std::vector<std::pair<std::string, Value>>;  // in the order they were written

  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, List, Fields> is =
      nullptr;

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(is); }
  const std::string* text() const { return std::get_if<std::string>(&is); }
  const List* list() const { return std::get_if<List>(&is); }
  const Fields* fields() const { return std::get_if<Fields>(&is); }
  const Value* field(std::string_view name) const;  // null: there is none, or these are no fields
};

Result<Value> from_json(std::string_view text);
// Text that is not UTF-8, as commands may print it, is shown as U+FFFD: whoever reads it back takes nothing
// else.
std::string to_json(const Value& value);
// Throws where that would change the value.
std::string to_exact_json(const Value& value);

// "a number", "text": for complaints.
std::string_view kind_of(const Value& value);

}  // namespace baton::pipeline
