#include "checkpoint/checksum.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/running_crc.h"

// The library's own choice for this processor. Inlined code for every x86-64 would be a third as fast beside
// CRC32C, which uses wider registers: the processor pays for each change between the two.
#ifdef __x86_64__
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace baton::checkpoint {
namespace {

// Only what we write: lower case, and every digit there.
std::optional<std::uint64_t> number_of_hex(std::string_view digits) {
  std::uint64_t number = 0;
  for (const char digit : digits) {
    if (digit >= '0' && digit <= '9') {
      number = number << 4 | static_cast<std::uint64_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      number = number << 4 | static_cast<std::uint64_t>(digit - 'a' + 10);
    } else {
      return {};
    }
  }
  return number;
}

}  // namespace

void BlockSums::add(ByteView piece) {
  while (!piece.empty()) {
    const ByteView part = piece.first(std::min<std::uint64_t>(piece.size(), kBlockBytes - filled_));
    current_ = running_crc32c(current_, part);
    filled_ += part.size();
    if (filled_ == kBlockBytes) {
      sums_.push_back(current_);
      current_ = 0;
      filled_ = 0;
    }
    piece = piece.subspan(part.size());
  }
}

std::vector<std::uint32_t> BlockSums::finish() {
  if (filled_ > 0) sums_.push_back(current_);
  current_ = 0;
  filled_ = 0;
  return std::move(sums_);
}

std::string to_hex(const Fingerprint& fingerprint) {
  return fmt::format("{:016x}{:016x}", fingerprint.high, fingerprint.low);
}

std::optional<Fingerprint> fingerprint_of_hex(std::string_view text) {
  if (text.size() != 32) return {};
  const auto high = number_of_hex(text.substr(0, 16));
  const auto low = number_of_hex(text.substr(16));
  if (!high || !low) return {};
  return Fingerprint{*high, *low};
}

Fingerprinter::Fingerprinter() : state_(XXH3_createState()) { restart(); }
Fingerprinter::~Fingerprinter() { XXH3_freeState(state_); }
void Fingerprinter::restart() { XXH3_128bits_reset(state_); }
void Fingerprinter::add(ByteView piece) { XXH3_128bits_update(state_, piece.data(), piece.size()); }

Fingerprint Fingerprinter::finish() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_);
  return {hash.high64, hash.low64};
}

Fingerprint fingerprint(ByteView bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

std::string to_hex(const std::vector<std::uint32_t>& sums) {
  std::string text;
  text.reserve(sums.size() * 8);
  for (const std::uint32_t sum : sums) fmt::format_to(std::back_inserter(text), "{:08x}", sum);
  return text;
}

std::optional<std::vector<std::uint32_t>> sums_of_hex(std::string_view text) {
  if (text.size() % 8 != 0) return {};
  std::vector<std::uint32_t> sums;
  for (; !text.empty(); text.remove_prefix(8)) {
    const auto sum = number_of_hex(text.substr(0, 8));
    if (!sum) return {};
    sums.push_back(static_cast<std::uint32_t>(*sum));
  }
  return sums;
}

}  // namespace baton::checkpoint
