// Bytes that go with a request into the log, and how an entry refers to them.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"

namespace baton::core {

// Bytes of a request and their hash, computed by whoever builds the request, off the loop. The hash decides
// what is a repetition and what a conflict, so the two cannot be changed apart.
class Blob {
 public:
  Blob() = default;
  explicit Blob(Bytes content)
      : bytes_(std::move(content)), hash_(bytes_.empty() ? 0 : content_hash(bytes_)) {}
  explicit Blob(std::string_view text) : Blob(Bytes(bytes_of(text).begin(), bytes_of(text).end())) {}
  Blob(const Blob&) = default;
  Blob& operator=(const Blob&) = default;
  Blob(Blob&& from) noexcept : bytes_(std::exchange(from.bytes_, {})), hash_(std::exchange(from.hash_, 0)) {}
  Blob& operator=(Blob&& from) noexcept {
    bytes_ = std::exchange(from.bytes_, {});
    hash_ = std::exchange(from.hash_, 0);
    return *this;
  }
  ~Blob() = default;

  const Bytes& bytes() const { return bytes_; }
  std::uint64_t hash() const { return hash_; }  // 0 if there are no bytes

 private:
  Bytes bytes_;
  std::uint64_t hash_ = 0;
};

struct BlobView {
  ByteView bytes;
  std::uint64_t hash = 0;

  BlobView() = default;
  BlobView(ByteView of, std::uint64_t hash_of) : bytes(of), hash(hash_of) {}
  BlobView(const Blob& blob) : bytes(blob.bytes()), hash(blob.hash()) {}
};

}  // namespace baton::core
