#include "wire/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace baton::wire {
namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The code point that starts at `at`, which is moved behind it; none if it is not well-formed (RFC 3629).
std::optional<std::uint32_t> take_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t index) { return static_cast<std::uint8_t>(text[index]); };
  const std::uint8_t first = byte(at);
  if (first < 0x80) {
    ++at;
    return first;
  }
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() - at < length) return {};
  std::uint32_t point = first & (0xFFu >> (length + 1));
  for (std::size_t index = 1; index < length; ++index) {
    if ((byte(at + index) & 0xC0) != 0x80) return {};
    point = point << 6 | (byte(at + index) & 0x3F);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kLeast[length] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return {};
  at += length;
  return point;
}

}  // namespace

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (!take_code_point(text, at)) return false;
  }
  return true;
}

std::string as_utf8(std::string_view text) {
  std::string readable;
  readable.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t from = at;
    if (take_code_point(text, at)) {
      readable += text.substr(from, at - from);
    } else {
      readable += "\uFFFD";
      ++at;
    }
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
