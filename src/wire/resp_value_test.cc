#include "wire/resp_value.h"

#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <random>

#include "wire/resp.h"

namespace baton::wire {
namespace {

using Type = RespValue::Type;
using Found = RespValueParser::Found;

struct Parsed {
  std::vector<RespValue> values;
  std::string complaint;  // empty: all was understood
  std::size_t left = 0;   // bytes not taken
  friend bool operator==(const Parsed&, const Parsed&) = default;
};

// Feeds a stream in pieces of the given size, as a connection does.
Parsed parse(const std::string& stream, RespValueLimits limits = {}, std::size_t piece = SIZE_MAX) {
  RespValueParser parser(limits);
  Parsed parsed;
  std::string buffer;
  for (std::size_t fed = 0; fed < stream.size() || fed == 0;) {
    const std::string more = stream.substr(fed, piece);
    fed += std::max<std::size_t>(more.size(), 1);
    std::string grown = buffer + more;  // elsewhere in memory every time
    std::string_view input = grown;
    for (;;) {
      const Found found = parser.parse(input);
      if (found == Found::nothing) break;
      if (found == Found::broken) return {std::move(parsed.values), std::string(parser.complaint()), 0};
      parsed.values.push_back(parser.take());
    }
    buffer = input;
  }
  parsed.left = buffer.size();
  return parsed;
}

RespValue text(Type type, std::string value) { return {.type = type, .text = std::move(value)}; }
RespValue number(std::int64_t value) { return {.type = Type::number, .number = value}; }
RespValue several(Type type, std::vector<RespValue> items) {
  return {.type = type, .items = std::move(items)};
}

// One value as the protocol's version 3 writes it.
void write(const RespValue& value, std::string& out) {
  RespWriter writer(out, 3);
  const auto line = [&](char type, std::string_view rest) {
    out += type;
    out += rest;
    out += "\r\n";
  };
  const auto items = [&](char type, std::size_t count) {
    line(type, std::to_string(count));
    for (const RespValue& item : value.items) write(item, out);
  };
  switch (value.type) {
    case Type::null: return writer.null();
    case Type::boolean: return writer.boolean(value.truth);
    case Type::number: return writer.number(value.number);
    case Type::real: {
      char digits[40];
      line(',', {digits, std::to_chars(digits, digits + sizeof digits, value.real).ptr});
      return;
    }
    case Type::simple: return line('+', value.text);
    case Type::bulk: return writer.bulk(value.text);
    case Type::verbatim: return line('=', std::to_string(value.text.size() + 4) + "\r\ntxt:" + value.text);
    case Type::big_number: return line('(', value.text);
    case Type::error: return line('!', std::to_string(value.text.size()) + "\r\n" + value.text);
    case Type::array: return items('*', value.items.size());
    case Type::set: return items('~', value.items.size());
    case Type::map: return items('%', value.items.size() / 2);
    case Type::push: return items('>', value.items.size());
  }
}
std::string written(const RespValue& value) {
  std::string out;
  write(value, out);
  return out;
}

const std::string kEveryType =
    "+OK\r\n-LEASE_LOST it is "
    "gone\r\n:-42\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n_\r\n#t\r\n#f\r\n,1.5\r\n,-inf\r\n"
    "(-123456789012345678901234567890\r\n=8\r\ntxt:text\r\n!9\r\nCLOSED "
    "\r\n\r\n*2\r\n:1\r\n*0\r\n~1\r\n:1\r\n"
    "%1\r\n+task\r\n$3\r\na-1\r\n>2\r\n+lost\r\n+a-1\r\n|1\r\n+ttl\r\n:3\r\n:7\r\n*1\r\n|1\r\n+a\r\n:1\r\n:"
    "8\r\n";

TEST(RespValueParser, ReadsEveryType) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Parsed parsed = parse(kEveryType);
  EXPECT_EQ(parsed.complaint, "");
  EXPECT_EQ(parsed.left, 0u);
  const std::vector<RespValue> expected = {
      text(Type::simple, "OK"),
      text(Type::error, "LEASE_LOST it is gone"),
      number(-42),
      text(Type::bulk, "a\r\n"),
      text(Type::bulk, ""),
      {},
      {},
      {},
      {.type = Type::boolean, .truth = true},
      {.type = Type::boolean},
      {.type = Type::real, .real = 1.5},
      {.type = Type::real, .real = -infinity},
      text(Type::big_number, "-123456789012345678901234567890"),
      text(Type::verbatim, "text"),
      text(Type::error, "CLOSED \r\n"),
      several(Type::array, {number(1), several(Type::array, {})}),
      several(Type::set, {number(1)}),
      several(Type::map, {text(Type::simple, "task"), text(Type::bulk, "a-1")}),
      several(Type::push, {text(Type::simple, "lost"), text(Type::simple, "a-1")}),
      number(7),
      several(Type::array, {number(8)}),
  };
  ASSERT_EQ(parsed.values.size(), expected.size());
  for (std::size_t at = 0; at < expected.size(); ++at) EXPECT_EQ(parsed.values[at], expected[at]) << at;
}

TEST(RespValueParser, ReadsNotANumber) {
  const Parsed parsed = parse(",nan\r\n");
  ASSERT_EQ(parsed.values.size(), 1u);
  EXPECT_TRUE(std::isnan(parsed.values[0].real));
}

// X3
TEST(RespValueParser, FindsTheSameWhereverTheStreamIsCut) {
  const Parsed whole = parse(kEveryType);
  for (std::size_t piece = 1; piece < kEveryType.size(); ++piece)
    EXPECT_EQ(parse(kEveryType, {}, piece), whole) << piece;
  for (std::size_t end = 0; end < kEveryType.size(); ++end)
    EXPECT_EQ(parse(kEveryType.substr(0, end)).complaint, "") << end;
}

RespValue random_value(std::mt19937_64& random, int depth) {
  const auto bytes = [&] {
    std::string out(random() % 20, '\0');
    for (char& c : out) c = static_cast<char>(random());
    return out;
  };
  switch (random() % (depth > 0 ? 13 : 9)) {
    case 0: return {};
    case 1: return {.type = Type::boolean, .truth = random() % 2 == 0};
    case 2: return number(static_cast<std::int64_t>(random()));
    case 3: {
      const double real = std::bit_cast<double>(random());
      return {.type = Type::real, .real = std::isfinite(real) ? real : 0.25};
    }
    case 4: return text(Type::simple, "simple " + std::to_string(random()));
    case 5: return text(Type::bulk, bytes());
    case 6: return text(Type::verbatim, bytes());
    case 7: return text(Type::big_number, std::to_string(random()) + std::to_string(random()));
    case 8: return text(Type::error, bytes());
    default: break;
  }
  const Type types[] = {Type::array, Type::set, Type::map};
  const Type type = types[random() % 3];
  std::vector<RespValue> items;
  for (std::size_t count = random() % 5 * (type == Type::map ? 2 : 1); count > 0; --count)
    items.push_back(random_value(random, depth - 1));
  return several(type, std::move(items));
}

TEST(RespValueParser, ReadsBackWhateverIsWritten) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    const RespValue value = random_value(random, 5);
    const std::string stream = written(value) + written(number(1));
    for (const std::size_t piece : {SIZE_MAX, std::size_t{1} + seed % 7}) {
      const Parsed parsed = parse(stream, {}, piece);
      ASSERT_EQ(parsed.complaint, "") << "seed " << seed;
      ASSERT_EQ(parsed.values, (std::vector<RespValue>{value, number(1)})) << "seed " << seed;
    }
  }
}

TEST(RespValueParser, HoldsItsLimits) {
  const auto complaint = [](const std::string& stream, RespValueLimits limits) {
    const std::string whole = parse(stream, limits).complaint;
    EXPECT_EQ(parse(stream, limits, 1).complaint, whole);
    return whole;
  };
  const RespValueLimits depth{.depth_max = 3};
  EXPECT_EQ(complaint("*1\r\n*1\r\n*1\r\n:1\r\n", depth), "");
  EXPECT_EQ(complaint("*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", depth), "the reply is too deep");
  const RespValueLimits items{.items_max = 4};
  EXPECT_EQ(complaint("*3\r\n:1\r\n:2\r\n:3\r\n", items), "");
  EXPECT_EQ(complaint("*4\r\n", items), "the reply has too many values");
  EXPECT_EQ(complaint("%2\r\n", items), "the reply has too many values");
  EXPECT_EQ(complaint("*2\r\n*1\r\n:1\r\n*1\r\n", items), "the reply has too many values");
  const RespValueLimits bytes{.bytes_max = 17};
  EXPECT_EQ(complaint("$10\r\n1234567890\r\n:1\r\n", bytes), "");  // 5 + 10 + 2, then another reply
  EXPECT_EQ(complaint("$11\r\n", bytes), "the reply is too long");
  EXPECT_EQ(complaint("*2\r\n$5\r\n12345\r\n+\r\n", bytes), "the reply is too long");
  const RespValueLimits line{.line_bytes_max = 8};
  EXPECT_EQ(complaint("+123456\r\n", line), "");
  EXPECT_EQ(complaint("+1234567\r\n", line), "a line is too long");
  EXPECT_EQ(complaint("+12345678", line), "a line is too long");
}

// X3
TEST(RespValueParser, GivesUpOnWhatIsNotTheProtocol) {
  for (const std::string stream : {"\r\n",
                                   "\n",
                                   "hello\r\n",
                                   "+OK\n",
                                   ":\r\n",
                                   ":1x\r\n",
                                   ":--1\r\n",
                                   ":9223372036854775808\r\n",
                                   "$-2\r\n",
                                   "$x\r\n",
                                   "$+1\r\n",
                                   "$18446744073709551615\r\n",
                                   "$99999999999999999999\r\n",
                                   "*-2\r\n",
                                   "*99999999\r\n",
                                   "%9223372036854775808\r\n",
                                   "%-1\r\n",
                                   "~-1\r\n",
                                   "!-1\r\n",
                                   "#x\r\n",
                                   "#\r\n",
                                   "_x\r\n",
                                   ",\r\n",
                                   ",x\r\n",
                                   ",1.5x\r\n",
                                   ",infinity\r\n",
                                   "(\r\n",
                                   "(1x\r\n",
                                   "=3\r\ntxt\r\n",
                                   "=4\r\ntxtx\r\n",
                                   "$2\r\nabxx",
                                   "*1\r\n>1\r\n+x\r\n",
                                   "$?\r\n",
                                   "*?\r\n",
                                   ";1\r\n",
                                   ".\r\n"}) {
    EXPECT_NE(parse(stream).complaint, "") << stream;
    EXPECT_EQ(parse(stream, {}, 1), parse(stream)) << stream;
  }
}

TEST(RespValueParser, StaysBroken) {
  RespValueParser parser;
  std::string_view bad = "hello\r\n";
  EXPECT_EQ(parser.parse(bad), Found::broken);
  std::string_view good = "+OK\r\n";
  EXPECT_EQ(parser.parse(good), Found::broken);
}

TEST(RespValueParser, SurvivesAnyChangeOfAByte) {
  std::mt19937_64 random(1);
  for (std::size_t at = 0; at < kEveryType.size(); ++at) {
    for (int tries = 0; tries < 8; ++tries) {
      std::string stream = kEveryType;
      stream[at] = static_cast<char>(random());
      const Parsed parsed = parse(stream);
      EXPECT_EQ(parse(stream, {}, 1).values, parsed.values);
    }
  }
}

TEST(RespValue, FindsMembersByName) {
  const auto map = parse("%2\r\n+task\r\n+a-1\r\n+lsn\r\n:5\r\n").values.at(0);
  ASSERT_NE(map.find("lsn"), nullptr);
  EXPECT_EQ(map.find("lsn")->number, 5);
  EXPECT_EQ(map.find("a-1"), nullptr);
  const auto array = parse("*2\r\n+lsn\r\n:5\r\n").values.at(0);  // as version 2 has it
  ASSERT_NE(array.find("lsn"), nullptr);
  EXPECT_EQ(number(5).find("lsn"), nullptr);
}

}  // namespace
}  // namespace baton::wire
