#include "stream/json_text.h"

#include <cstdint>
#include <cstring>

#include "base/utf8.h"

namespace baton::stream {
namespace {

constexpr int kDepthMax = 100;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// RFC 8259. Takes one thing after the other off the front.
class Json {
 public:
  explicit Json(std::string_view text) : rest_(text) {}

  bool is_whole() {
    const bool good = value(kDepthMax);
    skip_space();
    return good && rest_.empty();
  }

 private:
  bool value(int depth) {
    skip_space();
    if (rest_.empty() || depth == 0) return false;
    switch (rest_.front()) {
      case '{': return object(depth - 1);
      case '[': return array(depth - 1);
      case '"': return string();
      case 't': return word("true");
      case 'f': return word("false");
      case 'n': return word("null");
      default: return number();
    }
  }

  bool object(int depth) {
    take('{');
    if (skip_space(), take('}')) return true;
    do {
      skip_space();
      if (!string()) return false;
      if (skip_space(), !take(':')) return false;
      if (!value(depth)) return false;
      skip_space();
    } while (take(','));
    return take('}');
  }

  bool array(int depth) {
    take('[');
    if (skip_space(), take(']')) return true;
    do {
      if (!value(depth)) return false;
      skip_space();
    } while (take(','));
    return take(']');
  }

  bool string() {
    if (!take('"')) return false;
    while (skip_plain(), !rest_.empty()) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '"') return true;
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c == '\\' && !escape()) return false;
    }
    return false;
  }

  // Eight bytes at a time, as long as nothing in them ends the string or means something in it.
  void skip_plain() {
    constexpr std::uint64_t kOnes = 0x0101010101010101u;
    constexpr std::uint64_t kHighs = 0x80 * kOnes;
    const auto some_below = [](std::uint64_t word, std::uint64_t limit) {
      return (word - limit * kOnes) & ~word & kHighs;
    };
    std::size_t bytes = 0;
    for (std::uint64_t word; bytes + sizeof word <= rest_.size(); bytes += sizeof word) {
      std::memcpy(&word, rest_.data() + bytes, sizeof word);
      if ((some_below(word, ' ') | some_below(word ^ '"' * kOnes, 1) | some_below(word ^ '\\' * kOnes, 1)) !=
          0)
        break;
    }
    rest_.remove_prefix(bytes);
  }

  bool escape() {
    if (rest_.empty()) return false;
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c != 'u') return std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos;
    for (int i = 0; i < 4; ++i, rest_.remove_prefix(1)) {
      if (rest_.empty() || !is_hex(rest_.front())) return false;
    }
    return true;
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (!take('e') && !take('E')) return true;
    if (!take('+')) take('-');
    return digits();
  }

  bool digits() {
    if (rest_.empty() || !is_digit(rest_.front())) return false;
    while (!rest_.empty() && is_digit(rest_.front())) rest_.remove_prefix(1);
    return true;
  }

  bool word(std::string_view wanted) {
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(wanted.size());
    return true;
  }

  bool take(char wanted) {
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void skip_space() {
    while (!rest_.empty() && std::string_view(" \t\n\r").find(rest_.front()) != std::string_view::npos)
      rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

}  // namespace

bool is_json(std::string_view text) { return is_utf8(text) && Json(text).is_whole(); }

std::string as_utf8(std::string_view text, std::size_t bytes_max) {
  std::string taken;
  while (!text.empty()) {
    const std::size_t bytes = text.front() == '\0' ? 0 : utf8_character_bytes(text);
    const std::string_view next = bytes == 0 ? "?" : text.substr(0, bytes);
    if (taken.size() + next.size() > bytes_max) break;
    taken += next;
    text.remove_prefix(next.size());
  }
  return taken;
}

}  // namespace baton::stream
