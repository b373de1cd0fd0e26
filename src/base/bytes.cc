#include "base/bytes.h"

#include <bit>

namespace baton {

static_assert(std::endian::native == std::endian::little, "the formats are read in place, as little-endian");

void ByteWriter::long_varint(std::uint64_t value) {
  std::byte groups[10];
  std::size_t count = 0;
  for (; value >= 0x80; value >>= 7) groups[count++] = static_cast<std::byte>(value | 0x80);
  groups[count++] = static_cast<std::byte>(value);
  raw({groups, count});
}

std::uint64_t ByteReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) break;
    const auto next = static_cast<std::uint8_t>(rest_.front());
    rest_ = rest_.subspan(1);
    if (shift == 63 && next > 1) break;  // more than 64 bits
    value |= std::uint64_t{next & 0x7fu} << shift;
    if (next < 0x80) {
      if (next == 0 && shift > 0) break;  // one encoding per value: no trailing zero groups
      return ok_ ? value : 0;
    }
  }
  ok_ = false;
  return 0;
}

std::int64_t ByteReader::zigzag() {
  const std::uint64_t value = varint();
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

std::string_view ByteReader::text() {
  const std::uint64_t length = varint();
  return text_of(raw(length));
}

ByteView ByteReader::raw(std::size_t count) {
  if (!ok_ || count > rest_.size()) {
    ok_ = false;
    return {};
  }
  const ByteView taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

}  // namespace baton
