// The two checksums of every checkpoint, each for one purpose.
//
// CRC32C of every MiB of a shard file tells damaged bytes from good ones, in partial reads too. XXH3-128 of
// every slice names its content: which slices have not changed since the last save, or between two
// checkpoints. Neither keeps out whoever wants to deceive; a SHA-256 of each slice, if asked for, does
// (slice_digests.h).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

struct XXH3_state_s;  // NOLINT(readability-identifier-naming): theirs

namespace baton::checkpoint {

inline constexpr std::uint64_t kBlockBytes = 1 << 20;

// One for each block of a file; the last block may be shorter.
class BlockSums {
 public:
  void add(ByteView piece);
  std::vector<std::uint32_t> finish();

 private:
  std::vector<std::uint32_t> sums_;
  std::uint32_t current_ = 0;
  std::uint64_t filled_ = 0;
};

struct Fingerprint {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend auto operator<=>(const Fingerprint&, const Fingerprint&) = default;
};
std::string to_hex(const Fingerprint& fingerprint);  // 32 digits, lower case
std::optional<Fingerprint> fingerprint_of_hex(std::string_view text);

class Fingerprinter {
 public:
  Fingerprinter();
  ~Fingerprinter();
  Fingerprinter(const Fingerprinter&) = delete;
  Fingerprinter& operator=(const Fingerprinter&) = delete;

  void restart();
  void add(ByteView piece);
  Fingerprint finish() const;

 private:
  XXH3_state_s* const state_;
};
Fingerprint fingerprint(ByteView bytes);

// Eight hex digits each, one behind the other.
std::string to_hex(const std::vector<std::uint32_t>& sums);
std::optional<std::vector<std::uint32_t>> sums_of_hex(std::string_view text);

}  // namespace baton::checkpoint
