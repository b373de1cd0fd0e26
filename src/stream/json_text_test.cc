#include "stream/json_text.h"

#include <gtest/gtest.h>

#include <string>

#include "stream/body.h"

namespace baton::stream {
namespace {

TEST(JsonText, IsWhatTheStandardSays) {
  for (const char* good : {"0", "-0.5e+3", "true", "null", "\"\"", "[]", "{}", " [1, \"two\", null] ",
                           R"({"a": {"b": [1, 2.5, "\u00fc\n"]}, "c": false})", "\"\xc3\xbc\""}) {
    EXPECT_TRUE(is_json(good)) << good;
  }
  for (const char* bad : {"",    " ",      "01",      "-",           "1.",       "1e",      "tru",
                          "nul", "\"",     "[1,]",    "[1 2]",       "{a: 1}",   "{\"a\"}", "{\"a\": 1,}",
                          "1 2", "\"\t\"", R"("\x")", R"("\u12g4")", "\"\xff\"", "'a'"}) {
    EXPECT_FALSE(is_json(bad)) << bad;
  }
}

TEST(JsonText, IsNotCutAnywhere) {
  const std::string whole = R"({"a": [1.5e3, "x\u0041\\", true, null], "b": {}})";
  ASSERT_TRUE(is_json(whole));
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(is_json(whole.substr(0, length))) << length;
}

TEST(JsonText, IsOnlySoDeep) {
  EXPECT_TRUE(is_json(std::string(99, '[') + "1" + std::string(99, ']')));
  EXPECT_FALSE(is_json(std::string(100, '[') + "1" + std::string(100, ']')));
}

// Long strings are looked at in words: wherever in one it is.
TEST(JsonText, IsSeenThroughFromEndToEnd) {
  for (std::size_t length = 1; length < 40; ++length) {
    for (std::size_t at = 0; at < length; ++at) {
      const auto with = [&](const char* what) {
        return '"' + std::string(at, 'x') + what + std::string(length - at, 'x') + '"';
      };
      for (const char* bad : {"\x01", "\x1f", "\n", "\"", "\\", "\xff"})
        EXPECT_FALSE(is_json(with(bad))) << with(bad);
      for (const char* good : {" ", "!", "#", "[", "]", "\x7f", "\\n", "\\\"", "\xc3\xbc"})
        EXPECT_TRUE(is_json(with(good))) << with(good);
    }
  }
}

// S22: at the limit, and one past it.
TEST(Utf8, IsMadeOfWhatIsNone) {
  EXPECT_EQ(as_utf8(std::string_view("a\0b\xff\xc3\xbc\xe2\x82", 8), 100), "a?b?\xc3\xbc??");
  EXPECT_EQ(as_utf8("abc", 3), "abc");
  EXPECT_EQ(as_utf8("abcd", 3), "abc");
  EXPECT_EQ(as_utf8("a\xc3\xbc", 3), "a\xc3\xbc");
  EXPECT_EQ(as_utf8("ab\xc3\xbc", 3), "ab") << "no character is cut in two";
}

TEST(ABody, ReadsBackWhatItWasMadeOf) {
  const NewMessage message{.target = "there", .type = "T", .envelope_type = "E", .data = "1", .scope = "{}"};
  const Bytes body = body_of(message);
  Work work;
  ASSERT_TRUE(read_body(body, work));
  EXPECT_EQ(work.target, "there");
  EXPECT_EQ(work.type, "T");
  EXPECT_EQ(work.envelope_type, "E");
  EXPECT_EQ(work.data, "1");
  EXPECT_EQ(work.metadata, "{}") << "which is what it is if nothing was said";
  EXPECT_EQ(work.scope, "{}");
  for (std::size_t length = 0; length < body.size(); ++length)
    EXPECT_FALSE(read_body(ByteView(body).first(length), work));
}

}  // namespace
}  // namespace baton::stream
