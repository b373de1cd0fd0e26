#include "log/writer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/mutant.h"

namespace baton::log {

LogWriter::LogWriter(Disk& disk, const Options& options, const Uuid& uuid, const LogEnd& end,
                     std::uint32_t epoch, std::vector<SegmentInfo> segments)
    : disk_(disk),
      options_(options),
      uuid_(uuid),
      epoch_(epoch),
      segments_(disk, std::move(segments)),
      successor_(disk, options.segment_bytes),
      last_(end.tail.last),
      durable_(end.tail.last),
      last_time_(end.time),
      next_offset_(options.segment_bytes),
      tail_(end.tail),
      number_(end.number) {
  BATON_CHECK(is_reasonable(options));
  BATON_CHECK(epoch > end.epoch);
  if (mutant(Mutant::m7_reuse_the_old_tail) && end.tail.last != 0) {
    next_offset_ = end.tail.end;
    file_ = std::move(disk.open(segment_path(end.tail.first)).value());
  }
}

bool LogWriter::has_room() const {
  return filling_.header.count < kBatchRecordsMax && filling_.header.body_bytes < options_.batch_bytes;
}

void LogWriter::open_batch(Instant time) {
  filling_.bytes = std::move(spare_);
  filling_.bytes.clear();
  filling_.bytes.resize(kBatchHeaderBytes);
  filling_.header = {.first = last_ + 1, .time = time, .epoch = epoch_};
  // Rotated already when a largest batch might not fit, so that the place of every record is known at once.
  filling_.opens_segment = std::exchange(ends_segment_, false) ||
                           next_offset_ + batch_extent_max(options_) > options_.segment_bytes;
  filling_.offset = filling_.opens_segment ? kSegmentHeaderBytes : next_offset_;
}

bool LogWriter::end_segment() {
  const bool is_under_way = in_flight_ || filling_.header.count > 0;
  if (is_under_way || left_in_segment() == 0 || !successor_.ready()) return false;
  ends_segment_ = true;
  return true;
}

Place LogWriter::append(std::uint16_t type, Instant time, ByteView body) {
  BATON_CHECK(has_room());
  BATON_CHECK(body.size() <= record_bytes_max());
  BATON_CHECK(time >= last_time_ || last_ == 0);
  if (filling_.header.count == 0) open_batch(time);

  const std::size_t at = filling_.bytes.size();
  const std::size_t stored = stored_bytes(body.size());
  filling_.bytes.resize(at + kRecordHeaderBytes);
  filling_.bytes.insert(filling_.bytes.end(), body.begin(), body.end());
  filling_.bytes.resize(at + stored);
  const RecordHeader header{
      .body_bytes = static_cast<std::uint32_t>(body.size()), .type = type, .time = time};
  encode(header, std::span(filling_.bytes).subspan(at));
  ++last_;
  ++filling_.header.count;
  filling_.header.body_bytes += static_cast<std::uint32_t>(stored);
  last_time_ = time;
  return {.lsn = last_, .offset = static_cast<std::uint32_t>(filling_.offset + at + kRecordHeaderBytes)};
}

std::optional<Flush> LogWriter::begin_flush() {
  if (in_flight_ || filling_.header.count == 0) return std::nullopt;
  in_flight_ = true;
  filling_.header.durable = durable_;
  filling_.last = last_;
  next_offset_ = filling_.offset + padded_batch(filling_.bytes.size());
  Flush flush = std::move(filling_);
  filling_ = {};
  return flush;
}

Status LogWriter::perform(Flush& flush) {
  // Here and not as each is appended: this may be another thread than the one that decides.
  seal_records(std::span(flush.bytes).subspan(kBatchHeaderBytes), flush.header.first);
  flush.header.chain = tail_.chain;
  const std::uint64_t chain = seal_batch(flush.bytes, flush.header, uuid_);
  flush.bytes.resize(padded_batch(flush.bytes.size()));

  Status done = flush.opens_segment ? start_segment(flush) : write_durably(flush.offset, flush.bytes);
  if (!done) return done;
  if (flush.opens_segment) {
    tail_.first = flush.header.first;
    segments_.add({.first = flush.header.first, .last = flush.last, .bytes = options_.segment_bytes});
  } else {
    segments_.extend_newest(flush.last);
  }
  tail_.last = flush.last;
  tail_.end = flush.offset + flush.bytes.size();
  tail_.chain = chain;
  return {};
}

// A failure is final. After a failed sync the kernel may drop the dirty pages and report the next sync as
// clean, so a retry that succeeds proves nothing.
Status LogWriter::write_durably(std::uint64_t offset, ByteView bytes) {
  Status done = file_->write_durably(offset, bytes);
  if (!done && mutant(Mutant::m3_retry_sync_after_error)) done = file_->sync();
  if (!done && mutant(Mutant::m2_ignore_sync_error)) done = {};
  return done;
}

// The file gets its name only when header and first batch are on the medium. So whatever carries a
// segment's name begins with a whole batch, and damage there is never the trace of a crash.
Status LogWriter::start_segment(const Flush& flush) {
  auto taken = successor_.take();
  if (!taken) return std::unexpected(taken.error());
  file_ = std::move(*taken);
  const SegmentHeader header{
      .epoch = epoch_,
      .uuid = uuid_,
      .number = ++number_,
      .first = flush.header.first,
      .created = flush.header.time,
      .previous = tail_,
      .file_bytes = options_.segment_bytes,
      .batch_extent_max = batch_extent_max(options_),
  };
  Bytes bytes = encode(header);
  BATON_CHECK(bytes.size() == flush.offset);
  bytes.insert(bytes.end(), flush.bytes.begin(), flush.bytes.end());
  Status done = write_durably(0, bytes);
  if (done) done = disk_.rename(kSuccessorPath, segment_path(header.first));
  if (done) successor_.renamed();
  if (done && !mutant(Mutant::m4_skip_directory_sync_on_rotation)) done = disk_.sync_directory("wal");
  return done;
}

void LogWriter::finish(Flush flush) {
  BATON_CHECK(in_flight_);
  in_flight_ = false;
  durable_ = flush.last;
  spare_ = std::move(flush.bytes);
}

Status LogWriter::close() {
  BATON_CHECK(durable_ == last_ && !in_flight_);
  return replace_control(disk_, {.uuid = uuid_, .durable = durable_, .clean = true});
}

}  // namespace baton::log
