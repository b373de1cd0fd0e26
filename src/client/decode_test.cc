#include "client/decode.h"

#include <gtest/gtest.h>

#include "client/address.h"

namespace baton::client {
namespace {

using wire::RespValue;
using Type = RespValue::Type;

RespValue parsed(std::string_view stream) {
  wire::RespValueParser parser;
  EXPECT_EQ(parser.parse(stream), wire::RespValueParser::Found::value);
  return parser.take();
}

TEST(ErrorReply, HasTheCodeOfItsWord) {
  EXPECT_EQ(error_of(parsed("-LEASE_LOST it is gone\r\n")), (Error{Errc::lease_lost, "it is gone"}));
  EXPECT_EQ(error_of(parsed("-EXHAUSTED\r\n")), (Error{Errc::exhausted, ""}));
  for (int code = 0; code <= static_cast<int>(kLastErrc); ++code) {
    const auto errc = static_cast<Errc>(code);
    EXPECT_EQ(error_of(parsed("-" + std::string(word(errc)) + " x\r\n")), (Error{errc, "x"}));
  }
}

TEST(ErrorReply, SaysWhenItIsWorthAnotherTry) {  // X5
  EXPECT_EQ(error_of(parsed("-EXHAUSTED too fast; retry_after_ms=250\r\n")),
            (Error{Errc::exhausted, "too fast", milliseconds(250)}));
  EXPECT_EQ(error_of(parsed("-EXHAUSTED too fast; retry_after_ms=9000000000000000\r\n")).retry_after,
            days(1));
  for (const char* other : {"too fast; retry_after_ms=", "too fast; retry_after_ms=1x",
                            "too fast; retry_after_ms=-1", "too fast; retry_after_ms=99999999999999999999"})
    EXPECT_EQ(error_of(parsed(std::string("-EXHAUSTED ") + other + "\r\n")), (Error{Errc::exhausted, other}));
}

TEST(ErrorReply, KeepsAWordThatIsNotKnown) {
  EXPECT_EQ(error_of(parsed("-MOON is full\r\n")), (Error{Errc::invalid_request, "MOON is full"}));
  EXPECT_EQ(error_of(parsed("-WRONGPASS no\r\n")), (Error{Errc::permission_denied, "WRONGPASS no"}));
  EXPECT_EQ(error_of(parsed("-\r\n")), (Error{Errc::invalid_request, ""}));
}

TEST(Reply, OfAnotherShapeIsRefused) {
  for (const char* stream :
       {"+OK\r\n", ":1\r\n", "_\r\n", "*0\r\n", "%0\r\n", "%1\r\n+task\r\n:1\r\n", "%1\r\n+tasks\r\n:1\r\n",
        "%1\r\n+tasks\r\n*1\r\n+x\r\n", "%1\r\n+status\r\n:1\r\n", "%1\r\n:1\r\n:1\r\n"}) {
    const RespValue reply = parsed(stream);
    EXPECT_FALSE(decode_submitted(reply)) << stream;
    EXPECT_FALSE(decode_leased(reply)) << stream;
    EXPECT_FALSE(decode_extended(reply)) << stream;
    EXPECT_FALSE(decode_extended_many(reply)) << stream;
    EXPECT_FALSE(decode_verdict(reply)) << stream;
    EXPECT_FALSE(decode_next(reply)) << stream;
    EXPECT_FALSE(decode_accepted(reply)) << stream;
    EXPECT_FALSE(decode_task(reply)) << stream;
    EXPECT_FALSE(decode_page(reply)) << stream;
    EXPECT_FALSE(decode_queues(reply)) << stream;
    EXPECT_FALSE(decode_leases(reply)) << stream;
    EXPECT_FALSE(decode_purged(reply)) << stream;
  }
  EXPECT_EQ(decode_submitted(parsed("+OK\r\n")).error().code, Errc::unsupported_version);
}

TEST(Reply, MayComeInVersion2) {
  const auto submitted = decode_submitted(parsed("*6\r\n+lsn\r\n:7\r\n+task\r\n+a-1\r\n+existed\r\n:1\r\n"));
  ASSERT_TRUE(submitted);
  EXPECT_EQ(submitted->task, "a-1");
  EXPECT_EQ(submitted->lsn, 7u);
  EXPECT_TRUE(submitted->existed);
}

TEST(Push, TellsOfALostLease) {
  EXPECT_EQ(decode_lost(parsed(">3\r\n+lost\r\n+a-1\r\n+b-2\r\n")), (Held{"a-1", "b-2"}));
  EXPECT_EQ(decode_lost(parsed(">4\r\n+lost\r\n+a-1\r\n+b-2\r\n+cancelled\r\n")), (Held{"a-1", "b-2"}));
  EXPECT_EQ(decode_lost(parsed(">2\r\n+lost\r\n%2\r\n+task\r\n+a-1\r\n+lease\r\n+b-2\r\n")),
            (Held{"a-1", "b-2"}));
  for (const char* other : {">1\r\n+lost\r\n", ">0\r\n", ">3\r\n+found\r\n+a-1\r\n+b-2\r\n",
                            ">2\r\n+lost\r\n+a\r\n", ">3\r\n+lost\r\n:1\r\n:2\r\n", ">1\r\n:1\r\n"})
    EXPECT_EQ(decode_lost(parsed(other)), std::nullopt) << other;
}

TEST(Address, IsHostAndPort) {
  EXPECT_EQ(parse_address("127.0.0.1:7077")->text(), "127.0.0.1:7077");
  EXPECT_EQ(parse_address("[::1]:65535")->host, "::1");
  EXPECT_EQ(parse_address("a.example:1")->port, "1");
  for (const char* bad :
       {"", ":", "host", "host:", ":1", "host:0", "host:65536", "host:x", "host:1x", "[]:1"})
    EXPECT_FALSE(parse_address(bad)) << bad;
}

}  // namespace
}  // namespace baton::client
