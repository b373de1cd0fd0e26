// Reading what lies in the log, on whatever thread asks for it.
#include <fmt/format.h>

#include "base/hash.h"
#include "engine/authority.h"

namespace baton::engine {
namespace {

using Blobs = std::vector<core::BlobRef>::const_iterator;

std::uint32_t end_of(const core::BlobRef& blob) { return blob.offset + blob.length; }

// Behind the last that is worth reading together with the first: payloads of one entry lie side by side.
Blobs end_of_span(Blobs first, Blobs end) {
  constexpr std::uint32_t kSpanMax = 256 << 10;
  constexpr std::uint32_t kGapMax = 4096;
  Blobs to = std::next(first);
  for (; to != end; ++to) {
    const std::uint32_t at = end_of(*std::prev(to));
    if (to->lsn != first->lsn || to->offset < at || to->offset > at + kGapMax) break;
    if (end_of(*to) - first->offset > kSpanMax) break;
  }
  return to;
}

}  // namespace

Result<Bytes> Authority::read_bytes(core::Lsn lsn, std::uint32_t offset, std::size_t length) {
  if (!log_) return failure(Errc::closed, "the coordinator has stopped");
  return log_->segments().read(lsn, offset, length);
}

Result<Bytes> Authority::read(const core::BlobRef& blob) {
  if (blob.length == 0) return Bytes{};
  auto bytes = read_bytes(blob.lsn, blob.offset, blob.length);
  if (bytes && content_hash(*bytes) != blob.hash) {
    return failure(
        Errc::corrupt,
        fmt::format("the {} bytes kept with entry {}, at offset {} of its segment, are damaged or gone; "
                    "run `baton log verify` and restore from a backup",
                    blob.length, blob.lsn, blob.offset));
  }
  if (!bytes && bytes.error().code == Errc::corrupt) {
    return failure(Errc::corrupt, fmt::format("{} ({} bytes at offset {})", bytes.error().message,
                                              blob.length, blob.offset));
  }
  return bytes;
}

std::vector<SharedBytes> Authority::read_together(const std::vector<core::BlobRef>& blobs) {
  std::vector<SharedBytes> all;
  all.reserve(blobs.size());
  for (auto from = blobs.begin(); from != blobs.end();) {
    const auto to = end_of_span(from, blobs.end());
    const std::uint32_t begin = from->offset;
    const Result<Bytes> span = read_bytes(from->lsn, begin, end_of(*std::prev(to)) - begin);
    for (; from != to; ++from) {
      const ByteView bytes = span ? ByteView(*span).subspan(from->offset - begin, from->length) : ByteView();
      const bool is_right = span && content_hash(bytes) == from->hash;
      all.push_back(is_right ? std::make_shared<const Bytes>(bytes.begin(), bytes.end()) : nullptr);
    }
  }
  return all;
}

std::optional<Bytes> Authority::read_at_once(const core::BlobRef& blob) {
  constexpr std::size_t kMost = std::size_t{64} << 10;  // the loop does nothing else meanwhile
  if (blob.length == 0) return Bytes{};
  if (!log_ || blob.length > kMost) return {};
  auto bytes = log_->segments().read_at_once(blob.lsn, blob.offset, blob.length);
  if (bytes && content_hash(*bytes) != blob.hash) return {};
  return bytes;
}

}  // namespace baton::engine
