#include "base/hash.h"

#include <bit>

#include <isa-l/crc.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/running_crc.h"

// Takes the widest instructions that the processor has, up to sixteen times as fast. The library's header for
// it cannot be had beside the inline functions, which are quicker for what is short.
#ifdef __x86_64__
extern "C" XXH64_hash_t XXH3_64bits_withSeed_dispatch(const void* input, std::size_t bytes,
                                                      XXH64_hash_t seed);
#else
#define XXH3_64bits_withSeed_dispatch XXH3_64bits_withSeed
#endif

namespace baton {

std::uint32_t running_crc32c(std::uint32_t before, ByteView piece) {
  // ISA-L takes a non-const pointer but only reads.
  auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(piece.data()));
  return ~crc32_iscsi(data, static_cast<int>(piece.size()), ~before);
}

std::uint32_t crc32c(ByteView bytes) { return running_crc32c(0, bytes); }

std::uint64_t content_hash(ByteView bytes, std::uint64_t seed) {
  if (bytes.size() <= XXH3_MIDSIZE_MAX) return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
  return XXH3_64bits_withSeed_dispatch(bytes.data(), bytes.size(), seed);
}

std::uint64_t keyed_hash(const SecretKey& key, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t v0 = key.low ^ 0x736f6d6570736575u;
  std::uint64_t v1 = key.high ^ 0x646f72616e646f6du;
  std::uint64_t v2 = key.low ^ 0x6c7967656e657261u;
  std::uint64_t v3 = key.high ^ 0x7465646279746573u;
  const auto round = [&] {
    v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
    v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
  };
  const std::uint64_t length = std::uint64_t{24} << 56;  // the message is three words long
  for (const std::uint64_t word : {a, b, c, length}) {
    v3 ^= word;
    round(), round();
    v0 ^= word;
  }
  v2 ^= 0xff;
  round(), round(), round(), round();
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace baton
