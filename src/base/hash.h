// The three hashes baton uses, each for one purpose.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace baton {

// CRC32C, to tell damaged bytes from good ones. `crc32c` of "123456789" is 0xe3069283.
std::uint32_t crc32c(ByteView bytes);

// XXH3, to name content: payloads, batches in the chain, facts in the state digest. Not secret.
std::uint64_t content_hash(ByteView bytes, std::uint64_t seed = 0);

// SipHash-2-4, to make values nobody can guess without the key: nonces and jitter.
struct SecretKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const SecretKey&, const SecretKey&) = default;
};
std::uint64_t keyed_hash(const SecretKey& key, std::uint64_t a, std::uint64_t b, std::uint64_t c);

}  // namespace baton
