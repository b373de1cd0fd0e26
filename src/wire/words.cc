#include "wire/words.h"

#include <charconv>

namespace baton::wire {
namespace {

bool is_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }

char unescaped(char letter) {
  switch (letter) {
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'b': return '\b';
    case 'a': return '\a';
    default: return letter;
  }
}

// What stands behind a backslash within "…"; returns how many characters that is.
std::size_t put_escaped(std::string_view rest, std::string& text) {
  unsigned char byte = 0;
  if (rest.size() >= 3 && rest[0] == 'x') {
    const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + 3, byte, 16);
    if (error == std::errc{} && end == rest.data() + 3) {
      text += static_cast<char>(byte);
      return 3;
    }
  }
  text += unescaped(rest[0]);
  return 1;
}

// From behind the opening quote to behind the closing one; npos if there is none.
std::size_t put_quoted(std::string_view line, std::size_t at, char quote, std::string& text) {
  while (at < line.size()) {
    const char letter = line[at++];
    if (letter == quote) return at;
    const bool escapes = letter == '\\' && at < line.size() && (quote == '"' || line[at] == quote);
    if (escapes) {
      at += put_escaped(line.substr(at), text);
    } else {
      text += letter;
    }
  }
  return std::string_view::npos;
}

}  // namespace

bool split_words(std::string_view line, std::string& text,
                 std::vector<std::pair<std::size_t, std::size_t>>& places) {
  for (std::size_t at = 0; at < line.size();) {
    if (is_blank(line[at])) {
      ++at;
      continue;
    }
    const std::size_t begin = text.size();
    while (at < line.size() && !is_blank(line[at])) {
      const char letter = line[at++];
      if (letter != '"' && letter != '\'') {
        text += letter;
        continue;
      }
      at = put_quoted(line, at, letter, text);
      if (at > line.size() || (at < line.size() && !is_blank(line[at]))) return false;
    }
    places.emplace_back(begin, text.size() - begin);
  }
  return true;
}

}  // namespace baton::wire
