#include "wire/words.h"

#include <gtest/gtest.h>

#include <optional>

namespace baton::wire {
namespace {

std::optional<std::vector<std::string>> words_of(std::string_view line) {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>> places;
  if (!split_words(line, text, places)) return {};
  std::vector<std::string> words;
  for (const auto& [begin, length] : places) words.push_back(text.substr(begin, length));
  return words;
}
using Words = std::vector<std::string>;

TEST(Words, AreSeparatedByBlanks) {
  EXPECT_EQ(words_of("PING"), (Words{"PING"}));
  EXPECT_EQ(words_of("  SUBMIT\tmail  hello \r"), (Words{"SUBMIT", "mail", "hello"}));
  EXPECT_EQ(words_of(" \t\r"), Words{});
}

TEST(Words, AreHeldTogetherByQuotes) {
  EXPECT_EQ(words_of(R"(SUBMIT mail "hello world")"), (Words{"SUBMIT", "mail", "hello world"}));
  EXPECT_EQ(words_of(R"('it''s')"), std::nullopt) << "a quote has to end with its word";
  EXPECT_EQ(words_of(R"(a"b c" d)"), (Words{"ab c", "d"}));
  EXPECT_EQ(words_of(R"("" '')"), (Words{"", ""}));
}

TEST(Words, KnowEscapesWithinQuotes) {
  EXPECT_EQ(words_of(R"("a\x41\n\t\"\\\q")"), (Words{"aA\n\t\"\\q"}));
  EXPECT_EQ(words_of(R"('it\'s \n')"), (Words{"it's \\n"}));
  EXPECT_EQ(words_of(R"("\xzz")"), (Words{"xzz"}));
  EXPECT_EQ(words_of(R"(a\b)"), (Words{R"(a\b)"}));
}

// X3
TEST(Words, EndWithTheirQuotes) {
  for (const char* line : {"\"", "'", "\"abc", "'abc\\'", "\"abc\\", "\"a\"b"})
    EXPECT_EQ(words_of(line), std::nullopt) << line;
}

}  // namespace
}  // namespace baton::wire
