#include "log/writer.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/check.h"
#include "log/recovery.h"
#include "tests/sim/sim_disk.h"

namespace baton::log {
namespace {

using sim::SimDisk;

constexpr Options kSmall{.segment_bytes = 20 << 10, .batch_bytes = 2048};

std::unique_ptr<LogWriter> writer_on(Disk& disk, const Options& options = kSmall) {
  auto opened = open_log(disk, {.log = options}, [](const Record&) { return Status(); });
  EXPECT_TRUE(opened.has_value()) << opened.error().message;
  return std::move(opened->writer);
}

Status flush(LogWriter& writer) {
  auto flush = writer.begin_flush();
  if (!flush) return {};
  auto done = writer.perform(*flush);
  if (done) writer.finish(std::move(*flush));
  return done;
}

// Until there are so many segments; the place of the first record, which holds "payload" as all of them do.
Place fill(LogWriter& writer, std::size_t segments) {
  Place first;
  while (writer.segments().list().size() < segments) {
    const Place place = writer.append(1, Instant{0}, bytes_of("payload"));
    if (first.lsn == 0) first = place;
    BATON_CHECK(flush(writer));
  }
  return first;
}

LogReport report_on(Disk& disk) { return verify_log(disk).value(); }

TEST(Batch, TakesARecordOfTheLargestSize) {
  SimDisk disk;
  auto writer = writer_on(disk, {});
  const Bytes largest(kRecordBytesMax, std::byte{7});
  writer->append(1, Instant{0}, bytes_of("before it"));
  ASSERT_TRUE(writer->has_room());
  const Place place = writer->append(1, Instant{0}, largest);
  EXPECT_FALSE(writer->has_room());
  ASSERT_TRUE(flush(*writer));
  EXPECT_EQ(writer->segments().read(place.lsn, place.offset, largest.size()).value(), largest);
  EXPECT_EQ(report_on(disk).records, 2u);
}

TEST(BatchDeathTest, DoesNotTakeARecordOneByteLarger) {
  SimDisk disk;
  auto writer = writer_on(disk);
  const Bytes too_large(writer->record_bytes_max() + 1);
  EXPECT_DEATH(writer->append(1, Instant{0}, too_large), "record_bytes_max");
}

TEST(BatchDeathTest, DoesNotTakeARecordFromThePast) {
  SimDisk disk;
  auto writer = writer_on(disk);
  writer->append(1, Instant{5}, {});
  EXPECT_DEATH(writer->append(1, Instant{4}, {}), "last_time_");
}

TEST(Batch, IsFullAtItsLimitOfRecords) {
  SimDisk disk;
  auto writer = writer_on(disk, {});
  for (std::size_t count = 0; count < kBatchRecordsMax; ++count) {
    ASSERT_TRUE(writer->has_room());
    writer->append(1, Instant{0}, {});
  }
  EXPECT_FALSE(writer->has_room());
  ASSERT_TRUE(flush(*writer));
  EXPECT_TRUE(writer->has_room());
  const LogReport report = report_on(disk);
  EXPECT_EQ(report.batches, 1u);
  EXPECT_EQ(report.records, kBatchRecordsMax);
}

TEST(Batch, FillsWhileThePreviousOneIsInFlight) {
  SimDisk disk;
  auto writer = writer_on(disk);
  writer->append(1, Instant{0}, bytes_of("a"));
  auto first = writer->begin_flush();
  ASSERT_TRUE(first);
  writer->append(1, Instant{0}, bytes_of("b"));
  EXPECT_FALSE(writer->begin_flush()) << "one flush at a time";
  ASSERT_TRUE(writer->perform(*first));
  EXPECT_EQ(writer->durable(), 0u);
  writer->finish(std::move(*first));
  EXPECT_EQ(writer->durable(), 1u);
  ASSERT_TRUE(flush(*writer));
  EXPECT_EQ(writer->durable(), 2u);
}

TEST(Batch, WithNothingInItIsNotFlushed) {
  SimDisk disk;
  EXPECT_FALSE(writer_on(disk)->begin_flush());
}

TEST(Flush, StaysInFlightForEverAfterAFailure) {
  SimDisk disk;
  auto writer = writer_on(disk);
  writer->append(1, Instant{0}, bytes_of("acknowledged"));
  ASSERT_TRUE(flush(*writer));
  disk.fail_sync(disk.syncs() + 1, sim::SyncFault::keeps_cache);
  writer->append(1, Instant{0}, bytes_of("unknown"));
  EXPECT_FALSE(flush(*writer));
  writer->append(1, Instant{0}, bytes_of("never"));
  EXPECT_FALSE(writer->begin_flush());
  EXPECT_EQ(writer->durable(), 1u);
}

TEST(Rotation, WaitsForNoOneWhenItsFileIsReady) {
  SimDisk disk;
  auto writer = writer_on(disk);
  ASSERT_TRUE(writer->successor().prepare());
  EXPECT_TRUE(disk.exists(kSuccessorPath));
  const std::uint64_t before = disk.operations();
  writer->append(1, Instant{0}, bytes_of("x"));
  ASSERT_TRUE(flush(*writer));
  EXPECT_EQ(disk.operations() - before, 4u);  // header and batch, sync, rename, directory
  EXPECT_FALSE(disk.exists(kSuccessorPath));
}

TEST(FullDisk, IsReportedBeforeItIsAnError) {
  SimDisk disk;
  auto writer = writer_on(disk);
  disk.set_capacity(2 * kSmall.segment_bytes);
  writer->append(1, Instant{0}, bytes_of("x"));
  ASSERT_TRUE(flush(*writer));
  auto prepared = writer->successor().prepare();
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code, Errc::no_space);
  EXPECT_TRUE(writer->successor().last_attempt_failed());

  for (int batch = 0; batch < 2; ++batch) {  // still room in this segment
    writer->append(1, Instant{0}, bytes_of("y"));
    ASSERT_TRUE(flush(*writer));
  }
  disk.set_capacity(4 * kSmall.segment_bytes);
  ASSERT_TRUE(writer->successor().prepare());
  EXPECT_FALSE(writer->successor().last_attempt_failed());
  writer->append(1, Instant{0}, bytes_of("z"));
  EXPECT_TRUE(flush(*writer));
}

TEST(FullDisk, FailsTheFlushThatNeedsANewSegment) {
  SimDisk disk;
  auto writer = writer_on(disk);
  disk.set_capacity(kSmall.segment_bytes / 2);
  writer->append(1, Instant{0}, bytes_of("x"));
  auto done = flush(*writer);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::no_space);
}

TEST(Segments, KeepTheNewestAndForgetARemovedOne) {
  SimDisk disk;
  auto writer = writer_on(disk);
  const Place first = fill(*writer, 3);
  EXPECT_EQ(text_of(writer->segments().read(first.lsn, first.offset, 7).value()), "payload");
  const auto segments = writer->segments().list();
  EXPECT_EQ(writer->segments().remove(segments[2].first).error().code, Errc::wrong_state);
  EXPECT_EQ(writer->segments().remove(segments[0].first + 1).error().code, Errc::not_found);
  ASSERT_TRUE(writer->segments().remove(segments[0].first));
  EXPECT_EQ(writer->segments().list().size(), 2u);
  EXPECT_EQ(writer->segments().read(first.lsn, first.offset, 7).error().code, Errc::not_found);
}

TEST(Segments, ReadAtOnceOnlyFromFilesThatAreOpen) {
  SimDisk disk;
  auto writer = writer_on(disk);
  const Place first = fill(*writer, 2);
  Segments& segments = writer->segments();
  EXPECT_FALSE(segments.read_at_once(first.lsn, first.offset, 7)) << "opening it may take long";
  ASSERT_TRUE(segments.read(first.lsn, first.offset, 7));
  EXPECT_EQ(text_of(segments.read_at_once(first.lsn, first.offset, 7).value()), "payload");
  EXPECT_FALSE(segments.read_at_once(writer->last() + 1, first.offset, 7)) << "nor what is not durable yet";
  ASSERT_TRUE(segments.remove(segments.list().front().first));
  EXPECT_FALSE(segments.read_at_once(first.lsn, first.offset, 7));
}

// Rotations and readers need the list, and removing a large file takes tens of milliseconds.
TEST(Segments, HoldNobodyUpWhileAFileIsRemoved) {
  SimDisk disk;
  auto writer = writer_on(disk);
  fill(*writer, 3);
  std::promise<std::size_t> seen;
  std::thread other;
  bool held_up = false;
  disk.before_operation = [&] {
    other = std::thread([&] { seen.set_value(writer->segments().list().size()); });
    held_up = seen.get_future().wait_for(std::chrono::seconds(5)) != std::future_status::ready;
  };
  EXPECT_TRUE(writer->segments().remove(writer->segments().list().front().first));
  disk.before_operation = {};
  ASSERT_TRUE(other.joinable());
  other.join();
  EXPECT_FALSE(held_up);
  EXPECT_EQ(writer->segments().list().size(), 2u);
}

TEST(Segments, StayWhenTheirFileCannotBeRemoved) {
  SimDisk disk;
  auto writer = writer_on(disk);
  Place first;
  while (writer->segments().list().size() < 2) {
    const Place place = writer->append(1, Instant{0}, bytes_of("payload"));
    if (first.lsn == 0) first = place;
    ASSERT_TRUE(flush(*writer));
  }
  const auto segments = writer->segments().list();
  disk.fail_operation(disk.operations() + 1);
  EXPECT_FALSE(writer->segments().remove(segments[0].first));
  EXPECT_EQ(writer->segments().list(), segments);
  EXPECT_EQ(text_of(writer->segments().read(first.lsn, first.offset, 7).value()), "payload");
  EXPECT_TRUE(writer->segments().remove(segments[0].first));
}

TEST(Segments, ReopenTheirFilesWhenThereAreMoreThanAreKeptOpen) {
  SimDisk disk;
  auto writer = writer_on(disk);
  std::vector<Place> places;
  while (writer->segments().list().size() < 3 * kOpenSegmentsMax) {
    places.push_back(writer->append(1, Instant{0}, bytes_of("payload")));
    ASSERT_TRUE(flush(*writer));
  }
  for (int round = 0; round < 2; ++round) {
    for (const Place& place : places) {
      ASSERT_EQ(text_of(writer->segments().read(place.lsn, place.offset, 7).value()), "payload");
    }
  }
}

TEST(Options, HaveToFitTogether) {
  EXPECT_TRUE(is_reasonable({}));
  EXPECT_TRUE(is_reasonable(kSmall));
  EXPECT_TRUE(is_reasonable({.segment_bytes = 4096 + batch_extent_max(kSmall), .batch_bytes = 2048}));
  EXPECT_FALSE(is_reasonable({.segment_bytes = batch_extent_max(kSmall), .batch_bytes = 2048}));
  EXPECT_FALSE(is_reasonable({.segment_bytes = (20 << 10) + 512, .batch_bytes = 2048}));
  EXPECT_FALSE(is_reasonable({.segment_bytes = 20 << 10, .batch_bytes = 0}));
  SimDisk disk;
  auto opened = open_log(disk, {.log = {.segment_bytes = 8192}}, [](const Record&) { return Status(); });
  EXPECT_EQ(opened.error().code, Errc::invalid_request);
}

}  // namespace
}  // namespace baton::log
