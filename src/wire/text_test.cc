#include "wire/text.h"

#include <gtest/gtest.h>

namespace baton::wire {
namespace {

TEST(Utf8, IsMadeOfWhatIsNone) {
  EXPECT_EQ(as_utf8("gr\xC3\xBC\xC3\x9F"), "gr\xC3\xBC\xC3\x9F");
  EXPECT_EQ(as_utf8("\x9F"
                    "a\xE2\x82"),
            "\uFFFDa\uFFFD\uFFFD");
}

TEST(JsonString, EscapesWhatHasTo) {
  std::string out;
  put_json_string(out, std::string_view("a\"b\\c\n\0\x7F\xC3\xBC", 10));
  EXPECT_EQ(out, "\"a\\\"b\\\\c\\u000a\\u0000\\u007f\xC3\xBC\"");
}

TEST(Base64, ReadsBackEveryLengthAndByte) {
  std::string bytes;
  for (int length = 0; length < 600; ++length, bytes += static_cast<char>(length * 7)) {
    std::string text;
    put_base64(text, bytes);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, IsThatOfTheStandard) {
  std::string text;
  put_base64(text, "foobar"), put_base64(text, "fooba"), put_base64(text, "foob");
  EXPECT_EQ(text, "Zm9vYmFyZm9vYmE=Zm9vYg==");
}

TEST(Base64, RefusesWhatNobodyWrites) {
  for (const char* bad :
       {"A", "AA", "AAA", "A===", "AA=A", "====", "AA==AAAA", "AB==", "AAB=", "AA A", "AA\nA", "AA-_"})
    EXPECT_FALSE(from_base64(bad)) << bad;
}

}  // namespace
}  // namespace baton::wire
