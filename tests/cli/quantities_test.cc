// Numbers, times and sizes as people write and read them.
#include "cli/quantities.h"

#include <gtest/gtest.h>

namespace baton::cli {
namespace {

std::string complaint(const auto& read) { return read ? "" : read.error().message; }

TEST(Times, AreReadAndWrittenTheSameWay) {
  for (const auto& [text, ms] :
       std::initializer_list<std::pair<const char*, std::int64_t>>{{"0", 0},
                                                                   {"250ms", 250},
                                                                   {"30s", 30'000},
                                                                   {"1h30m", 5'400'000},
                                                                   {"2d", 172'800'000},
                                                                   {"1m1ms", 60'001}}) {
    EXPECT_EQ(read_time(text)->ms, ms) << text;
    EXPECT_EQ(time_text(milliseconds(ms)), text);
  }
}

TEST(Times, AreRefusedIfTheyMakeNoSenseOrAreOutOfRange) {  // X3
  for (const char* text :
       {"", "s", "30", "30 s", "-1s", "1.5s", "1s2", "soon", "99999999999999999999s", "36501d"})
    EXPECT_FALSE(read_time(text)) << text;
  EXPECT_TRUE(read_time("36500d"));
  EXPECT_EQ(complaint(read_time("2s", seconds(3), minutes(1))), "2s is not from 3s to 1m");
  EXPECT_TRUE(read_time("3s", seconds(3), minutes(1)));
  EXPECT_TRUE(read_time("1m", seconds(3), minutes(1)));
  EXPECT_FALSE(read_time("60001ms", seconds(3), minutes(1)));
}

TEST(Times, AreShortInTables) {
  EXPECT_EQ(rough_text(milliseconds(-5)), "0ms");
  EXPECT_EQ(rough_text(milliseconds(999)), "999ms");
  EXPECT_EQ(rough_text(milliseconds(59'999)), "59s");
  EXPECT_EQ(rough_text(seconds(185)), "3m05s");
  EXPECT_EQ(rough_text(minutes(130)), "2h10m");
  EXPECT_EQ(rough_text(hours(99)), "4d03h");
}

TEST(Sizes, AreReadWithAndWithoutAUnit) {
  EXPECT_EQ(*read_size("4096"), 4096u);
  EXPECT_EQ(*read_size("256KiB"), 256u << 10);
  EXPECT_EQ(*read_size("16TiB"), std::uint64_t{16} << 40);
  for (const char* text : {"", "KiB", "1MB", "1 MiB", "-1", "1KiB2", "99999999TiB"})
    EXPECT_FALSE(read_size(text)) << text;
  EXPECT_EQ(complaint(read_size("2KiB", 1, 2047)), "2KiB is not from 1 to 2047 bytes");
  EXPECT_EQ(size_text(std::uint64_t{64} << 20), "64MiB");
  EXPECT_EQ(size_text(1536 << 10), "1.5MiB");
  EXPECT_EQ(size_text(0), "0B");
}

TEST(Numbers, GoBeforeWhatTheyCount) {
  EXPECT_EQ(counted(0, "task"), "0 tasks");
  EXPECT_EQ(counted(1, "task"), "1 task");
  EXPECT_EQ(counted(2, "task"), "2 tasks");
}

TEST(Numbers, AreWholeAndInRange) {
  EXPECT_EQ(*read_number("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(complaint(read_number("18446744073709551616")),
            "18446744073709551616 is not from 0 to 18446744073709551615");
  EXPECT_EQ(complaint(read_number("-1", 0, 9)), "-1 is not from 0 to 9");
  for (const char* text : {"", "-", "1x", " 1", "0x10", "1.0"})
    EXPECT_EQ(complaint(read_number(text)), "'" + std::string(text) + "' is not a number");
}

}  // namespace
}  // namespace baton::cli
