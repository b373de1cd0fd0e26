#include "wire/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace baton::wire {
namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string as_utf8(std::string_view text) {
  std::string readable;
  readable.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = utf8_character_bytes(text);
    readable += bytes == 0 ? "\uFFFD" : text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return readable;
}

void put_json_string(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  for (const char letter : text) {
    const auto code = static_cast<std::uint8_t>(letter);
    if (letter == '"' || letter == '\\') {
      out += '\\';
      out += letter;
    } else if (code < 0x20 || code == 0x7F) {
      out += "\\u00";
      out += kHex[code >> 4];
      out += kHex[code & 15];
    } else {
      out += letter;
    }
  }
  out += '"';
}

void put_base64(std::string& out, std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t index = 0; index < 3; ++index)
      group = group << 8 | (index < count ? static_cast<std::uint8_t>(bytes[at + index]) : 0u);
    for (std::size_t index = 0; index < 4; ++index)
      out += index <= count ? kBase64[group >> (18 - 6 * index) & 63] : '=';
  }
}

std::optional<std::string> from_base64(std::string_view text) {
  static const auto kValues = [] {
    std::array<std::int8_t, 256> values;
    values.fill(-1);
    for (std::size_t at = 0; at < kBase64.size(); ++at)
      values[static_cast<std::uint8_t>(kBase64[at])] = static_cast<std::int8_t>(at);
    return values;
  }();
  if (text.size() % 4 != 0) return {};
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += 4) {
    const bool last = at + 4 == text.size();
    const std::size_t padding = !last || text[at + 3] != '=' ? 0 : text[at + 2] != '=' ? 1 : 2;
    std::uint32_t group = 0;
    for (std::size_t index = 0; index < 4; ++index) {
      const int value = index < 4 - padding ? kValues[static_cast<std::uint8_t>(text[at + index])] : 0;
      if (value < 0) return {};
      group = group << 6 | static_cast<std::uint32_t>(value);
    }
    for (std::size_t index = 0; index < 3 - padding; ++index)
      out += static_cast<char>(group >> (16 - 8 * index) & 255);
    if (padding > 0 && (group & (padding == 1 ? 0xFF : 0xFFFF)) != 0) return {};  // one spelling only
  }
  return out;
}

}  // namespace baton::wire
