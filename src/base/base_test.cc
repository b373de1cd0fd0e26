#include <gtest/gtest.h>

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
