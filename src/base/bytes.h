// Bytes, and the little-endian reader and writer that every format of baton is made of.
//
// The reader never reads past its end: the first read that does not fit marks it as failed, and every
// later one returns zero. So a decoder reads all its fields and asks `ok()` once.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace baton {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view text_of(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Fixed-width little-endian access to raw memory. Debian's architectures with other byte orders are
// not supported; the static_assert in bytes.cc says so at build time.
template <std::unsigned_integral T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <std::unsigned_integral T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

class ByteWriter {
 public:
  // Appends to `out`, which outlives the writer.
  explicit ByteWriter(Bytes& out) : out_(out) {}

  template <std::unsigned_integral T>
  void fixed(T value) {
    if constexpr (sizeof value == 1) return out_.push_back(static_cast<std::byte>(value));
    const std::size_t at = out_.size();
    out_.resize(at + sizeof value);
    store(out_.data() + at, value);
  }
  void varint(std::uint64_t value) {  // 7 bits a byte, least significant first
    value < 0x80 ? out_.push_back(static_cast<std::byte>(value)) : long_varint(value);
  }
  void zigzag(std::int64_t value) {  // signed, small magnitudes short
    varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void text(std::string_view value) {  // varint length, then the bytes
    varint(value.size());
    if (!value.empty()) raw(bytes_of(value));
  }
  void raw(ByteView value) { out_.insert(out_.end(), value.begin(), value.end()); }

 private:
  void long_varint(std::uint64_t value);

  Bytes& out_;
};

class ByteReader {
 public:
  explicit ByteReader(ByteView from) : rest_(from) {}

  template <std::unsigned_integral T>
  T fixed() {
    const ByteView taken = raw(sizeof(T));
    return ok_ ? load<T>(taken.data()) : T{0};
  }
  std::uint64_t varint();
  std::int64_t zigzag();
  std::string_view text();          // borrowed from the bytes being read
  ByteView raw(std::size_t count);  // likewise
  ByteView rest() { return raw(rest_.size()); }

  bool ok() const { return ok_; }
  bool finished() const { return ok_ && rest_.empty(); }
  std::size_t remaining() const { return rest_.size(); }
  void fail() { ok_ = false; }

 private:
  ByteView rest_;
  bool ok_ = true;
};

}  // namespace baton
