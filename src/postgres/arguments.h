// Arguments of a statement in PostgreSQL's binary form: numbers with the most significant byte first, lists
// as one-dimensional arrays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stream/uuid.h"

namespace baton::postgres {

// PostgreSQL's numbers for the types that lists are made of.
enum class ElementType : std::uint32_t {
  boolean = 16,
  int8 = 20,
  int2 = 21,
  int4 = 23,
  text = 25,
  json = 114,
  uuid = 2950,
  jsonb = 3802
};

// A list under construction.
class List {
 public:
  List(ElementType type, std::size_t count);

  void add(const stream::Uuid& value);
  void add(std::int16_t value);
  void add(std::int32_t value);
  void add(std::int64_t value);
  void add(bool value);
  void add(std::string_view value);
  void add_json(std::string_view value);
  void add_null();

  std::string take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Arguments {
 public:
  Arguments& add(const stream::Uuid& value);
  Arguments& add(std::int16_t value);
  Arguments& add(std::int32_t value);
  Arguments& add(std::int64_t value);
  Arguments& add(bool value);
  Arguments& add(std::string_view value);
  Arguments& add_json(std::string_view value);
  Arguments& add(List&& list);
  Arguments& add_null();

  const std::vector<std::optional<std::string>>& values() const { return values_; }

 private:
  std::vector<std::optional<std::string>> values_;
};

}  // namespace baton::postgres
