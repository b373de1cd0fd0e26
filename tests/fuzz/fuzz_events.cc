// Any bytes as the body of any record: refused, or an event whose own encoding is exactly those bytes.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "core/event_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton;
  if (size < 2) return 0;
  const ByteView input(reinterpret_cast<const std::byte*>(data), size);
  const auto type = load<std::uint16_t>(input.data());
  const ByteView body = input.subspan(2);
  const auto event = core::decode(type, body);
  if (!event) return 0;
  Bytes again;
  core::encode(*event, again);
  BATON_CHECK(static_cast<std::uint16_t>(core::type_of(*event)) == type);
  BATON_CHECK(again == Bytes(body.begin(), body.end()));
  return 0;
}
