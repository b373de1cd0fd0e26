#include "log/recovery.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "log/backup.h"
#include "tests/sim/damage_check.h"
#include "tests/sim/sim_disk.h"

namespace baton::log {
namespace {

using sim::Ending;
using sim::SimDisk;
using sim::small_log;
using sim::SmallLog;

constexpr Options kOptions = sim::kSmallLogOptions;

Result<OpenedLog> open(Disk& disk, Lsn needed_from = 1, std::vector<Lsn>* seen = nullptr) {
  return open_log(disk, {.log = kOptions, .needed_from = needed_from}, [&](const Record& record) -> Status {
    if (seen) seen->push_back(record.place.lsn);
    return {};
  });
}

Error refusal(Disk& disk, Lsn needed_from = 1) {
  auto opened = open(disk, needed_from);
  EXPECT_FALSE(opened) << "the log was opened";
  return opened ? Error{} : opened.error();
}

void expect_names(const Error& error, std::initializer_list<std::string_view> words) {
  EXPECT_EQ(error.code, Errc::corrupt) << error.message;
  for (const std::string_view word : words) {
    EXPECT_NE(error.message.find(word), std::string::npos) << word << " is not in: " << error.message;
  }
}

void flush(LogWriter& writer) {
  auto flush = writer.begin_flush();
  ASSERT_TRUE(flush);
  ASSERT_TRUE(writer.perform(*flush));
  writer.finish(std::move(*flush));
}

TEST(Recovery, OfAnEmptyDirectoryMakesALog) {
  SimDisk disk;
  Uuid uuid;
  uuid.bytes.fill(std::byte{9});
  auto opened =
      open_log(disk, {.log = kOptions, .uuid_if_new = uuid}, [](const Record&) { return Status(); });
  ASSERT_TRUE(opened);
  EXPECT_TRUE(opened->created);
  EXPECT_EQ(opened->writer->last(), 0u);
  EXPECT_EQ(opened->writer->epoch(), 1u);
  EXPECT_EQ(read_control(disk)->value().uuid, uuid);
}

TEST(Recovery, StartsANewSegmentWithALargerEpoch) {
  SmallLog log = small_log(Ending::killed);
  for (std::uint32_t restart = 2; restart < 5; ++restart) {
    auto opened = open(log.disk);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->writer->epoch(), restart);
    const std::size_t segments = opened->writer->segments().list().size();
    opened->writer->append(1, opened->end.time, bytes_of("one more"));
    flush(*opened->writer);
    EXPECT_EQ(opened->writer->segments().list().size(), segments + 1);
  }
  auto opened =
      open_log(log.disk, {.log = kOptions, .epoch_at_least = 70}, [](const Record&) { return Status(); });
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->writer->epoch(), 70u);
}

TEST(Recovery, ReplaysFromTheRecordAfterTheSnapshot) {
  SmallLog log = small_log(Ending::killed);
  const Lsn last = log.bodies.size();
  for (Lsn needed_from = 1; needed_from <= last + 1; ++needed_from) {
    std::vector<Lsn> seen;
    SimDisk copy(log.disk);
    ASSERT_TRUE(open(copy, needed_from, &seen));
    ASSERT_EQ(seen.size(), last + 1 - needed_from);
    if (!seen.empty()) {
      EXPECT_EQ(seen.front(), needed_from);
    }
  }
}

TEST(Recovery, RefusesALogThatEndsBeforeTheSnapshot) {
  SmallLog log = small_log(Ending::killed);
  expect_names(refusal(log.disk, log.bodies.size() + 2), {"acknowledged", "record"});
}

TEST(Recovery, NamesTheMissingSegmentInTheMiddle) {
  SmallLog log = small_log(Ending::closed);
  ASSERT_TRUE(log.disk.remove(log.segments[1]));
  expect_names(refusal(log.disk), {log.segments[1], "missing", "records 7 to 12", "backup"});
  EXPECT_EQ(verify_log(log.disk)->problem.kind, ProblemKind::missing_segment);
}

TEST(Recovery, NamesTheMissingSegmentAtTheBeginning) {
  SmallLog log = small_log(Ending::closed);
  ASSERT_TRUE(log.disk.remove(log.segments[0]));
  expect_names(refusal(log.disk), {log.segments[0], "records 1 to 6"});
}

TEST(Recovery, RefusesAClosedLogWithoutItsLastSegment) {
  SmallLog log = small_log(Ending::closed);
  ASSERT_TRUE(log.disk.remove(log.segments[2]));
  expect_names(refusal(log.disk), {log.segments[1], "acknowledged"});
}

TEST(Recovery, RefusesSegmentsThatWereAllRemoved) {
  SmallLog log = small_log(Ending::closed);
  for (const std::string& path : log.segments) ASSERT_TRUE(log.disk.remove(path));
  expect_names(refusal(log.disk), {"acknowledged"});
}

TEST(Recovery, NeedsNoSegmentsThatASnapshotCovers) {
  SmallLog log = small_log(Ending::killed);
  ASSERT_TRUE(log.disk.remove(log.segments[1]));  // from the middle: the older one still holds payloads
  auto opened = open(log.disk, 13);
  ASSERT_TRUE(opened) << opened.error().message;
  const auto segments = opened->writer->segments().list();
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0], (SegmentInfo{.first = 1, .last = 12, .bytes = kOptions.segment_bytes}));
  EXPECT_EQ(segments[1].last, log.bodies.size());
  const auto report = verify_log(log.disk, 13);
  EXPECT_EQ(report->problem.kind, ProblemKind::none) << report->problem.message;
  EXPECT_EQ(report->records, log.bodies.size() - 6);
}

TEST(Recovery, RefusesSwappedSegments) {
  SmallLog log = small_log(Ending::closed);
  const Bytes first = log.disk.content(log.segments[0]);
  const Bytes second = log.disk.content(log.segments[1]);
  log.disk.set_content(log.segments[0], second);
  log.disk.set_content(log.segments[1], first);
  expect_names(refusal(log.disk), {log.segments[0], "copied or renamed"});
}

TEST(Recovery, RefusesACopyOfASegmentUnderAnotherName) {
  SmallLog log = small_log(Ending::closed);
  log.disk.set_content(segment_path(99), log.disk.content(log.segments[1]));
  expect_names(refusal(log.disk), {segment_path(99), "copied or renamed"});
}

// Two clusters that went the same way up to the uuid: nothing else tells their segments apart.
TEST(Recovery, RefusesASegmentOfAnotherCluster) {
  SmallLog log = small_log(Ending::closed);
  Bytes bytes = log.disk.content(log.segments[1]);
  SegmentHeader header = *decode_segment_header(bytes);
  header.uuid.bytes[3] = std::byte{1};
  std::ranges::copy(encode(header), bytes.begin());
  log.disk.set_content(log.segments[1], bytes);
  expect_names(refusal(log.disk), {log.segments[1], "another cluster"});
}

TEST(Recovery, RefusesASegmentThatItsSuccessorDoesNotContinue) {
  SmallLog log = small_log(Ending::closed);
  for (std::uint64_t PreviousLink::* field : {&PreviousLink::end, &PreviousLink::chain}) {
    SimDisk disk(log.disk);
    Bytes bytes = disk.content(log.segments[2]);
    SegmentHeader header = *decode_segment_header(bytes);
    header.previous.*field -= 4096;
    std::ranges::copy(encode(header), bytes.begin());
    disk.set_content(log.segments[2], bytes);
    EXPECT_EQ(refusal(disk).code, Errc::corrupt);
  }
}

// Every checksum is right, but the batches that follow were written after another one.
TEST(Recovery, RefusesABatchThatWasExchangedForASoundOne) {
  SmallLog log = small_log(Ending::killed);
  const std::string& path = log.segments.back();
  Bytes bytes = log.disk.content(path);
  const std::span<std::byte> batch = std::span(bytes).subspan(kSegmentHeaderBytes);
  BatchHeader header = *decode_batch_header(batch, Uuid{});
  const std::span<std::byte> record = batch.subspan(kBatchHeaderBytes);
  const RecordHeader first = *decode_record_header(record, header.first);
  record[kRecordHeaderBytes] ^= std::byte{1};
  seal_records(record.first(stored_bytes(first.body_bytes)), header.first);
  header.chain = decode_segment_header(bytes)->previous.chain;
  seal_batch(batch, header, Uuid{});
  log.disk.set_content(path, bytes);
  expect_names(refusal(log.disk), {path, "offset 8192", "chain"});
}

TEST(Recovery, RefusesBytesBehindTheEndOfAClosedLog) {
  SmallLog log = small_log(Ending::closed);
  log.disk.flip_bit(log.segments.back(), kOptions.segment_bytes - 1, 0);
  expect_names(refusal(log.disk), {log.segments.back(), "closed cleanly"});
}

TEST(Recovery, RefusesALogWithoutControl) {
  SmallLog log = small_log(Ending::closed);
  ASSERT_TRUE(log.disk.remove("CONTROL"));
  expect_names(refusal(log.disk), {"CONTROL", "missing"});
}

TEST(Recovery, SaysWhichVersionANewerLogHas) {
  SmallLog log = small_log(Ending::closed);
  struct Newer {
    std::size_t offset;
    std::byte value;
    bool accepted;
  };
  // Major, minor, incompatible and compatible feature bits. A newer minor changes nothing for us.
  for (const Newer newer : {Newer{8, std::byte{2}, false}, Newer{10, std::byte{9}, true},
                            Newer{12, std::byte{1}, false}, Newer{16, std::byte{1}, true}}) {
    SimDisk disk(log.disk);
    Bytes bytes = disk.content(log.segments[1]);
    bytes[newer.offset] = newer.value;
    store(bytes.data() + 508, crc32c(ByteView(bytes).first(508)));
    disk.set_content(log.segments[1], bytes);
    auto opened = open(disk);
    EXPECT_EQ(opened.has_value(), newer.accepted);
    if (!opened) {
      EXPECT_EQ(opened.error().code, Errc::unsupported_version) << opened.error().message;
    }
  }
}

TEST(Recovery, ChangesNothingWhenItRefuses) {
  SmallLog log = small_log(Ending::killed);
  log.disk.flip_bit(log.segments[1], 4096 + 70, 3);
  const std::uint64_t pending = log.disk.pending();
  const auto files = log.disk.list("wal").value();
  refusal(log.disk);
  EXPECT_EQ(log.disk.pending(), pending);
  EXPECT_EQ(log.disk.list("wal").value(), files);
  EXPECT_FALSE(log.disk.exists("torn"));
}

TEST(Recovery, KeepsTheBytesItDrops) {
  SmallLog log = small_log(Ending::killed);
  const std::string& path = log.segments.back();
  Bytes bytes = log.disk.content(path);
  const std::size_t batch = kSegmentHeaderBytes + 2 * kBlockBytes;
  std::ranges::fill(std::span(bytes).subspan(batch + 512, 512), std::byte{0});
  log.disk.set_content(path, bytes);
  auto opened =
      open_log(log.disk, {.log = kOptions, .epoch_at_least = 70}, [](const Record&) { return Status(); });
  ASSERT_TRUE(opened) << opened.error().message;
  ASSERT_TRUE(opened->dropped);
  EXPECT_EQ(opened->dropped->first, log.before_last_batch + 1);
  EXPECT_EQ(opened->end.tail.last, log.before_last_batch);
  const Bytes kept = log.disk.content(fmt::format("torn/{:016x}-46.bin", log.before_last_batch + 1));
  ASSERT_GT(kept.size(), 2000u);
  EXPECT_TRUE(std::ranges::equal(kept, std::span(bytes).subspan(batch, kept.size())));
}

TEST(Recovery, HandsOnAnErrorOfTheVisitor) {
  SmallLog log = small_log(Ending::killed);
  auto opened = open_log(log.disk, {.log = kOptions},
                         [](const Record&) -> Status { return failure(Errc::wrong_state, "no"); });
  EXPECT_EQ(opened.error().code, Errc::wrong_state);
}

TEST(Recovery, TellsAReadErrorFromDamage) {
  SmallLog log = small_log(Ending::killed);
  log.disk.fail_reads_of(log.segments[1]);
  EXPECT_EQ(refusal(log.disk).code, Errc::io_failed);
}

TEST(Verify, CountsWhatIsThere) {
  SmallLog log = small_log(Ending::closed);
  const auto report = verify_log(log.disk);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->problem.kind, ProblemKind::none) << report->problem.message;
  EXPECT_EQ(report->segments, 3u);
  EXPECT_EQ(report->batches, 9u);
  EXPECT_EQ(report->records, 19u);
  EXPECT_EQ(report->first, 1u);
  EXPECT_EQ(report->last, 19u);
  EXPECT_EQ(report->last_time, Instant{18});
  EXPECT_TRUE(report->clean);
}

// Nothing says where a segment ends whose successor was removed. All the same, not every place at which it
// cannot be read is its end.
TEST(Verify, FindsDamageInASegmentWhoseSuccessorHasGone) {
  SmallLog log = small_log(Ending::closed);
  ASSERT_TRUE(log.disk.remove(log.segments[1]));
  ASSERT_EQ(verify_log(log.disk, 13)->problem.kind, ProblemKind::none);
  const std::size_t length = log.disk.content(log.segments[0]).size();
  for (std::size_t offset = 0; offset < length; offset += 7) {
    SimDisk disk(log.disk);
    disk.flip_bit(log.segments[0], offset, offset % 8);
    const auto report = verify_log(disk, 13);
    ASSERT_TRUE(report);
    EXPECT_EQ(report->problem.kind, ProblemKind::corrupt) << offset;
    SimDisk copy;
    EXPECT_EQ(copy_log(disk, copy, 19).error().code, Errc::corrupt) << offset;
    EXPECT_FALSE(copy.exists("CONTROL"));
  }
  SimDisk copy;
  ASSERT_TRUE(copy_log(log.disk, copy, 19));
  EXPECT_EQ(verify_log(copy, 13)->records, verify_log(log.disk, 13)->records);
}

// A torn tail that a start once gave up still lies there when the segment of that start has gone.
TEST(Verify, TakesATornTailForWhatItIsWhenTheSegmentBehindItHasGone) {
  SmallLog log = small_log(Ending::killed);
  Bytes content = log.disk.content(log.segments[2]);
  std::size_t used = content.size();
  while (content[used - 1] == std::byte{0}) --used;
  const std::size_t torn = (used - 1) / kBlockBytes * kBlockBytes + kBlockBytes;
  ASSERT_LT(torn + kBlockBytes, content.size() + 1);
  content[torn + kSectorBytes] = std::byte{1};
  log.disk.set_content(log.segments[2], content);
  std::string behind;
  for (int start = 0; start < 2; ++start) {
    auto opened = open(log.disk);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->dropped.has_value(), start == 0);
    opened->writer->append(1, opened->end.time, bytes_of("goes on"));
    flush(*opened->writer);
    if (start == 0) behind = segment_path(opened->writer->last());
  }
  ASSERT_TRUE(log.disk.remove(behind));
  const auto report = verify_log(log.disk, 21);
  EXPECT_EQ(report->problem.kind, ProblemKind::none) << report->problem.message;
}

TEST(Backup, IsALogThatEndsAtTheGivenRecord) {
  SmallLog log = small_log(Ending::killed);
  for (const Lsn durable : {Lsn{2}, Lsn{6}, Lsn{8}, Lsn{14}, Lsn{16}, Lsn{19}}) {
    SimDisk copy;
    auto copied = copy_log(log.disk, copy, durable);
    ASSERT_TRUE(copied) << copied.error().message;
    EXPECT_EQ(copied->last, durable);
    std::vector<Lsn> seen;
    auto opened = open(copy, 1, &seen);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE(opened->was_clean);
    EXPECT_EQ(seen.size(), durable);
    opened->writer->append(1, opened->end.time, bytes_of("goes on"));
    flush(*opened->writer);
    EXPECT_EQ(verify_log(copy)->records, durable + 1);
  }
}

TEST(Backup, RefusesWhatItCannotCopyWhole) {
  SmallLog log = small_log(Ending::killed);
  SimDisk target;
  EXPECT_EQ(copy_log(log.disk, target, 3).error().code, Errc::invalid_request);  // inside a batch
  SimDisk beyond;
  EXPECT_EQ(copy_log(log.disk, beyond, 20).error().code, Errc::corrupt);
  EXPECT_EQ(copy_log(log.disk, log.disk, 19).error().code, Errc::conflict);
  log.disk.flip_bit(log.segments[1], 4096 + 100, 1);
  SimDisk damaged;
  EXPECT_EQ(copy_log(log.disk, damaged, 19).error().code, Errc::corrupt);
  EXPECT_FALSE(damaged.exists("CONTROL"));
}

}  // namespace
}  // namespace baton::log
