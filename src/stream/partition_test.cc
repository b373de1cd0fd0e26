#include "stream/partition.h"

#include <gtest/gtest.h>

namespace baton::stream {
namespace {

StreamId stream(std::string_view text) { return {*parse_uuid(text)}; }

// S6
TEST(Partition, IsThePublishedOne) {
  struct Vector {
    std::string_view id;
    std::uint64_t hash;
    std::int32_t of_ten_thousand;
  };
  for (const Vector& vector :
       {Vector{"00000000-0000-0000-0000-000000000001", 0x7c3ccd10bb7ec37b, 1211},
        Vector{"01890a5d-ac96-774b-bcce-b302099a8057", 0x96f8b57a1c6de831, 5569},  // the highest bit is set
        Vector{"ffffffff-ffff-ffff-ffff-ffffffffffff", 0x5ac6a5945f165009, 4777}}) {
    EXPECT_EQ(partition_hash(stream(vector.id)), vector.hash) << vector.id;
    EXPECT_EQ(partition_of(stream(vector.id), 10'000), vector.of_ten_thousand) << vector.id;
    EXPECT_EQ(partition_of(stream(vector.id), 1), 0);
  }
}

TEST(Uuid, IsReadAsItIsWritten) {
  const std::string text = "01890a5d-ac96-774b-bcce-b302099a8057";
  EXPECT_EQ(to_text(*parse_uuid(text)), text);
  EXPECT_EQ(parse_uuid("01890A5D-AC96-774B-BCCE-B302099A8057"), parse_uuid(text));
  EXPECT_TRUE(parse_uuid("00000000-0000-0000-0000-000000000000")->is_nil());
  for (const char* bad :
       {"", "01890a5d", "01890a5dac96774bbcceb302099a8057", "01890a5d-ac96-774b-bcce-b302099a805g",
        "01890a5d+ac96-774b-bcce-b302099a8057", "01890a5d-ac96-774b-bcce-b302099a8057 "}) {
    EXPECT_FALSE(parse_uuid(bad)) << bad;
  }
}

}  // namespace
}  // namespace baton::stream
