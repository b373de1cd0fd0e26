// Any bytes as the pieces of a snapshot: refused, or a state whose digest is right and which can be written
// again.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "core/digest.h"
#include "core/state_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton;
  ByteReader input({reinterpret_cast<const std::byte*>(data), size});
  core::StateReader reader;
  while (input.ok() && input.remaining() > 0) {
    const ByteView piece = input.raw(input.fixed<std::uint16_t>());
    if (!input.ok() || !reader.take(piece)) return 0;
  }
  const auto state = reader.finish();
  if (!state) return 0;
  BATON_CHECK(core::full_digest(*state) == state->digest);
  core::StateWriter writer(*state);
  Bytes again;
  while (writer.next(again)) {
  }
  return 0;
}
