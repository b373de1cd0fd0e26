#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace baton {
namespace {

TEST(Utf8, HasOneFormForEachCharacter) {
  for (const char* good :
       {"", "plain", "gr\xC3\xBC\xC3\x9F", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(is_utf8(good)) << good;
  for (const char* bad :
       {"\x80", "\xC3", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "a\xFF", "a\xE2\x82", "\xE2\x28\xA1"})
    EXPECT_FALSE(is_utf8(bad)) << bad;
}

// Every code point, by the rule that makes its bytes, and what is one byte short.
TEST(Utf8, TakesEveryCharacterWhole) {
  for (std::uint32_t point = 0; point <= 0x10FFFF + 1; ++point) {
    const auto tail = [&](int shift) { return static_cast<char>(0x80 | (point >> shift & 0x3F)); };
    const auto head = [&](int mark, int shift) { return static_cast<char>(mark | point >> shift); };
    const std::string bytes = point < 0x80      ? std::string{head(0, 0)}
                              : point < 0x800   ? std::string{head(0xC0, 6), tail(0)}
                              : point < 0x10000 ? std::string{head(0xE0, 12), tail(6), tail(0)}
                                                : std::string{head(0xF0, 18), tail(12), tail(6), tail(0)};
    const bool is_one = point <= 0x10FFFF && (point < 0xD800 || point >= 0xE000);
    ASSERT_EQ(utf8_character_bytes(bytes), is_one ? bytes.size() : 0) << point;
    ASSERT_EQ(utf8_character_bytes(std::string_view(bytes).substr(0, bytes.size() - 1)), 0) << point;
  }
}

TEST(Utf8, IsCutBetweenCharacters) {
  EXPECT_EQ(utf8_beginning("abc", 3), "abc");
  EXPECT_EQ(utf8_beginning("abcd", 3), "abc");
  const std::string euros = "\xE2\x82\xAC\xE2\x82\xAC";
  for (std::size_t most = 0; most < 6; ++most) EXPECT_EQ(utf8_beginning(euros, most).size(), most / 3 * 3);
  EXPECT_EQ(utf8_beginning("\x80\x80\x80\x80\x80\x80", 5).size(), 2) << "no text at all is cut too";
}

// Long texts are looked at in words: wherever in one the byte is.
TEST(Utf8, IsSeenThroughFromEndToEnd) {
  for (std::size_t length = 1; length < 40; ++length) {
    for (std::size_t at = 0; at < length; ++at) {
      std::string text(length, 'x');
      text[at] = '\xFF';
      EXPECT_FALSE(is_utf8(text)) << length << ' ' << at;
      text.replace(at, 1, "\xE2\x82\xAC");
      EXPECT_TRUE(is_utf8(text)) << length << ' ' << at;
      EXPECT_FALSE(is_utf8(std::string_view(text).substr(0, at + 2))) << length << ' ' << at;
    }
  }
}

}  // namespace
}  // namespace baton
