// CRC32C of bytes that come piece by piece: begin with 0, and hand each result to the next piece.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace baton {

std::uint32_t running_crc32c(std::uint32_t before, ByteView piece);

}  // namespace baton
