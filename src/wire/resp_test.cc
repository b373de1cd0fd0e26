#include "wire/resp.h"

#include <gtest/gtest.h>

#include <random>

namespace baton::wire {
namespace {

using Found = RespParser::Found;
using Commands = std::vector<std::vector<std::string>>;

struct Parsed {
  Commands commands;
  std::string complaint;  // empty: all was understood
  friend bool operator==(const Parsed&, const Parsed&) = default;
};

// Feeds a stream in pieces that end at the given places, as a session does.
Parsed parse_in_pieces(const std::string& stream, const std::vector<std::size_t>& ends,
                       RespLimits limits = {}) {
  RespParser parser(limits);
  Parsed parsed;
  std::size_t begun = 0;
  for (const std::size_t end : ends) {
    for (;;) {
      const std::string piece = stream.substr(begun, end - begun);  // elsewhere in memory every time
      const Found found = parser.parse(piece);
      if (found == Found::nothing) break;
      if (found == Found::broken) {
        parsed.complaint = parser.complaint();
        return parsed;
      }
      parsed.commands.emplace_back(parser.arguments().begin(), parser.arguments().end());
      begun += parser.consumed();
    }
  }
  return parsed;
}

Parsed parse(const std::string& stream, RespLimits limits = {}) {
  return parse_in_pieces(stream, {stream.size()}, limits);
}

std::vector<std::size_t> every_byte(const std::string& stream) {
  std::vector<std::size_t> ends;
  for (std::size_t end = 1; end <= stream.size(); ++end) ends.push_back(end);
  return ends;
}

std::string command(const std::vector<std::string>& words) {
  std::string out;
  RespWriter writer(out);
  writer.array(words.size());
  for (const std::string& word : words) writer.bulk(std::string_view(word));
  return out;
}

TEST(RespParser, ReadsCommandsOfBulkStrings) {
  const std::string binary("\r\n\0*$", 5);
  EXPECT_EQ(parse(command({"PING"}) + command({"SUBMIT", "q", binary, ""})).commands,
            (Commands{{"PING"}, {"SUBMIT", "q", binary, ""}}));
}

TEST(RespParser, ReadsCommandsTypedAsLines) {
  EXPECT_EQ(parse("PING\r\n  GET   x \n\r\n\nQUIT\r\n").commands,
            (Commands{{"PING"}, {"GET", "x"}, {"QUIT"}}));
}

TEST(RespParser, ReadsAnEmptyArrayAsACommandWithoutWords) {
  EXPECT_EQ(parse("*0\r\nPING\r\n").commands, (Commands{{}, {"PING"}}));
}

// X3
TEST(RespParser, FindsTheSameWhereverTheStreamIsCut) {
  const std::string streams[] = {
      command({"SUBMIT", "mail", "hello", "KEY", "k"}) + "PING\r\n" + command({"GET", "a-1"}),
      command({std::string(300, 'x'), ""}) + command({}),
      "*2\r\n$4\r\nPING\r\n$-1\r\n",
      "*1\r\n$4\r\nPINGxx",
      "*1\r\n:4\r\n",
      "*99999999999999999999\r\n",
      "*1\r\n$3x\r\n",
      "*1\n$4\nPING\n",
      "\r\n\r\nPING\r\n*-1\r\n",
  };
  for (const std::string& stream : streams) {
    const Parsed whole = parse(stream);
    EXPECT_EQ(parse_in_pieces(stream, every_byte(stream)), whole) << stream;
    for (std::size_t cut = 1; cut < stream.size(); ++cut)
      EXPECT_EQ(parse_in_pieces(stream, {cut, stream.size()}), whole) << stream << " cut at " << cut;
  }
}

// X3
TEST(RespParser, ReadsBackRandomCommands) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string stream;
    Commands commands(random() % 5);
    for (auto& words : commands) {
      words.resize(1 + random() % 6);
      for (std::string& word : words) {
        word.resize(random() % 40);
        for (char& letter : word) letter = static_cast<char>(random() % 256);
      }
      stream += command(words);
    }
    std::vector<std::size_t> ends;
    for (std::size_t end = 0; end < stream.size();) {
      end = std::min<std::size_t>(stream.size(), end + 1 + random() % 30);
      ends.push_back(end);
    }
    EXPECT_EQ(parse_in_pieces(stream, ends).commands, commands) << "round " << round;
  }
}

// X3
TEST(RespParser, TakesWhatIsAtItsLimitsAndRefusesOnePastThem) {
  const RespLimits limits{.arguments_max = 3, .command_bytes_max = 100, .line_bytes_max = 10};
  EXPECT_EQ(parse(command({"a", "b", "c"}), limits).commands.size(), 1u);
  EXPECT_EQ(parse(command({"a", "b", "c", "d"}), limits).complaint,
            "too many arguments: 4, and the limit is 3");
  EXPECT_EQ(parse(command({std::string(89, 'x')}), limits).commands.size(), 1u);
  EXPECT_EQ(parse(command({std::string(90, 'x')}), limits).complaint,
            "the command has too many bytes: 101, and the limit is 100");
  EXPECT_EQ(parse(command({std::string(101, 'x')}), limits).complaint,
            "an argument has too many bytes: 101, and the limit is 100");
  EXPECT_EQ(parse("123456789\r\n", limits).commands.size(), 1u);
  EXPECT_EQ(parse("12345678901\r\n", limits).complaint, "a line has more than 10 bytes");
  EXPECT_EQ(parse("a b c d\n", limits).complaint, "too many arguments: 4, and the limit is 3");
}

TEST(RespParser, RefusesALengthBeforeTheBytesCome) {
  EXPECT_EQ(parse("*1\r\n$999999999\r\n").complaint,
            "an argument has too many bytes: 999999999, and the limit is 4194304");
}

TEST(RespWriter, WritesBothVersions) {
  for (const int version : {2, 3}) {
    std::string out;
    RespWriter writer(out, version);
    writer.map(1);
    writer.bulk("k");
    writer.boolean(true);
    writer.null();
    writer.array(0);
    writer.number(-7);
    writer.simple("OK");
    writer.error("CONFLICT", "two\r\nlines");
    const std::string shared = "*0\r\n:-7\r\n+OK\r\n-CONFLICT two  lines\r\n";
    EXPECT_EQ(out, version == 2 ? "*2\r\n$1\r\nk\r\n:1\r\n$-1\r\n" + shared
                                : "%1\r\n$1\r\nk\r\n#t\r\n_\r\n" + shared);
  }
}

}  // namespace
}  // namespace baton::wire
