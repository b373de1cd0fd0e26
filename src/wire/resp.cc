#include "wire/resp.h"

#include <algorithm>
#include <charconv>

#include "base/room.h"
#include "wire/words.h"

namespace baton::wire {
namespace {

// A length of few digits, with what stands before and behind it: `$12\r\n`.
bool take_length(const char*& at, const char* end, char type, std::size_t& value) {
  constexpr std::ptrdiff_t kDigitsMax = 7;
  if (at == end || *at != type) return false;
  const char* const first = at + 1;
  const char* const last = first + std::min(kDigitsMax, end - first);
  const char* digit = first;
  value = 0;
  for (; digit != last && *digit >= '0' && *digit <= '9'; ++digit)
    value = value * 10 + static_cast<std::size_t>(*digit - '0');
  if (digit == first || end - digit < 2 || digit[0] != '\r' || digit[1] != '\n') return false;
  at = digit + 2;
  return true;
}

bool is_argument(const char* at, const char* end, std::size_t length) {
  return static_cast<std::size_t>(end - at) >= length + 2 && at[length] == '\r' && at[length + 1] == '\n';
}

constexpr std::size_t kHeaderMax = 1 + 20 + 2;
char* put_header(char* to, char type, std::int64_t value) {
  *to++ = type;
  if (value >= 0 && value < 10) {
    *to++ = static_cast<char>('0' + value);
  } else {
    to = std::to_chars(to, to + 20, value).ptr;
  }
  *to++ = '\r';
  *to++ = '\n';
  return to;
}

}  // namespace

RespParser::Found RespParser::parse(std::string_view input) {
  if (ended_) {
    position_ = needed_ = 0;
    begun_ = in_argument_ = ended_ = false;
    places_.clear();
    arguments_.clear();
  }
  while (!begun_ && position_ < input.size() && (input[position_] == '\r' || input[position_] == '\n')) {
    ++position_;  // an empty line between commands
  }
  if (position_ >= input.size()) {
    ended_ = !begun_;
    return Found::nothing;
  }
  if (!begun_ && take_whole(input)) return Found::command;
  return begun_ || input[position_] == '*' ? parse_array(input) : parse_line(input);
}

void RespParser::give_back_room(std::size_t kept_bytes) {
  if (ended_) places_.clear();
  arguments_.clear();
  baton::give_back_room(places_, kept_bytes);
  baton::give_back_room(arguments_, kept_bytes);
}

RespParser::Found RespParser::broken(std::string complaint) {
  complaint_ = std::move(complaint);
  return Found::broken;
}

RespParser::Found RespParser::over(std::string_view what, std::size_t value, std::size_t limit) {
  return broken(std::string(what) + ": " + std::to_string(value) + ", and the limit is " +
                std::to_string(limit));
}

// Nearly every command is all there, and the lengths in it have few digits. If this one is not so, nothing is
// changed, and it is read piece by piece.
bool RespParser::take_whole(std::string_view input) {
  const char* at = input.data() + position_;
  const char* const end = input.data() + input.size();
  std::size_t count = 0;
  if (!take_length(at, end, '*', count) || count > limits_.arguments_max) return false;
  for (std::size_t length = 0; count > 0; --count, at += length + 2) {
    if (!take_length(at, end, '$', length) || !is_argument(at, end, length)) {
      arguments_.clear();
      return false;
    }
    arguments_.emplace_back(at, length);
  }
  const auto size = static_cast<std::size_t>(at - input.data());
  if (size > limits_.command_bytes_max) {
    arguments_.clear();
    return false;
  }
  position_ = size;
  ended_ = true;
  return true;
}

RespParser::Found RespParser::number(std::string_view input, char type, std::size_t max,
                                     std::string_view what, std::size_t& value) {
  constexpr std::size_t kDigitsMax = 20;
  if (position_ >= input.size()) return Found::nothing;
  if (input[position_] != type) return broken("expected an array of bulk strings");
  const std::string_view rest = input.substr(position_ + 1, kDigitsMax + 2);
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos)
    return rest.size() < kDigitsMax + 2 ? Found::nothing : broken("a length has no end");
  if (end == 0 || rest[end - 1] != '\r') return broken("a length has to end with CR LF");
  const char* last = rest.data() + end - 1;
  const auto [stop, error] = std::from_chars(rest.data(), last, value);
  if (error != std::errc{} || stop != last) return broken("a length is not a number");
  if (value > max) return over(what, value, max);
  position_ += 1 + end + 1;
  return Found::command;
}

RespParser::Found RespParser::parse_array(std::string_view input) {
  if (!begun_) {
    if (auto found = number(input, '*', limits_.arguments_max, "too many arguments", expected_);
        found != Found::command)
      return found;
    begun_ = true;
  }
  while (places_.size() < expected_) {
    if (!in_argument_) {
      if (auto found =
              number(input, '$', limits_.command_bytes_max, "an argument has too many bytes", length_);
          found != Found::command)
        return found;
      in_argument_ = true;
      needed_ = position_ + length_ + 2;
      if (needed_ > limits_.command_bytes_max)
        return over("the command has too many bytes", needed_, limits_.command_bytes_max);
    }
    if (input.size() < needed_) return Found::nothing;
    if (input.substr(position_ + length_, 2) != "\r\n") return broken("an argument has to end with CR LF");
    places_.emplace_back(position_, length_);
    position_ = needed_;
    in_argument_ = false;
  }
  return finish(input);
}

RespParser::Found RespParser::parse_line(std::string_view input) {
  const std::string_view rest = input.substr(position_, limits_.line_bytes_max + 1);
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos)
    return rest.size() <= limits_.line_bytes_max
               ? Found::nothing
               : broken("a line has more than " + std::to_string(limits_.line_bytes_max) + " bytes");
  typed_.clear();
  if (!split_words(rest.substr(0, end), typed_, places_)) return broken("a quote has no end");
  if (places_.size() > limits_.arguments_max)
    return over("too many arguments", places_.size(), limits_.arguments_max);
  position_ += end + 1;
  return finish(typed_);
}

RespParser::Found RespParser::finish(std::string_view text) {
  ended_ = true;
  for (const auto& [offset, length] : places_) arguments_.push_back(text.substr(offset, length));
  return Found::command;
}

// Makes room for `most` bytes behind the output; `put` writes them and says where they end.
template <class Put>
void RespWriter::extend(std::size_t most, Put put) {
  const std::size_t size = out_.size();
  if (out_.capacity() - size < most) out_.reserve(2 * (size + most));
  out_.resize_and_overwrite(size + most, [&](char* begin, std::size_t) { return put(begin + size) - begin; });
}

void RespWriter::header(char type, std::int64_t value) {
  extend(kHeaderMax, [&](char* to) { return put_header(to, type, value); });
}

void RespWriter::simple(std::string_view text) {
  out_ += '+';
  out_ += text;
  out_ += "\r\n";
}

void RespWriter::error(std::string_view word, std::string_view message) {
  out_ += '-';
  out_ += word;
  out_ += ' ';
  const std::size_t begin = out_.size();
  out_ += message;
  std::replace_if(
      out_.begin() + static_cast<std::ptrdiff_t>(begin), out_.end(),
      [](char letter) { return letter == '\r' || letter == '\n'; }, ' ');
  out_ += "\r\n";
}

void RespWriter::number(std::int64_t value) { header(':', value); }

void RespWriter::bulk(std::string_view bytes) {
  extend(kHeaderMax + bytes.size() + 2, [&](char* to) {
    to = put_header(to, '$', static_cast<std::int64_t>(bytes.size()));
    to = std::ranges::copy(bytes, to).out;
    *to++ = '\r';
    *to++ = '\n';
    return to;
  });
}

void RespWriter::boolean(bool value) {
  if (version_ < 3) return number(value);
  out_ += value ? "#t\r\n" : "#f\r\n";
}

void RespWriter::null() { out_ += version_ < 3 ? "$-1\r\n" : "_\r\n"; }

void RespWriter::array(std::size_t items) { header('*', static_cast<std::int64_t>(items)); }

void RespWriter::map(std::size_t pairs) {
  if (version_ < 3) return array(2 * pairs);
  header('%', static_cast<std::int64_t>(pairs));
}

void RespWriter::push(std::size_t items) { header('>', static_cast<std::int64_t>(items)); }

}  // namespace baton::wire
