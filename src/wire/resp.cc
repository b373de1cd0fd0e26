#include "wire/resp.h"

#include <algorithm>
#include <charconv>

#include "wire/words.h"

namespace baton::wire {
namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

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
  if (position_ >= input.size()) return Found::nothing;
  return begun_ || input[position_] == '*' ? parse_array(input) : parse_line(input);
}

RespParser::Found RespParser::broken(std::string_view complaint) {
  complaint_ = complaint;
  return Found::broken;
}

// Nearly every length has few digits and is all there.
bool RespParser::short_number(std::string_view input, std::size_t& value) {
  constexpr std::size_t kDigitsMax = 9;
  const std::size_t begin = position_ + 1;
  std::size_t at = begin;
  value = 0;
  for (; at < input.size() && at - begin < kDigitsMax && is_digit(input[at]); ++at)
    value = value * 10 + static_cast<std::size_t>(input[at] - '0');
  if (at == begin || input.size() - at < 2 || input[at] != '\r' || input[at + 1] != '\n') return false;
  position_ = at + 2;
  return true;
}

RespParser::Found RespParser::number(std::string_view input, char type, std::size_t max,
                                     std::string_view what, std::size_t& value) {
  constexpr std::size_t kDigitsMax = 20;
  if (position_ >= input.size()) return Found::nothing;
  if (input[position_] != type) return broken("expected an array of bulk strings");
  if (short_number(input, value)) return value > max ? broken(what) : Found::command;
  const std::string_view rest = input.substr(position_ + 1, kDigitsMax + 2);
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos)
    return rest.size() < kDigitsMax + 2 ? Found::nothing : broken("a length has no end");
  if (end == 0 || rest[end - 1] != '\r') return broken("a length has to end with CR LF");
  const char* last = rest.data() + end - 1;
  const auto [stop, error] = std::from_chars(rest.data(), last, value);
  if (error != std::errc{} || stop != last) return broken("a length is not a number");
  if (value > max) return broken(what);
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
      if (auto found = number(input, '$', limits_.command_bytes_max, "an argument is too long", length_);
          found != Found::command)
        return found;
      in_argument_ = true;
      needed_ = position_ + length_ + 2;
      if (needed_ > limits_.command_bytes_max) return broken("the command is too long");
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
    return rest.size() <= limits_.line_bytes_max ? Found::nothing : broken("a line is too long");
  typed_.clear();
  if (!split_words(rest.substr(0, end), typed_, places_)) return broken("a quote has no end");
  if (places_.size() > limits_.arguments_max) return broken("too many arguments");
  position_ += end + 1;
  return finish(typed_);
}

RespParser::Found RespParser::finish(std::string_view text) {
  ended_ = true;
  for (const auto& [offset, length] : places_) arguments_.push_back(text.substr(offset, length));
  return Found::command;
}

void RespWriter::header(char type, std::int64_t value) {
  char text[24];
  out_.append(text, put_header(text, type, value));
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

// A short one is put together first: adding to the output three times costs more than the bytes.
void RespWriter::bulk(std::string_view bytes) {
  constexpr std::size_t kShort = 64;
  char text[24 + kShort + 2];
  char* end = put_header(text, '$', static_cast<std::int64_t>(bytes.size()));
  if (bytes.size() > kShort) {
    out_.append(text, end);
    out_ += bytes;
    out_ += "\r\n";
    return;
  }
  end = std::ranges::copy(bytes, end).out;
  *end++ = '\r';
  *end++ = '\n';
  out_.append(text, end);
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
