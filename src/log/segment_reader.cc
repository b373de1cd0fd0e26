#include "log/segment_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/mutant.h"

namespace baton::log {

namespace {
constexpr std::uint64_t kReadBytes = std::uint64_t{1} << 20;
}

Result<std::span<std::byte>> FileWindow::at(std::uint64_t offset, std::uint64_t length) {
  if (offset >= file_bytes_) return std::span<std::byte>();
  length = std::min(length, file_bytes_ - offset);
  if (offset < start_ || offset + length > start_ + bytes_.size()) {
    bytes_.resize(std::min(std::max(length, kReadBytes), file_bytes_ - offset));
    auto got = file_.read(offset, bytes_);
    if (!got) return std::unexpected(got.error());
    bytes_.resize(*got);
    start_ = offset;
    length = std::min<std::uint64_t>(length, bytes_.size());
  }
  return std::span(bytes_).subspan(offset - start_, length);
}

SegmentReader::SegmentReader(FileWindow& window, const SegmentHeader& header, Instant time)
    : window_(window),
      header_(header),
      position_{.last = header.first - 1,
                .end = kSegmentHeaderBytes,
                .chain = header.previous.chain,
                .time = time} {}

bool SegmentReader::refuse(std::string why) {
  complaint_ = std::move(why);
  return false;
}

Result<bool> SegmentReader::next() {
  auto head = window_.at(position_.end, kBatchHeaderBytes);
  if (!head) return std::unexpected(head.error());
  if (!check_header(*head)) return false;

  const std::uint64_t used = kBatchHeaderBytes + batch_.body_bytes;
  auto batch = window_.at(position_.end, padded_batch(used));
  if (!batch) return std::unexpected(batch.error());
  if (batch->size() < padded_batch(used)) return refuse("the file ends inside a batch");
  const std::span<std::byte> content = batch->first(used);
  const auto time = check_records(content);
  if (!time) return false;
  if (chain_of(content, position_.chain, header_.uuid) != batch_.chain) {
    return refuse("the batch does not continue the chain");
  }
  if (!all_zero(batch->subspan(used))) return refuse("the padding of the batch is not zero");

  batch_offset_ = position_.end;
  position_.last += batch_.count;
  position_.end += batch->size();
  position_.chain = batch_.chain;
  position_.time = *time;
  return true;
}

bool SegmentReader::check_header(ByteView bytes) {
  if (bytes.size() < kBatchHeaderBytes) return refuse("the file ends here");
  const auto header = decode_batch_header(bytes, header_.uuid);
  if (!header) return refuse(all_zero(bytes) ? "no batch header, only zeros" : "the batch header is damaged");
  batch_ = *header;
  if (batch_.first != position_.last + 1) {
    return refuse(
        fmt::format("the batch starts at record {}, expected {}", batch_.first, position_.last + 1));
  }
  if (batch_.epoch != header_.epoch && !mutant(Mutant::m20_epoch_not_checked)) {
    return refuse(
        fmt::format("the batch is of epoch {}, its segment of epoch {}", batch_.epoch, header_.epoch));
  }
  if (batch_.durable >= batch_.first) return refuse("the batch claims to be durable before it was written");
  if (batch_.count == 0 || batch_.count > kBatchRecordsMax ||
      padded_batch(kBatchHeaderBytes + std::uint64_t{batch_.body_bytes}) > header_.batch_extent_max) {
    return refuse("the batch is larger than a batch can be");
  }
  if (!all_zero(bytes.subspan(52, kBatchHeaderBytes - 52))) return refuse("the batch uses reserved bytes");
  return true;
}

std::optional<Instant> SegmentReader::check_records(ByteView batch) {
  const auto damaged = [&](std::string why) {
    refuse(std::move(why));
    return std::nullopt;
  };
  ByteView rest = batch.subspan(kBatchHeaderBytes);
  Instant time = position_.time;
  for (std::uint32_t index = 0; index < batch_.count; ++index) {
    const Lsn lsn = batch_.first + index;
    const auto header = decode_record_header(rest, lsn);
    if (!header) return damaged(fmt::format("the header of record {} is damaged", lsn));
    if (stored_bytes(header->body_bytes) > rest.size())
      return damaged(fmt::format("record {} is cut off", lsn));
    if (crc32c(rest.subspan(kRecordHeaderBytes, header->body_bytes)) != header->body_crc) {
      return damaged(fmt::format("the body of record {} is damaged", lsn));
    }
    if (index == 0 && header->time != batch_.time)
      return damaged("the batch and its first record differ in time");
    if (header->time < time) return damaged(fmt::format("time runs backwards at record {}", lsn));
    time = header->time;
    rest = rest.subspan(stored_bytes(header->body_bytes));
  }
  if (!rest.empty()) return damaged("the batch holds more than its records");
  return time;
}

Status SegmentReader::visit(Lsn from, const Visitor& visitor) {
  auto batch = window_.at(batch_offset_, kBatchHeaderBytes + batch_.body_bytes);
  if (!batch) return std::unexpected(batch.error());
  std::size_t at = kBatchHeaderBytes;
  for (std::uint32_t index = 0; index < batch_.count; ++index) {
    const Lsn lsn = batch_.first + index;
    const RecordHeader header = *decode_record_header(ByteView(*batch).subspan(at), lsn);
    const std::size_t body = at + kRecordHeaderBytes;
    if (lsn >= from) {
      const Record record{
          .place = {.lsn = lsn, .offset = static_cast<std::uint32_t>(batch_offset_ + body)},
          .epoch = batch_.epoch,
          .type = header.type,
          .time = header.time,
          .body = ByteView(*batch).subspan(body, header.body_bytes),
      };
      if (auto visited = visitor(record); !visited) return visited;
    }
    at += stored_bytes(header.body_bytes);
  }
  return {};
}

}  // namespace baton::log
