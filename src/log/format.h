// The bytes of the log. Everything is little-endian.
//
//   segment file   [ header, 4096 ][ batch ][ batch ] … zeros up to the file's length
//   batch          [ header, 64 ][ record ][ record ] … zeros up to the next multiple of 4096
//   record         [ header, 24 ][ body ] zeros up to the next multiple of 8
//
// A segment is zero-filled and synced before its first use and never reused, so a sector that did not
// reach the medium reads as zeros. One sync covers one batch; a block that was acknowledged is never
// written again. docs/log-format.md tells the same to someone who writes a reader.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "log/log.h"

namespace baton::log {

inline constexpr std::size_t kBlockBytes = 4096;  // batches start at multiples of this
inline constexpr std::size_t kSectorBytes = 512;  // what a disk writes whole or not at all
inline constexpr std::size_t kSegmentHeaderBytes = kBlockBytes;
inline constexpr std::size_t kBatchHeaderBytes = 64;
inline constexpr std::size_t kRecordHeaderBytes = 24;

inline constexpr std::uint16_t kFormatMajor = 1;
inline constexpr std::uint16_t kFormatMinor = 0;
inline constexpr std::uint32_t kKnownIncompatible = 0;  // feature bits this code understands

// Names a cluster: every segment carries it, and it salts the checks, so that neither a segment of
// another cluster nor a payload that imitates a batch is taken for ours.
struct Uuid {
  std::array<std::byte, 16> bytes{};
  friend bool operator==(const Uuid&, const Uuid&) = default;
};

struct Options {
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;
  // A batch takes records until it holds this much; the last one may reach past.
  std::uint64_t batch_bytes = std::uint64_t{1} << 20;
};
std::size_t record_bytes_max(const Options& options);    // the body of one record
std::uint64_t batch_extent_max(const Options& options);  // the largest batch, padded
// The log goes to a new segment where a largest batch might not fit, and one may be filling already. So this
// much before the end of a segment there should be another, or nothing more be let in.
constexpr std::uint64_t end_margin(std::uint64_t segment_bytes, std::uint64_t batch_extent) {
  return segment_bytes / 8 > 2 * batch_extent ? segment_bytes / 8 : 2 * batch_extent;
}
bool is_reasonable(const Options& options);

// Where a segment's predecessor ends. It turns "as far as it can be read" into "exactly up to here".
struct PreviousLink {
  Lsn first = 0;  // names the file; all zero in the very first segment
  Lsn last = 0;
  std::uint64_t end = 0;  // offset behind its last valid batch
  std::uint64_t chain = 0;
  friend bool operator==(const PreviousLink&, const PreviousLink&) = default;
};

//  0 magic "BATONSEG"   8 u16 major  10 u16 minor  12 u32 incompatible features  16 u32 compatible ones
// 20 u32 epoch         24 uuid      40 u64 number  48 u64 first lsn  56 i64 time of the first record
// 64 u64 previous first lsn   72 u64 previous last lsn   80 u64 previous end   88 u64 previous chain
// 96 u64 length of this file  104 u64 largest batch extent    zeros   508 u32 crc32c of bytes 0 to 507
struct SegmentHeader {
  std::uint32_t epoch = 0;
  Uuid uuid;
  std::uint64_t number = 0;  // 1, 2, 3, …
  Lsn first = 0;
  Instant created;
  PreviousLink previous;
  std::uint64_t file_bytes = 0;
  std::uint64_t batch_extent_max = 0;
  friend bool operator==(const SegmentHeader&, const SegmentHeader&) = default;
};
Bytes encode(const SegmentHeader& header);  // kSegmentHeaderBytes
// corrupt, or unsupported_version; the message does not name the file.
Result<SegmentHeader> decode_segment_header(ByteView bytes);

//  0 u32 magic  4 u32 crc32c of the uuid and of bytes 8 to 63   8 u64 first lsn  16 u64 durable lsn
// 24 i64 time of the first record   32 u64 chain   40 u32 epoch   44 u32 record count
// 48 u32 bytes of all records with their headers and padding   52 zeros
struct BatchHeader {
  Lsn first = 0;
  Lsn durable = 0;  // the highest lsn known durable when the batch was sealed
  Instant time;
  std::uint64_t chain = 0;
  std::uint32_t epoch = 0;
  std::uint32_t count = 0;
  std::uint32_t body_bytes = 0;
};
// Writes header and chain into `batch`, which holds kBatchHeaderBytes of room and then the records.
// `header.chain` is the chain before this batch; the return value is the chain after it.
std::uint64_t seal_batch(std::span<std::byte> batch, const BatchHeader& header, const Uuid& uuid);
std::optional<BatchHeader> decode_batch_header(ByteView bytes, const Uuid& uuid);
// The chain that `batch` (header and records) should carry when it follows `previous`. Leaves it as it was.
std::uint64_t chain_of(std::span<std::byte> batch, std::uint64_t previous, const Uuid& uuid);

//  0 u32 body bytes   4 u16 type   6 u16 flags, 0   8 i64 time   16 u32 crc32c of the body
// 20 u32 crc32c of the record's lsn (u64) and of bytes 0 to 19
struct RecordHeader {
  std::uint32_t body_bytes = 0;
  std::uint16_t type = 0;
  Instant time;
  std::uint32_t body_crc = 0;
};
void encode(const RecordHeader& header, std::span<std::byte> into);  // without the checksums
// Writes those of records that lie one behind the other.
void seal_records(std::span<std::byte> records, Lsn first);
std::optional<RecordHeader> decode_record_header(ByteView bytes, Lsn lsn);

std::size_t stored_bytes(std::size_t body_bytes);  // a record with its header and padding
std::uint64_t padded_batch(std::uint64_t bytes);   // up to the next block
bool all_zero(ByteView bytes);

std::string segment_path(Lsn first);                            // "wal/0000000000000001.seg"
std::optional<Lsn> segment_first_lsn(const std::string& name);  // of a name in wal/

}  // namespace baton::log
