#include "log/tail.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/mutant.h"

namespace baton::log {
namespace {

// What a pass over the rest of the file finds.
struct Leftovers {
  std::uint64_t damage_end = 0;  // behind the last byte that is not zero; 0 if there is none
  Lsn known_durable = 0;         // the highest durable lsn that a batch header carries
};

Result<Leftovers> look_behind(FileWindow& window, const SegmentHeader& header, std::uint64_t from) {
  Leftovers found;
  for (std::uint64_t offset = from; offset < window.file_bytes(); offset += kBlockBytes) {
    auto block = window.at(offset, kBlockBytes);
    if (!block) return std::unexpected(block.error());
    if (block->empty()) break;
    if (all_zero(*block)) continue;
    std::size_t used = block->size();
    while ((*block)[used - 1] == std::byte{0}) --used;
    found.damage_end = offset + used;
    const auto batch = decode_batch_header(*block, header.uuid);
    if (batch && batch->epoch == header.epoch)
      found.known_durable = std::max(found.known_durable, batch->durable);
  }
  return found;
}

// True if one of the sectors that bytes [begin, end) of the batch touch is all zeros, as a lost one is.
// Only whole sectors inside `batch` count.
bool touches_lost_sector(ByteView batch, std::size_t begin, std::size_t end) {
  for (std::size_t at = begin / kSectorBytes * kSectorBytes; at < end && at + kSectorBytes <= batch.size();
       at += kSectorBytes) {
    if (all_zero(batch.subspan(at, kSectorBytes))) return true;
  }
  return false;
}

// Whether every damaged record of a batch with a whole header has lost a sector. A sector of zeros inside
// a record that is intact explains nothing: that payload is zeros.
bool lost_sectors_explain(ByteView batch, const BatchHeader& header) {
  bool damaged = false;
  std::size_t at = kBatchHeaderBytes;
  const std::size_t body_end = kBatchHeaderBytes + header.body_bytes;
  for (std::uint32_t index = 0; index < header.count; ++index) {
    const std::size_t header_end = at + kRecordHeaderBytes;
    if (header_end > body_end) return false;
    const auto record = decode_record_header(batch.subspan(at), header.first + index);
    // Without its length the walk ends here: whatever follows may be anything.
    if (!record) return touches_lost_sector(batch, at, header_end);
    const std::size_t next = at + stored_bytes(record->body_bytes);
    if (next > body_end) return false;
    if (crc32c(batch.subspan(header_end, record->body_bytes)) != record->body_crc) {
      if (!touches_lost_sector(batch, header_end, header_end + record->body_bytes)) return false;
      damaged = true;
    }
    at = next;
  }
  return damaged && at == body_end;
}

// The mistake that makes a start fail after a legal power cut; kept to prove that the tests notice it.
Lsn mistaken_evidence(ByteView batch, Lsn expected) {
  for (std::size_t at = kSectorBytes; at + kRecordHeaderBytes <= batch.size(); at += 8) {
    for (Lsn lsn = expected; lsn < expected + 8; ++lsn) {
      if (decode_record_header(batch.subspan(at), lsn)) return lsn;
    }
  }
  return 0;
}

TailVerdict corrupt(std::string reason) { return {.kind = TailKind::corrupt, .reason = std::move(reason)}; }

// Judges damage of a batch that nothing proves to have been acknowledged.
Result<TailVerdict> judge_unproven(FileWindow& window, const SegmentHeader& header, const Position& at,
                                   std::uint64_t damage_end) {
  const TailVerdict torn{.kind = TailKind::torn, .damage_end = damage_end};
  auto seen = window.at(at.end, header.batch_extent_max);
  if (!seen) return std::unexpected(seen.error());
  const ByteView rest = *seen;
  const std::uint64_t extent_end = at.end + rest.size();
  if (damage_end > extent_end) return corrupt("more is damaged than one batch can hold");

  if (all_zero(rest.first(std::min(kSectorBytes, rest.size())))) return torn;  // the header's sector was lost
  const auto batch = decode_batch_header(rest, header.uuid);
  if (!batch) return corrupt("the batch header is damaged, and a sector is written whole or not at all");
  if (batch->first != at.last + 1 || batch->epoch != header.epoch)
    return corrupt("the batch does not belong here");
  const std::uint64_t extent = padded_batch(kBatchHeaderBytes + std::uint64_t{batch->body_bytes});
  if (extent > rest.size()) return corrupt("the batch is larger than a batch can be, or the file is cut");
  if (damage_end > at.end + extent) return corrupt("bytes behind the damaged batch are not zero");
  if (!lost_sectors_explain(rest.first(extent), *batch)) {
    return corrupt("no lost sector explains the damage: what was lost reads as zeros");
  }
  return torn;
}

}  // namespace

Result<TailVerdict> judge_tail(FileWindow& window, const SegmentHeader& header, const Position& at,
                               const Control& control) {
  if (mutant(Mutant::m6_zero_header_ends_the_log)) {
    auto head = window.at(at.end, kBatchHeaderBytes);
    if (head && all_zero(*head)) return TailVerdict{};
  }
  auto leftovers = look_behind(window, header, at.end);
  if (!leftovers) return std::unexpected(leftovers.error());
  if (leftovers->damage_end == 0) return TailVerdict{};  // zeros to the end
  if (mutant(Mutant::m5_truncate_at_mid_log_damage)) {
    return TailVerdict{.kind = TailKind::torn, .damage_end = leftovers->damage_end};
  }
  if (control.clean) return corrupt("the log was closed cleanly, so nothing can be torn");
  if (at.end == kSegmentHeaderBytes)
    return corrupt("a segment gets its name only after its first batch is on disk");

  const Lsn expected = at.last + 1;
  Lsn known_durable = std::max(leftovers->known_durable, control.durable);
  if (mutant(Mutant::m27_same_batch_record_counts_as_evidence)) {
    auto rest = window.at(at.end, header.batch_extent_max);
    if (rest) known_durable = std::max(known_durable, mistaken_evidence(*rest, expected));
  }
  if (known_durable >= expected) {
    return corrupt(fmt::format("records up to {} are known to have been acknowledged", known_durable));
  }
  return judge_unproven(window, header, at, leftovers->damage_end);
}

Result<TailVerdict> judge_unpinned(FileWindow& window, const SegmentHeader& header, const Position& at,
                                   const SegmentHeader& next) {
  if (window.file_bytes() != header.file_bytes) {
    return corrupt(
        fmt::format("the file is {} bytes long instead of {}", window.file_bytes(), header.file_bytes));
  }
  if (at.last < header.first) return corrupt("a segment gets its name only after its first batch is on disk");
  auto verdict = judge_tail(window, header, at, {});
  if (verdict && verdict->kind == TailKind::torn && next.epoch == header.epoch)
    return corrupt("the process that wrote it went on, so nothing can be torn");
  return verdict;
}

}  // namespace baton::log
