// A blob on disk. All of it is for the thread that waits for the disk; nothing here knows of sockets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/result.h"
#include "wire/sha256.h"

namespace baton::server {

// One that is being written, under another name. If it never gets its own, it goes.
class NewBlobFile {
 public:
  // `set_aside_bytes` of the disk are not for it.
  NewBlobFile(std::string folder, std::string hash, std::uint64_t bytes, std::uint64_t set_aside_bytes)
      : folder_(std::move(folder)),
        hash_(std::move(hash)),
        bytes_(bytes),
        set_aside_bytes_(set_aside_bytes) {}
  ~NewBlobFile();
  NewBlobFile(const NewBlobFile&) = delete;
  NewBlobFile& operator=(const NewBlobFile&) = delete;

  // NO_SPACE: it would leave the log too little.
  Status open();
  Status append(std::string_view bytes);
  // Durable under its name. INVALID_REQUEST: the bytes are not what the name says.
  Status finish();

 private:
  const std::string folder_;
  const std::string hash_;
  const std::uint64_t bytes_;
  const std::uint64_t set_aside_bytes_;
  std::string path_;
  Descriptor file_;
  wire::Sha256 sum_;
  std::uint64_t written_ = 0;
  std::uint64_t on_disk_ = 0;  // of it, or on its way there
};

class BlobFile {
 public:
  explicit BlobFile(std::string path) : path_(std::move(path)) {}

  Result<std::uint64_t> open();  // how long it is; NOT_FOUND: it is not there
  Status read(std::string& into, std::size_t bytes);

 private:
  const std::string path_;
  Descriptor file_;
};

}  // namespace baton::server
