// Where checkpoints lie, as an interface: a local or shared file system (local_storage.h), or whatever keeps
// files by name. Paths are relative to the root, with '/' between names; directories come and go by
// themselves. What is not there is NOT_FOUND. Safe to be called from many threads.
//
// Large files are written once, from their beginning to their end, and never changed. Small ones decide:
// put_if_absent is the one operation that two writers can race for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace baton::checkpoint {

// If it goes before it is finished, nothing is left of the file.
class ShardWriter {
 public:
  virtual ~ShardWriter() = default;
  virtual Status append(ByteView bytes) = 0;
  // When this returns without an error, the file is complete and survives a power failure. After an error
  // there is no telling what reached the medium: the file must not be used.
  virtual Status finish() = 0;
};

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

class ShardReader {
 public:
  using Sink = std::function<Status(std::uint64_t offset, ByteView piece)>;

  virtual ~ShardReader() = default;
  virtual std::uint64_t size() const = 0;
  // Another one once the file was replaced or written to; "" where that cannot be told.
  virtual std::string version() const { return {}; }
  // All of the ranges, which are in order and end within the file, in their order and in pieces that never
  // cross a multiple of kBlockBytes. Ends with the first error, also one of the sink.
  virtual Status read(const std::vector<ByteRange>& ranges, const Sink& sink) = 0;
};

struct StorageEntry {
  std::string name;
  bool is_directory = false;
  std::uint64_t bytes = 0;
  std::int64_t modified_ms = 0;  // since 1970, by the storage's clock
  friend auto operator<=>(const StorageEntry&, const StorageEntry&) = default;
};

class Storage {
 public:
  virtual ~Storage() = default;

  // A new file of this size. Space is reserved now where that is possible, so that a full disk says so
  // before anything is written. CONFLICT if the name is taken.
  virtual Result<std::unique_ptr<ShardWriter>> create(const std::string& path, std::uint64_t bytes) = 0;
  virtual Result<std::unique_ptr<ShardReader>> open(const std::string& path) = 0;

  // Of those who try, one succeeds, and its bytes are there as a whole and durable when it hears so. False:
  // there are other bytes already. The same bytes again are fine: that is what a retry looks like.
  virtual Result<bool> put_if_absent(const std::string& path, ByteView bytes) = 0;
  virtual Result<Bytes> get(const std::string& path) = 0;  // of a small file

  virtual Result<std::vector<StorageEntry>> list(
      const std::string& directory) = 0;                         // by name; "" is the root
  virtual Status remove(const std::string& path) = 0;            // for good; fine if it is not there
  virtual Status remove_directory(const std::string& path) = 0;  // with all that is in it
  virtual std::string place() const = 0;                         // as people name it
  virtual std::string describe() const = 0;                      // with how it is read and written
};

// As people name it.
inline std::string path_in(const Storage& storage, const std::string& path) {
  const std::string place = storage.place();
  return place + (place.ends_with('/') ? "" : "/") + path;
}

}  // namespace baton::checkpoint
