#include "postgres/arguments.h"

#include <bit>
#include <concepts>
#include <type_traits>

namespace baton::postgres {
namespace {

template <std::integral T>
void put(std::string& out, T value) {
  for (int shift = int{sizeof(T)} * 8 - 8; shift >= 0; shift -= 8) {
    out += static_cast<char>(static_cast<std::make_unsigned_t<T>>(value) >> shift);
  }
}
void put(std::string& out, bool value) { out += static_cast<char>(value); }
void put(std::string& out, std::string_view value) { out += value; }
void put(std::string& out, const stream::Uuid& value) {
  out.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
}

constexpr char kJsonVersion = 1;  // what the binary form of jsonb begins with, before the text

std::int32_t length(std::size_t bytes) { return static_cast<std::int32_t>(bytes); }

}  // namespace

List::List(ElementType type, std::size_t count) {
  put(bytes_, std::int32_t{count > 0});  // dimensions
  put(bytes_, std::int32_t{1});          // there may be nulls
  put(bytes_, static_cast<std::uint32_t>(type));
  if (count == 0) return;
  put(bytes_, length(count));
  put(bytes_, std::int32_t{1});  // the first index
}

void List::add(const stream::Uuid& value) { put(bytes_, length(16)), put(bytes_, value); }
void List::add(std::int16_t value) { put(bytes_, length(2)), put(bytes_, value); }
void List::add(std::int32_t value) { put(bytes_, length(4)), put(bytes_, value); }
void List::add(std::int64_t value) { put(bytes_, length(8)), put(bytes_, value); }
void List::add(bool value) { put(bytes_, length(1)), put(bytes_, value); }
void List::add(std::string_view value) { put(bytes_, length(value.size())), put(bytes_, value); }
void List::add_json(std::string_view value) {
  put(bytes_, length(value.size() + 1));
  bytes_ += kJsonVersion;
  put(bytes_, value);
}
void List::add_null() { put(bytes_, std::int32_t{-1}); }

Arguments& Arguments::add(const stream::Uuid& value) {
  put(*values_.emplace_back(std::string()), value);
  return *this;
}
Arguments& Arguments::add(std::int16_t value) {
  put(*values_.emplace_back(std::string()), value);
  return *this;
}
Arguments& Arguments::add(std::int32_t value) {
  put(*values_.emplace_back(std::string()), value);
  return *this;
}
Arguments& Arguments::add(std::int64_t value) {
  put(*values_.emplace_back(std::string()), value);
  return *this;
}
Arguments& Arguments::add(bool value) {
  put(*values_.emplace_back(std::string()), value);
  return *this;
}
Arguments& Arguments::add(std::string_view value) {
  values_.emplace_back(value);
  return *this;
}
Arguments& Arguments::add_json(std::string_view value) {
  values_.emplace_back(std::string(1, kJsonVersion).append(value));
  return *this;
}
Arguments& Arguments::add(List&& list) {
  values_.emplace_back(std::move(list).take());
  return *this;
}
Arguments& Arguments::add_null() {
  values_.emplace_back();
  return *this;
}

}  // namespace baton::postgres
