// How results travel: as values with named fields.
//
//   struct BuildInfo {
//     std::string version;
//     std::vector<std::string> files;
//   };
//   BATON_FIELDS(BuildInfo, version, files)      // beside the type, in its namespace
//
// An enumeration is any of its numbers, unless `constexpr E baton_last(E)` beside it says which is the last.
// Numbers, text, enumerations, durations, optionals, vectors, arrays, maps by text, pairs, tuples and
// variants need no more. A field that is missing is an error unless it is optional; one that is not known is
// passed over, so that a field can be added.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "pipeline/value.h"

namespace baton::pipeline {

// A result with nothing in it.
struct None {
  friend bool operator==(const None&, const None&) = default;
};

// Codec<T> has: encode(const T&) -> Value, decode(const Value&) -> Result<T>, schema() -> std::string.
template <class T>
struct Codec;

template <class T>
concept Encodable = requires(const T& object, const Value& value) {
  { Codec<T>::encode(object) } -> std::same_as<Value>;
  { Codec<T>::decode(value) } -> std::same_as<Result<T>>;
  { Codec<T>::schema() } -> std::same_as<std::string>;
};

template <class Owner, class T>
struct Field {
  std::string_view name;
  T Owner::* member;
};
template <class Owner, class T>
Field(const char*, T Owner::*) -> Field<Owner, T>;

inline std::unexpected<Error> not_a(std::string_view wanted, const Value& value) {
  return failure(Errc::invalid_request,
                 "expected " + std::string(wanted) + ", found " + std::string(kind_of(value)));
}
// The same error, said of a part: "files: [3]: expected text, found a number".
inline std::unexpected<Error> within(std::string_view part, const Error& error) {
  return failure(error.code, std::string(part) + ": " + error.message);
}

template <>
struct Codec<None> {
  static Value encode(const None&) { return {}; }
  static Result<None> decode(const Value&) { return None{}; }
  static std::string schema() { return "none"; }
};
template <>
struct Codec<bool> {
  static Value encode(bool truth) { return {truth}; }
  static Result<bool> decode(const Value& value) {
    if (const bool* truth = std::get_if<bool>(&value.is)) return *truth;
    return not_a("true or false", value);
  }
  static std::string schema() { return "bool"; }
};
template <std::integral T>
  requires(!std::same_as<T, bool>)
struct Codec<T> {
  static Value encode(T number) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == 8) {
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return {static_cast<std::uint64_t>(number)};
      }
    }
    return {static_cast<std::int64_t>(number)};
  }
  static Result<T> decode(const Value& value) {
    if (const std::int64_t* number = std::get_if<std::int64_t>(&value.is)) {
      if (std::in_range<T>(*number)) return static_cast<T>(*number);
      return failure(Errc::invalid_request, std::to_string(*number) + " is out of range");
    }
    if (const std::uint64_t* number = std::get_if<std::uint64_t>(&value.is)) {
      if (std::in_range<T>(*number)) return static_cast<T>(*number);
      return failure(Errc::invalid_request, std::to_string(*number) + " is out of range");
    }
    return not_a("a whole number", value);
  }
  static std::string schema() {
    return std::string(std::signed_integral<T> ? "i" : "u") + std::to_string(sizeof(T) * 8);
  }
};
template <std::floating_point T>
struct Codec<T> {
  static Value encode(T number) { return {static_cast<double>(number)}; }
  static Result<T> decode(const Value& value) {
    if (const double* number = std::get_if<double>(&value.is)) return static_cast<T>(*number);
    if (const std::int64_t* number = std::get_if<std::int64_t>(&value.is)) return static_cast<T>(*number);
    if (const std::uint64_t* number = std::get_if<std::uint64_t>(&value.is)) return static_cast<T>(*number);
    if (const std::string* text = value.text()) {
      if (*text == "nan") return std::numeric_limits<T>::quiet_NaN();
      if (*text == "inf") return std::numeric_limits<T>::infinity();
      if (*text == "-inf") return -std::numeric_limits<T>::infinity();
    }
    return not_a("a number", value);
  }
  static std::string schema() { return "f" + std::to_string(sizeof(T) * 8); }
};
template <class T>
  requires std::is_enum_v<T>
struct Codec<T> {
  using Number = std::underlying_type_t<T>;
  static Value encode(T value) { return Codec<Number>::encode(static_cast<Number>(value)); }
  static Result<T> decode(const Value& value) {
    auto number = Codec<Number>::decode(value);
    if (!number) return std::unexpected(number.error());
    const T read = static_cast<T>(*number);
    if constexpr (requires { baton_last(read); }) {
      if (read > baton_last(read))
        return failure(Errc::invalid_request, std::to_string(*number) + " is out of range");
    }
    return read;
  }
  static std::string schema() { return "enum " + Codec<Number>::schema(); }
};
template <>
struct Codec<std::string> {
  static Value encode(const std::string& text) { return {text}; }
  static Result<std::string> decode(const Value& value) {
    if (const std::string* text = value.text()) return *text;
    return not_a("text", value);
  }
  static std::string schema() { return "text"; }
};
template <>
struct Codec<Duration> {
  static Value encode(Duration duration) { return {duration.ms}; }
  static Result<Duration> decode(const Value& value) {
    auto ms = Codec<std::int64_t>::decode(value);
    if (!ms) return std::unexpected(ms.error());
    return Duration{*ms};
  }
  static std::string schema() { return "ms"; }
};
template <>
struct Codec<Value> {
  static Value encode(const Value& value) { return value; }
  static Result<Value> decode(const Value& value) { return value; }
  static std::string schema() { return "any"; }
};

template <Encodable T>
struct Codec<std::optional<T>> {
  static Value encode(const std::optional<T>& value) { return value ? Codec<T>::encode(*value) : Value{}; }
  static Result<std::optional<T>> decode(const Value& value) {
    if (value.is_null()) return std::optional<T>();
    auto inner = Codec<T>::decode(value);
    if (!inner) return std::unexpected(inner.error());
    return std::optional<T>(std::move(*inner));
  }
  static std::string schema() { return Codec<T>::schema() + "?"; }
};

template <class Items>
Value encode_items(const Items& items) {
  using T = typename Items::value_type;
  Value::List list;
  list.reserve(items.size());
  for (const auto& item : items) list.push_back(Codec<T>::encode(item));
  return {std::move(list)};
}
template <class T>
Result<T> decode_item(const Value::List& list, std::size_t index) {
  auto item = Codec<T>::decode(list[index]);
  if (!item) return within("[" + std::to_string(index) + "]", item.error());
  return std::move(*item);
}

template <Encodable T>
struct Codec<std::vector<T>> {
  static Value encode(const std::vector<T>& items) { return encode_items(items); }
  static Result<std::vector<T>> decode(const Value& value) {
    const Value::List* list = value.list();
    if (!list) return not_a("a list", value);
    std::vector<T> items;
    items.reserve(list->size());
    for (std::size_t i = 0; i < list->size(); ++i) {
      auto item = decode_item<T>(*list, i);
      if (!item) return std::unexpected(item.error());
      items.push_back(std::move(*item));
    }
    return items;
  }
  static std::string schema() { return "[" + Codec<T>::schema() + "]"; }
};
template <Encodable T, std::size_t N>
struct Codec<std::array<T, N>> {
  static Value encode(const std::array<T, N>& items) { return encode_items(items); }
  static Result<std::array<T, N>> decode(const Value& value) {
    const Value::List* list = value.list();
    if (!list || list->size() != N) return not_a("a list of " + std::to_string(N), value);
    std::array<T, N> items;
    for (std::size_t i = 0; i < N; ++i) {
      auto item = decode_item<T>(*list, i);
      if (!item) return std::unexpected(item.error());
      items[i] = std::move(*item);
    }
    return items;
  }
  static std::string schema() { return "[" + Codec<T>::schema() + ";" + std::to_string(N) + "]"; }
};
template <Encodable T>
struct Codec<std::map<std::string, T>> {
  static Value encode(const std::map<std::string, T>& items) {
    Value::Fields fields;
    fields.reserve(items.size());
    for (const auto& [name, item] : items) fields.emplace_back(name, Codec<T>::encode(item));
    return {std::move(fields)};
  }
  static Result<std::map<std::string, T>> decode(const Value& value) {
    const Value::Fields* fields = value.fields();
    if (!fields) return not_a("fields", value);
    std::map<std::string, T> items;
    for (const auto& [name, field] : *fields) {
      auto item = Codec<T>::decode(field);
      if (!item) return within(name, item.error());
      items.insert_or_assign(name, std::move(*item));
    }
    return items;
  }
  static std::string schema() { return "{" + Codec<T>::schema() + "}"; }
};

// Pairs and tuples, as lists of so many.
template <class Tuple, class Indices = std::make_index_sequence<std::tuple_size_v<Tuple>>>
struct TupleCodec;
template <class Tuple, std::size_t... I>
struct TupleCodec<Tuple, std::index_sequence<I...>> {
  static Value encode(const Tuple& tuple) {
    return {Value::List{Codec<std::tuple_element_t<I, Tuple>>::encode(std::get<I>(tuple))...}};
  }
  static Result<Tuple> decode(const Value& value) {
    const Value::List* list = value.list();
    if (!list || list->size() != sizeof...(I))
      return not_a("a list of " + std::to_string(sizeof...(I)), value);
    Tuple tuple;
    std::optional<Error> trouble;
    const auto read = [&]<std::size_t K>(std::integral_constant<std::size_t, K>) {
      auto item = decode_item<std::tuple_element_t<K, Tuple>>(*list, K);
      if (item)
        std::get<K>(tuple) = std::move(*item);
      else
        trouble = item.error();
      return item.has_value();
    };
    (read(std::integral_constant<std::size_t, I>{}) && ...);
    if (trouble) return std::unexpected(*trouble);
    return tuple;
  }
  static std::string schema() {
    std::string text = "(";
    ((text += Codec<std::tuple_element_t<I, Tuple>>::schema() + ","), ...);
    return text + ")";
  }
};
template <Encodable A, Encodable B>
struct Codec<std::pair<A, B>> : TupleCodec<std::pair<A, B>> {};
template <Encodable... T>
struct Codec<std::tuple<T...>> : TupleCodec<std::tuple<T...>> {};

// A variant is a list of two: which alternative, and its value.
template <Encodable... T>
struct Codec<std::variant<T...>> {
  static Value encode(const std::variant<T...>& value) {
    return {Value::List{Value{static_cast<std::int64_t>(value.index())},
                        std::visit([]<class A>(const A& one) { return Codec<A>::encode(one); }, value)}};
  }
  static Result<std::variant<T...>> decode(const Value& value) {
    const Value::List* list = value.list();
    if (!list || list->size() != 2) return not_a("a list of 2", value);
    auto index = decode_item<std::size_t>(*list, 0);
    if (!index) return std::unexpected(index.error());
    return decode_alternative<0>(*index, (*list)[1]);
  }
  static std::string schema() {
    std::string text = "<";
    ((text += Codec<T>::schema() + "|"), ...);
    return text + ">";
  }

 private:
  template <std::size_t I>
  static Result<std::variant<T...>> decode_alternative(std::size_t index, const Value& value) {
    if constexpr (I == sizeof...(T)) {
      return failure(Errc::invalid_request, "there is no alternative " + std::to_string(index));
    } else {
      if (index != I) return decode_alternative<I + 1>(index, value);
      auto inner = Codec<std::variant_alternative_t<I, std::variant<T...>>>::decode(value);
      if (!inner) return std::unexpected(inner.error());
      return std::variant<T...>(std::in_place_index<I>, std::move(*inner));
    }
  }
};

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

// Types with BATON_FIELDS.
template <class T>
concept HasFields = requires { baton_fields(static_cast<const T*>(nullptr)); };
template <HasFields T>
struct Codec<T> {
  static Value encode(const T& object) {
    Value::Fields fields;
    std::apply(
        [&](const auto&... field) {
          (fields.emplace_back(field.name, encode_field(object.*field.member)), ...);
        },
        baton_fields(static_cast<const T*>(nullptr)));
    return {std::move(fields)};
  }
  static Result<T> decode(const Value& value) {
    if (!value.fields()) return not_a("fields", value);
    T object{};
    std::optional<Error> trouble;
    const auto read = [&]<class M>(const Field<T, M>& field) {
      const Value* found = value.field(field.name);
      static const Value kAbsent;
      if (!found && !kIsOptional<M>) {
        trouble = Error{Errc::invalid_request, "field '" + std::string(field.name) + "' is missing"};
        return false;
      }
      auto member = Codec<M>::decode(found ? *found : kAbsent);
      if (member)
        object.*field.member = std::move(*member);
      else
        trouble = within(field.name, member.error()).error();
      return member.has_value();
    };
    std::apply([&](const auto&... field) { (read(field) && ...); },
               baton_fields(static_cast<const T*>(nullptr)));
    if (trouble) return std::unexpected(*trouble);
    return object;
  }
  static std::string schema() {
    std::string text = "{";
    std::apply(
        [&](const auto&... field) {
          ((text += std::string(field.name) + ":" + schema_of(field) + ","), ...);
        },
        baton_fields(static_cast<const T*>(nullptr)));
    return text + "}";
  }

 private:
  template <class M>
  static Value encode_field(const M& member) {
    return Codec<M>::encode(member);
  }
  template <class M>
  static std::string schema_of(const Field<T, M>&) {
    return Codec<M>::schema();
  }
};

}  // namespace baton::pipeline

// One field after the other, as far as there are any.
#define BATON_FIELDS_PARENS ()
#define BATON_FIELDS_EXPAND(...) BATON_FIELDS_EXPAND3(BATON_FIELDS_EXPAND3(BATON_FIELDS_EXPAND3(__VA_ARGS__)))
#define BATON_FIELDS_EXPAND3(...) \
  BATON_FIELDS_EXPAND2(BATON_FIELDS_EXPAND2(BATON_FIELDS_EXPAND2(__VA_ARGS__)))
#define BATON_FIELDS_EXPAND2(...) \
  BATON_FIELDS_EXPAND1(BATON_FIELDS_EXPAND1(BATON_FIELDS_EXPAND1(__VA_ARGS__)))
#define BATON_FIELDS_EXPAND1(...) __VA_ARGS__
#define BATON_FIELDS_EACH(Type, name, ...) \
  ::baton::pipeline::Field{                \
      #name, &Type::name} __VA_OPT__(, BATON_FIELDS_AGAIN BATON_FIELDS_PARENS(Type, __VA_ARGS__))
#define BATON_FIELDS_AGAIN() BATON_FIELDS_EACH
#define BATON_FIELDS(Type, ...)                                                   \
  [[maybe_unused]] constexpr auto baton_fields(const Type*) {                     \
    return std::tuple{BATON_FIELDS_EXPAND(BATON_FIELDS_EACH(Type, __VA_ARGS__))}; \
  }
