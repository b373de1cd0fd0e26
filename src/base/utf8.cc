#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace baton {
namespace {

// Most text is ASCII from end to end: eight bytes at a time, and whether the highest bit is set in any.
std::size_t ascii_words_bytes(std::string_view text) {
  std::size_t bytes = 0;
  for (std::uint64_t word; bytes + sizeof word <= text.size(); bytes += sizeof word) {
    std::memcpy(&word, text.data() + bytes, sizeof word);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  return bytes;
}

}  // namespace

std::size_t utf8_character_bytes(std::string_view text) {
  const auto at = [&](std::size_t index) -> std::uint32_t {
    return index < text.size() ? static_cast<std::uint8_t>(text[index]) : 0u;
  };
  const std::uint32_t first = at(0);
  if (first < 0x80) return text.empty() ? 0 : 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  std::uint32_t point = first & (0xFFu >> (length + 1));
  for (std::size_t index = 1; index < length; ++index) {
    if ((at(index) & 0xC0) != 0x80) return 0;
    point = point << 6 | (at(index) & 0x3F);
  }
  // The shortest form, no halves of pairs, and nothing beyond the last plane.
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kLeast[length] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return 0;
  return length;
}

std::string_view utf8_beginning(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t bytes = bytes_max;
  const auto continues = [&] { return (static_cast<std::uint8_t>(text[bytes]) & 0xC0) == 0x80; };
  while (bytes > 0 && bytes_max - bytes < 3 && continues()) --bytes;
  return text.substr(0, bytes);
}

bool is_utf8(std::string_view text) {
  for (;;) {
    text.remove_prefix(ascii_words_bytes(text));
    if (text.empty()) return true;
    const std::size_t bytes = utf8_character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
}

}  // namespace baton
