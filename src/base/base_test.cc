#include <gtest/gtest.h>

#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/result.h"

namespace baton {
namespace {

TEST(Crc32c, GivesThePublishedValueOfTheCheckString) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
}

// The vector of the SipHash paper's reference program: key 00..0f, message 00..17 (24 bytes).
TEST(KeyedHash, IsSipHash24) {
  const SecretKey key{0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  EXPECT_EQ(keyed_hash(key, 0x0706050403020100u, 0x0f0e0d0c0b0a0908u, 0x1716151413121110u),
            0xb8ad50c6f649af94u);
}

// The values are those of XXH3's portable code, by no matter which instructions they are computed here. They
// are in logs: what is short and what is long must go on to have the hash that it had.
TEST(ContentHash, IsXxh3OfAnyLength) {
  Bytes bytes(100'000);
  for (std::size_t at = 0; at < bytes.size(); ++at) bytes[at] = static_cast<std::byte>(at * 7 + at / 251);
  constexpr std::pair<std::size_t, std::uint64_t> kExpected[] = {
      {0, 0xb029411ff43d84d2},    {1, 0x5cf10f10bf2dd245},    {16, 0x93b3fa7dc2d7c0df},
      {128, 0xb601862ff3330676},  {240, 0x1a71cf2c4bb35242},  {241, 0x30aa8f89cc1dfbfc},
      {1000, 0xcc0ba398fd7a4ba4}, {1024, 0x4ff9a20d33a4a02b}, {100'000, 0x076293147c1f66e3},
  };
  for (const auto& [length, hash] : kExpected)
    EXPECT_EQ(content_hash(ByteView(bytes).first(length), 42), hash) << length << " bytes";
}

TEST(Varint, ReadsBackEveryValueNearAPowerOfTwo) {
  for (int bit = 0; bit < 64; ++bit) {
    for (std::uint64_t off : {std::uint64_t(-1), std::uint64_t(0), std::uint64_t(1)}) {
      const std::uint64_t value = (std::uint64_t{1} << bit) + off;
      Bytes bytes;
      ByteWriter writer(bytes);
      writer.varint(value);
      writer.zigzag(static_cast<std::int64_t>(value));
      ByteReader reader(bytes);
      EXPECT_EQ(reader.varint(), value);
      EXPECT_EQ(reader.zigzag(), static_cast<std::int64_t>(value));
      EXPECT_TRUE(reader.finished());
    }
  }
}

TEST(Varint, RefusesASecondEncodingOfTheSameValue) {
  for (const std::string_view overlong :
       {std::string_view("\x80\x00", 2), std::string_view("\xff\x80\x00", 3)}) {
    ByteReader reader(bytes_of(overlong));
    reader.varint();
    EXPECT_FALSE(reader.ok());
  }
}

TEST(ByteReader, FailsOnceAndForAllAtTheFirstReadThatDoesNotFit) {
  Bytes bytes;
  ByteWriter writer(bytes);
  writer.text("four");
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    ByteReader reader(ByteView(bytes).first(cut));
    EXPECT_EQ(reader.text(), "");
    EXPECT_EQ(reader.fixed<std::uint32_t>(), 0u);
    EXPECT_FALSE(reader.ok());
  }
}

TEST(ErrorCodes, HaveAWordEach) {
  for (int code = 0; code <= static_cast<int>(kLastErrc); ++code) {
    EXPECT_FALSE(word(static_cast<Errc>(code)).empty());
    EXPECT_EQ(code_of(word(static_cast<Errc>(code))), static_cast<Errc>(code));
  }
  EXPECT_EQ(code_of("NO_SUCH_WORD"), std::nullopt);
}

}  // namespace
}  // namespace baton
