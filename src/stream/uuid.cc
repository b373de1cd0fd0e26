#include "stream/uuid.h"

#include <charconv>

namespace baton::stream {
namespace {

constexpr std::size_t kTextBytes = 36;

bool is_dash(std::size_t at) { return at == 8 || at == 13 || at == 18 || at == 23; }

}  // namespace

std::string to_text(const Uuid& uuid) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(kTextBytes);
  for (const std::byte byte : uuid.bytes) {
    if (is_dash(text.size())) text += '-';
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

std::optional<Uuid> parse_uuid(std::string_view text) {
  if (text.size() != kTextBytes) return {};
  Uuid uuid;
  std::size_t at = 0;
  for (std::byte& byte : uuid.bytes) {
    if (is_dash(at) && text[at++] != '-') return {};
    unsigned char value = 0;
    const char* end = text.data() + at + 2;
    const auto [stopped, error] = std::from_chars(text.data() + at, end, value, 16);
    if (error != std::errc() || stopped != end) return {};
    byte = std::byte{value};
    at += 2;
  }
  return uuid;
}

}  // namespace baton::stream
