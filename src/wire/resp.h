// The Redis protocol, versions 2 and 3: commands come in, replies go out. Bytes only; what a command means is
// not known here.
//
//   *2\r\n$4\r\nPING\r\n$5\r\nhello\r\n     a command: an array of byte strings
//   PING "hello"\r\n                        the same, typed by a person
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace baton::wire {

struct RespLimits {
  std::size_t arguments_max = 4096;
  std::size_t command_bytes_max = std::size_t{4} << 20;  // with all its arguments
  std::size_t line_bytes_max = 4096;                     // of a command typed as a line
};

// Finds commands in a stream. Goes on where it stopped, so that a command which comes byte by byte costs no
// more than one that comes at once.
class RespParser {
 public:
  enum class Found : std::uint8_t {
    command,  // arguments() has it
    nothing,  // more bytes are needed
    broken,   // the stream is out of step, complaint() says why; nothing can follow
  };

  explicit RespParser(const RespLimits& limits) : limits_(limits) {}
  void set_limits(const RespLimits& limits) { limits_ = limits; }

  // `input` starts where the last command ended, and may have grown since the last call.
  Found parse(std::string_view input);

  const std::vector<std::string_view>& arguments() const { return arguments_; }  // valid until the next call
  // Bytes that are done with; behind Found::nothing, empty lines.
  std::size_t consumed() const { return ended_ ? position_ : 0; }
  std::string_view complaint() const { return complaint_; }
  // All but so much, of what a long command needed; its arguments() are no longer wanted.
  void give_back_room(std::size_t kept_bytes);
  // How many bytes the command has to have at least, as far as is known.
  std::size_t needed() const { return needed_; }

 private:
  bool take_whole(std::string_view input);
  Found parse_array(std::string_view input);
  Found parse_line(std::string_view input);
  Found finish(std::string_view text);
  Found broken(std::string complaint);
  Found over(std::string_view what, std::size_t value, std::size_t limit);
  // A line with a number behind `type`. Found::command if it is whole.
  Found number(std::string_view input, char type, std::size_t max, std::string_view what, std::size_t& value);

  RespLimits limits_;
  std::size_t position_ = 0;  // up to here it is understood
  bool begun_ = false;        // the number of arguments is known
  bool ended_ = true;         // the next call starts a new command
  std::size_t expected_ = 0;
  std::size_t needed_ = 0;
  bool in_argument_ = false;
  std::size_t length_ = 0;  // of the argument being read
  std::string typed_;       // the words of a line, without what quoted them
  std::vector<std::pair<std::size_t, std::size_t>> places_;
  std::vector<std::string_view> arguments_;
  std::string complaint_;
};

// Appends replies to a buffer, in the version that the other side speaks.
class RespWriter {
 public:
  explicit RespWriter(std::string& out, int version = 2) : out_(out), version_(version) {}

  void simple(std::string_view text);
  void error(std::string_view word, std::string_view message);  // line breaks become spaces
  void number(std::int64_t value);
  void bulk(std::string_view bytes);
  void bulk(ByteView bytes) { bulk(text_of(bytes)); }
  void boolean(bool value);  // version 2: 1 or 0
  void null();
  void array(std::size_t items);
  void map(std::size_t pairs);   // version 2: an array twice as long
  void push(std::size_t items);  // version 3 only

  int version() const { return version_; }

 private:
  template <class Put>
  void extend(std::size_t most, Put put);
  void header(char type, std::int64_t value);

  std::string& out_;
  const int version_;
};

}  // namespace baton::wire
