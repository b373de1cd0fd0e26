#include "stream/fresh_uuid.h"

#include <sys/random.h>

#include <chrono>

#include "base/check.h"

namespace baton::stream {

Uuid fresh_uuid() {
  Uuid uuid;
  BATON_CHECK(::getrandom(uuid.bytes.data(), uuid.bytes.size(), 0) == ssize_t{sizeof uuid.bytes});
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count();
  for (unsigned i = 0; i < 6; ++i) uuid.bytes[i] = std::byte(ms >> (40 - 8 * i));
  uuid.bytes[6] = (uuid.bytes[6] & std::byte{0x0f}) | std::byte{0x70};
  uuid.bytes[8] = (uuid.bytes[8] & std::byte{0x3f}) | std::byte{0x80};
  return uuid;
}

}  // namespace baton::stream
