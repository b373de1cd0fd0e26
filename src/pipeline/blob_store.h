// Where bytes are kept that are too many to be carried along with a result: artifacts, large values, logs.
// They are named by what they are, so that whoever fetches them knows whether they are still that.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "pipeline/codec.h"

namespace baton::pipeline {

struct BlobRef {
  std::string hash;  // SHA-256, as hexadecimal digits
  std::uint64_t bytes = 0;
  friend bool operator==(const BlobRef&, const BlobRef&) = default;
};
BATON_FIELDS(BlobRef, hash, bytes)

// Takes bytes piece by piece; an error ends whatever brings them.
using ByteSink = std::function<Status(std::string_view)>;
// Gives all its bytes to a sink, the same ones whenever it is asked.
using ByteSource = std::function<Status(const ByteSink&)>;

// An implementation is safe to be used from many threads. EXHAUSTED: it has to do with others for now.
class BlobStore {
 public:
  virtual ~BlobStore() = default;
  // Durable when it returns.
  virtual Result<BlobRef> put(const ByteSource& from, const std::stop_token& stop) = 0;
  // As they are there; `fetch` below looks whether they are what they should be. NOT_FOUND: there are none.
  virtual Status pour(const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) = 0;
  virtual Result<bool> has(const BlobRef& blob, const std::stop_token& stop) = 0;
  virtual std::string place() const = 0;  // for people
};

ByteSource bytes_of_text(std::string_view text);  // which outlives it
ByteSource bytes_of_file(std::string path);       // read as often as it is asked
// What they are, without keeping them.
Result<BlobRef> measure(const ByteSource& source, const std::stop_token& stop = {});

// CORRUPT: they are not what they were. What went into the sink until then is worth nothing; the two below it
// begin anew where a connection breaks in the middle, a few times.
Status fetch(BlobStore& store, const BlobRef& blob, const ByteSink& into, const std::stop_token& stop);
Result<std::string> fetch_text(BlobStore& store, const BlobRef& blob, const std::stop_token& stop);
// All of it under this name, or nothing.
Status fetch_file(BlobStore& store, const BlobRef& blob, const std::string& path,
                  const std::stop_token& stop);

}  // namespace baton::pipeline
