#include "log/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/hash.h"
#include "base/mutant.h"

namespace baton::log {
namespace {

constexpr std::uint64_t kSegmentMagic = 0x4745534e4f544142;  // "BATONSEG"
constexpr std::uint32_t kBatchMagic = 0x48435442;            // "BTCH"
constexpr std::size_t kSegmentCrcAt = kSectorBytes - 4;
constexpr std::size_t kChainAt = 32;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

std::uint64_t chain_seed(const Uuid& uuid) {
  return load<std::uint64_t>(uuid.bytes.data()) ^ std::rotl(load<std::uint64_t>(uuid.bytes.data() + 8), 32);
}

std::uint32_t batch_header_crc(ByteView header, const Uuid& uuid) {
  std::array<std::byte, 16 + kBatchHeaderBytes - 8> covered;
  std::ranges::copy(uuid.bytes, covered.begin());
  std::ranges::copy(header.subspan(8, kBatchHeaderBytes - 8), covered.begin() + 16);
  return crc32c(covered);
}

std::uint32_t record_header_crc(ByteView header, Lsn lsn) {
  std::array<std::byte, 8 + 20> covered;
  store(covered.data(), lsn);
  std::ranges::copy(header.first(20), covered.begin() + 8);
  return crc32c(covered);
}

}  // namespace

std::size_t record_bytes_max(const Options& options) {
  return std::min<std::size_t>(kRecordBytesMax, std::max(options.batch_bytes, options.segment_bytes / 16));
}

std::uint64_t batch_extent_max(const Options& options) {
  return padded_batch(kBatchHeaderBytes + options.batch_bytes + stored_bytes(record_bytes_max(options)));
}

bool is_reasonable(const Options& options) {
  return options.batch_bytes >= kSectorBytes && options.batch_bytes <= std::uint64_t{256} << 20 &&
         options.segment_bytes % kBlockBytes == 0 && options.segment_bytes <= std::uint64_t{1} << 31 &&
         kSegmentHeaderBytes + batch_extent_max(options) <= options.segment_bytes;
}

Bytes encode(const SegmentHeader& header) {
  Bytes bytes;
  bytes.reserve(kSegmentHeaderBytes);
  ByteWriter writer(bytes);
  writer.fixed(kSegmentMagic);
  writer.fixed(kFormatMajor);
  writer.fixed(kFormatMinor);
  writer.fixed(std::uint32_t{0});  // incompatible features in use
  writer.fixed(std::uint32_t{0});  // compatible ones
  writer.fixed(header.epoch);
  writer.raw(header.uuid.bytes);
  writer.fixed(header.number);
  writer.fixed(header.first);
  writer.fixed(static_cast<std::uint64_t>(header.created.ms));
  writer.fixed(header.previous.first);
  writer.fixed(header.previous.last);
  writer.fixed(header.previous.end);
  writer.fixed(header.previous.chain);
  writer.fixed(header.file_bytes);
  writer.fixed(header.batch_extent_max);
  bytes.resize(kSegmentCrcAt);
  writer.fixed(crc32c(bytes));
  bytes.resize(kSegmentHeaderBytes);
  return bytes;
}

Result<SegmentHeader> decode_segment_header(ByteView bytes) {
  if (bytes.size() < kSegmentHeaderBytes) return failure(Errc::corrupt, "the segment header is cut off");
  if (load<std::uint32_t>(bytes.data() + kSegmentCrcAt) != crc32c(bytes.first(kSegmentCrcAt))) {
    return failure(Errc::corrupt, "the segment header fails its checksum");
  }
  ByteReader reader(bytes.first(kSegmentCrcAt));
  if (reader.fixed<std::uint64_t>() != kSegmentMagic)
    return failure(Errc::corrupt, "not a segment of a baton log");
  const auto major = reader.fixed<std::uint16_t>();
  reader.fixed<std::uint16_t>();  // a newer minor version changes nothing that an older reader relies on
  const auto incompatible = reader.fixed<std::uint32_t>();
  if (major != kFormatMajor || (incompatible & ~kKnownIncompatible) != 0) {
    return failure(
        Errc::unsupported_version,
        fmt::format("written in log format {} with feature bits {:#x}, this baton reads format {}; "
                    "use the version of baton that wrote it, or a newer one",
                    major, incompatible, kFormatMajor));
  }
  reader.fixed<std::uint32_t>();  // compatible features may be ignored
  SegmentHeader header;
  header.epoch = reader.fixed<std::uint32_t>();
  std::ranges::copy(reader.raw(16), header.uuid.bytes.begin());
  header.number = reader.fixed<std::uint64_t>();
  header.first = reader.fixed<std::uint64_t>();
  header.created.ms = static_cast<std::int64_t>(reader.fixed<std::uint64_t>());
  header.previous.first = reader.fixed<std::uint64_t>();
  header.previous.last = reader.fixed<std::uint64_t>();
  header.previous.end = reader.fixed<std::uint64_t>();
  header.previous.chain = reader.fixed<std::uint64_t>();
  header.file_bytes = reader.fixed<std::uint64_t>();
  header.batch_extent_max = reader.fixed<std::uint64_t>();
  if (!all_zero(bytes.subspan(kSectorBytes, kSegmentHeaderBytes - kSectorBytes))) {
    return failure(Errc::corrupt, "the segment header is followed by bytes that should be zero");
  }
  return header;
}

std::uint64_t seal_batch(std::span<std::byte> batch, const BatchHeader& header, const Uuid& uuid) {
  BATON_CHECK(batch.size() >= kBatchHeaderBytes + header.body_bytes);
  std::byte* at = batch.data();
  std::memset(at, 0, kBatchHeaderBytes);
  store(at, kBatchMagic);
  store(at + 8, header.first);
  store(at + 16, header.durable);
  store(at + 24, static_cast<std::uint64_t>(header.time.ms));
  store(at + 40, header.epoch);
  store(at + 44, header.count);
  store(at + 48, header.body_bytes);
  const std::span<std::byte> used = batch.first(kBatchHeaderBytes + header.body_bytes);
  const std::uint64_t chain = chain_of(used, header.chain, uuid);
  store(at + kChainAt, chain);
  store(at + 4, batch_header_crc(batch, uuid));
  return chain;
}

std::optional<BatchHeader> decode_batch_header(ByteView bytes, const Uuid& uuid) {
  if (bytes.size() < kBatchHeaderBytes || load<std::uint32_t>(bytes.data()) != kBatchMagic)
    return std::nullopt;
  if (load<std::uint32_t>(bytes.data() + 4) != batch_header_crc(bytes, uuid)) return std::nullopt;
  const std::byte* at = bytes.data();
  return BatchHeader{
      .first = load<std::uint64_t>(at + 8),
      .durable = load<std::uint64_t>(at + 16),
      .time = {static_cast<std::int64_t>(load<std::uint64_t>(at + 24))},
      .chain = load<std::uint64_t>(at + kChainAt),
      .epoch = load<std::uint32_t>(at + 40),
      .count = load<std::uint32_t>(at + 44),
      .body_bytes = load<std::uint32_t>(at + 48),
  };
}

// The previous chain stands in the chain's own place while the hash is taken, so that one pass over
// contiguous bytes covers the predecessor, the header and the records.
std::uint64_t chain_of(std::span<std::byte> batch, std::uint64_t previous, const Uuid& uuid) {
  std::byte* field = batch.data() + kChainAt;
  const auto kept = load<std::uint64_t>(field);
  store(field, previous);
  const std::uint64_t chain = content_hash(batch.subspan(8), chain_seed(uuid));
  store(field, kept);
  return chain;
}

void encode(const RecordHeader& header, std::span<std::byte> into) {
  std::byte* at = into.data();
  store(at, header.body_bytes);
  store(at + 4, header.type);
  store(at + 6, std::uint16_t{0});
  store(at + 8, static_cast<std::uint64_t>(header.time.ms));
}

void seal_records(std::span<std::byte> records, Lsn first) {
  for (Lsn lsn = first; !records.empty(); ++lsn) {
    const auto body_bytes = load<std::uint32_t>(records.data());
    store(records.data() + 16, crc32c(records.subspan(kRecordHeaderBytes, body_bytes)));
    store(records.data() + 20, record_header_crc(records, lsn));
    records = records.subspan(stored_bytes(body_bytes));
  }
}

std::optional<RecordHeader> decode_record_header(ByteView bytes, Lsn lsn) {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  const std::byte* at = bytes.data();
  if (load<std::uint32_t>(at + 20) != record_header_crc(bytes, lsn)) return std::nullopt;
  if (load<std::uint16_t>(at + 6) != 0) return std::nullopt;
  return RecordHeader{
      .body_bytes = load<std::uint32_t>(at),
      .type = load<std::uint16_t>(at + 4),
      .time = {static_cast<std::int64_t>(load<std::uint64_t>(at + 8))},
      .body_crc = load<std::uint32_t>(at + 16),
  };
}

std::size_t stored_bytes(std::size_t body_bytes) { return round_up(kRecordHeaderBytes + body_bytes, 8); }

std::uint64_t padded_batch(std::uint64_t bytes) {
  if (mutant(Mutant::m8_no_padding_between_batches)) return round_up(bytes, 8);
  return round_up(bytes, kBlockBytes);
}

bool all_zero(ByteView bytes) {
  // Compared with itself one byte further on: the library's memcmp is the fastest loop there is.
  return bytes.empty() ||
         (bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

std::string segment_path(Lsn first) { return fmt::format("wal/{:016x}.seg", first); }

std::optional<Lsn> segment_first_lsn(const std::string& name) {
  if (name.size() != 20 || !name.ends_with(".seg")) return std::nullopt;
  Lsn first = 0;
  for (const char digit : std::string_view(name).substr(0, 16)) {
    const bool decimal = digit >= '0' && digit <= '9';
    if (!decimal && !(digit >= 'a' && digit <= 'f')) return std::nullopt;
    first = first << 4 | static_cast<Lsn>(decimal ? digit - '0' : digit - 'a' + 10);
  }
  return first;
}

}  // namespace baton::log
