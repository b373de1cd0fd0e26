// The bytes on disk, pinned.
#include "log/format.h"

#include <gtest/gtest.h>

#include "log/recovery.h"
#include "tests/golden.h"
#include "tests/sim/sim_disk.h"

namespace baton::log {
namespace {

constexpr Options kOptions{.segment_bytes = 20 << 10, .batch_bytes = 2048};

Uuid some_uuid() {
  Uuid uuid;
  for (std::size_t index = 0; index < 16; ++index) uuid.bytes[index] = static_cast<std::byte>(0xa0 + index);
  return uuid;
}

struct Written {
  std::uint16_t type;
  std::int64_t time;
  std::string body;
};
const std::vector<std::vector<Written>> kBatches = {
    {{1, 1'700'000'000'000, "first"}, {2, 1'700'000'000'005, ""}, {0xffff, 1'700'000'000'005, "eight by"}},
    {{3, 1'800'000'000'000, "a clock may jump by years within a batch"}, {3, 9'000'000'000'000, "like this"}},
    {{4, 9'000'000'000'000, "last of the first segment"}},
    {{5, 9'000'000'000'001, "first of the second"}},
};

TEST(Format, WritesTheSameBytesAsEver) {
  sim::SimDisk disk;
  auto opened = open_log(disk, {.log = kOptions, .uuid_if_new = some_uuid(), .epoch_at_least = 5},
                         [](const Record&) { return Status(); });
  ASSERT_TRUE(opened);
  for (const auto& batch : kBatches) {
    for (const Written& record : batch) {
      opened->writer->append(record.type, Instant{record.time}, bytes_of(record.body));
    }
    auto flush = opened->writer->begin_flush();
    ASSERT_TRUE(opened->writer->perform(*flush));
    opened->writer->finish(std::move(*flush));
  }
  ASSERT_TRUE(opened->writer->close());
  expect_golden("segment-1-v1.hex", disk.content(segment_path(1)));
  expect_golden("segment-2-v1.hex", disk.content(segment_path(7)));
  expect_golden("control-v1.hex", disk.content("CONTROL"));
}

TEST(Format, ReadsWhatVersionOneWrote) {
  sim::SimDisk disk;
  ASSERT_TRUE(disk.make_directory("wal"));
  ASSERT_TRUE(disk.sync_directory(""));
  disk.set_content(segment_path(1), from_hex_dump(golden("segment-1-v1.hex")));
  disk.set_content(segment_path(7), from_hex_dump(golden("segment-2-v1.hex")));
  disk.set_content("CONTROL", from_hex_dump(golden("control-v1.hex")));
  std::vector<Written> expected;
  for (const auto& batch : kBatches) expected.insert(expected.end(), batch.begin(), batch.end());
  std::size_t seen = 0;
  auto opened = open_log(disk, {.log = kOptions}, [&](const Record& record) -> Status {
    EXPECT_EQ(record.place.lsn, seen + 1);
    EXPECT_EQ(record.epoch, 5u);
    EXPECT_EQ(record.type, expected.at(seen).type);
    EXPECT_EQ(record.time.ms, expected.at(seen).time);
    EXPECT_EQ(text_of(record.body), expected.at(seen).body);
    ++seen;
    return {};
  });
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(seen, expected.size());
  EXPECT_TRUE(opened->was_clean);
}

TEST(Format, NamesSegmentsByTheirFirstRecord) {
  EXPECT_EQ(segment_path(0x1234abcd), "wal/000000001234abcd.seg");
  EXPECT_EQ(segment_first_lsn("000000001234abcd.seg"), Lsn{0x1234abcd});
  for (const char* other : {"next.tmp", "000000001234ABCD.seg", "1.seg", "000000001234abcd.seg.bak", ""}) {
    EXPECT_FALSE(segment_first_lsn(other)) << other;
  }
}

TEST(Format, TellsZerosFromAnySingleOne) {
  for (const std::size_t length : {0u, 1u, 2u, 64u, 513u}) {
    Bytes bytes(length);
    EXPECT_TRUE(all_zero(bytes));
    for (std::byte& byte : bytes) {
      byte = std::byte{1};
      EXPECT_FALSE(all_zero(bytes));
      byte = std::byte{0};
    }
  }
}

// A client chooses payloads. None may look like a batch of this log, or a power cut could be made to look
// like damage.
TEST(Format, DoesNotTakeABatchOfAnotherClusterForOne) {
  Bytes batch(kBatchHeaderBytes);
  seal_batch(batch, {.first = 1, .durable = 99, .epoch = 1, .count = 1}, some_uuid());
  EXPECT_TRUE(decode_batch_header(batch, some_uuid()));
  EXPECT_FALSE(decode_batch_header(batch, Uuid{}));
}

}  // namespace
}  // namespace baton::log
