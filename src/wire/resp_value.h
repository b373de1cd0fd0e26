// Replies of the Redis protocol, versions 2 and 3, as a tree of values.
//
//   :7\r\n                          a number
//   %1\r\n$4\r\ntask\r\n+a-1\r\n    a map with one member
//   >2\r\n+lost\r\n+a-1\r\n         a push: comes between replies and answers nothing
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::wire {

struct RespValue {
  enum class Type : std::uint8_t {
    null,
    boolean,
    number,
    real,
    simple,
    bulk,
    verbatim,    // text without its three letters of format
    big_number,  // text
    error,       // text: the word, a space, the message
    array,
    set,
    map,  // items: name, value, name, value …
    push,
  };

  Type type = Type::null;
  bool truth = false;
  std::int64_t number = 0;
  double real = 0;
  std::string text;
  std::vector<RespValue> items;

  bool is_text() const { return type == Type::simple || type == Type::bulk || type == Type::verbatim; }
  // The member of a map, or of the array that version 2 sends in its place; null if it is not there.
  const RespValue* find(std::string_view name) const;

  friend bool operator==(const RespValue&, const RespValue&) = default;
};

struct RespValueLimits {
  std::size_t depth_max = 16;
  std::size_t items_max = std::size_t{1} << 20;    // values in one reply, those within others included
  std::size_t bytes_max = std::size_t{256} << 20;  // of one reply
  std::size_t line_bytes_max = std::size_t{64} << 10;
};

// Finds replies in a stream. What was understood is taken and not looked at again, so that a reply which
// comes byte by byte costs no more than one that comes at once.
class RespValueParser {
 public:
  enum class Found : std::uint8_t {
    value,    // take() has it
    nothing,  // more bytes are needed
    broken,   // the stream is out of step, complaint() says why; nothing can follow
  };

  explicit RespValueParser(const RespValueLimits& limits = {}) : limits_(limits) {}

  // Takes what it understands off the front of `input`. The next call begins with what is left, which may
  // have grown meanwhile.
  Found parse(std::string_view& input);

  RespValue take() { return std::move(value_); }
  std::string_view complaint() const { return complaint_; }

 private:
  // A value whose items are not all there.
  struct Open {
    RespValue value;
    std::size_t missing = 0;
    bool is_attribute = false;  // stands before a value and is no part of it
  };

  Found parse_body(std::string_view& input);
  Found parse_line(std::string_view line);
  Found open(RespValue::Type type, std::string_view count, std::size_t each, bool is_attribute = false);
  Found open_body(RespValue::Type type, std::string_view length);
  Found close(RespValue value);
  Found broken(std::string_view complaint);
  bool spend(std::size_t bytes);

  const RespValueLimits limits_;
  std::vector<Open> open_;
  RespValue value_;
  std::size_t searched_ = 0;  // so much of the line that has no end yet
  std::size_t bytes_ = 0;     // of this reply
  std::size_t items_ = 0;
  bool in_body_ = false;  // a length was read, the bytes follow
  RespValue::Type body_type_ = RespValue::Type::bulk;
  std::size_t length_ = 0;
  std::string_view complaint_;
};

}  // namespace baton::wire
