#include "wire/resp_value.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace baton::wire {
namespace {

using Type = RespValue::Type;

constexpr std::size_t kReservedMax = 1024;  // an announced count is believed so far

template <class T>
bool parse_number(std::string_view text, T& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  return !text.empty() && error == std::errc{} && stop == end;
}

bool parse_real(std::string_view text, double& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "inf" || text == "-inf") return value = text == "inf" ? kInfinity : -kInfinity, true;
  if (text == "nan") return value = std::numeric_limits<double>::quiet_NaN(), true;
  const bool begins_well = !text.empty() && (text[0] == '-' || text[0] == '+' || text[0] == '.' ||
                                             (text[0] >= '0' && text[0] <= '9'));
  return begins_well && parse_number(text, value);
}

bool is_big_number(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

const RespValue* RespValue::find(std::string_view name) const {
  if (type != Type::map && type != Type::array) return nullptr;
  for (std::size_t at = 0; at + 1 < items.size(); at += 2) {
    if (items[at].is_text() && items[at].text == name) return &items[at + 1];
  }
  return nullptr;
}

RespValueParser::Found RespValueParser::broken(std::string_view complaint) {
  complaint_ = complaint;
  return Found::broken;
}

bool RespValueParser::spend(std::size_t bytes) {
  if (bytes > limits_.bytes_max - bytes_) return false;
  bytes_ += bytes;
  return true;
}

RespValueParser::Found RespValueParser::parse(std::string_view& input) {
  if (!complaint_.empty()) return Found::broken;
  for (;;) {
    Found found = Found::nothing;
    if (in_body_) {
      if (input.size() < length_ + 2) return Found::nothing;
      found = parse_body(input);
    } else {
      const std::size_t end = input.find('\n', searched_);
      if (end == std::string_view::npos) {
        searched_ = input.size();
        return searched_ <= limits_.line_bytes_max ? Found::nothing : broken("a line is too long");
      }
      if (end > limits_.line_bytes_max) return broken("a line is too long");
      if (end < 2 || input[end - 1] != '\r') return broken("a line has to end with CR LF");
      if (!spend(end + 1)) return broken("the reply is too long");
      found = parse_line(input.substr(0, end - 1));
      input.remove_prefix(end + 1);
      searched_ = 0;
    }
    if (found == Found::value) bytes_ = items_ = 0;
    if (found != Found::nothing) return found;
  }
}

RespValueParser::Found RespValueParser::parse_body(std::string_view& input) {
  if (input.substr(length_, 2) != "\r\n") return broken("a bulk string has to end with CR LF");
  RespValue value{.type = body_type_};
  std::string_view text = input.substr(0, length_);
  if (body_type_ == Type::verbatim) {
    if (text.size() < 4 || text[3] != ':') return broken("a verbatim string has to begin with its format");
    text.remove_prefix(4);
  }
  value.text = text;
  input.remove_prefix(length_ + 2);
  in_body_ = false;
  return close(std::move(value));
}

RespValueParser::Found RespValueParser::parse_line(std::string_view line) {
  if (++items_ > limits_.items_max) return broken("the reply has too many values");
  const std::string_view rest = line.substr(1);
  RespValue value;
  switch (line[0]) {
    case '+': value.type = Type::simple, value.text = rest; break;
    case '-': value.type = Type::error, value.text = rest; break;
    case ':':
      value.type = Type::number;
      if (!parse_number(rest, value.number)) return broken("a number is none");
      break;
    case ',':
      value.type = Type::real;
      if (!parse_real(rest, value.real)) return broken("a double is none");
      break;
    case '#':
      value.type = Type::boolean;
      if (rest != "t" && rest != "f") return broken("a boolean is neither t nor f");
      value.truth = rest == "t";
      break;
    case '(':
      value.type = Type::big_number, value.text = rest;
      if (!is_big_number(rest)) return broken("a big number is none");
      break;
    case '_':
      if (!rest.empty()) return broken("a null has no value");
      break;
    case '$': return open_body(Type::bulk, rest);
    case '!': return open_body(Type::error, rest);
    case '=': return open_body(Type::verbatim, rest);
    case '*': return open(Type::array, rest, 1);
    case '~': return open(Type::set, rest, 1);
    case '%': return open(Type::map, rest, 2);
    case '|': return open(Type::map, rest, 2, true);
    case '>': return open_.empty() ? open(Type::push, rest, 1) : broken("a push within a value");
    default: return broken("a value of an unknown type");
  }
  return close(std::move(value));
}

RespValueParser::Found RespValueParser::open_body(Type type, std::string_view length) {
  if (length == "-1" && type == Type::bulk) return close({});  // version 2's null
  if (!parse_number(length, length_) || length.starts_with('+')) return broken("a length is not a number");
  if (length_ > limits_.bytes_max || !spend(length_ + 2)) return broken("the reply is too long");
  body_type_ = type;
  in_body_ = true;
  return Found::nothing;
}

RespValueParser::Found RespValueParser::open(Type type, std::string_view count, std::size_t each,
                                             bool is_attribute) {
  if (count == "-1" && type == Type::array) return close({});
  std::size_t items = 0;
  if (!parse_number(count, items) || count.starts_with('+')) return broken("a count is not a number");
  if (items > limits_.items_max / each || items * each > limits_.items_max - items_)
    return broken("the reply has too many values");
  if (open_.size() >= limits_.depth_max) return broken("the reply is too deep");
  RespValue value{.type = type};
  if (items == 0) return is_attribute ? Found::nothing : close(std::move(value));
  value.items.reserve(std::min(items * each, kReservedMax));
  open_.push_back({.value = std::move(value), .missing = items * each, .is_attribute = is_attribute});
  return Found::nothing;
}

// A value is whole, and with it perhaps those around it.
RespValueParser::Found RespValueParser::close(RespValue value) {
  while (!open_.empty()) {
    Open& around = open_.back();
    around.value.items.push_back(std::move(value));
    if (--around.missing > 0) return Found::nothing;
    value = std::move(around.value);
    const bool is_attribute = around.is_attribute;
    open_.pop_back();
    if (is_attribute) return Found::nothing;
  }
  value_ = std::move(value);
  return Found::value;
}

}  // namespace baton::wire
