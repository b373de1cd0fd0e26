// Blobs in a folder: of one machine, or one that several share.
//
//   FOLDER/ab/abcdef…     the bytes
//   FOLDER/….tmp          being written
//
// A blob is written under another name, synced, and renamed; so one that is there is whole, whatever happens
// to the machine.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "base/time.h"
#include "pipeline/blob_store.h"

namespace baton::pipeline {

class FolderBlobs : public BlobStore {
 public:
  explicit FolderBlobs(std::string folder) : folder_(std::move(folder)) {}  // is made when it is needed

  Result<BlobRef> put(const ByteSource& from, const std::stop_token& stop) override;
  Status pour(const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) override;
  Result<bool> has(const BlobRef& blob, const std::stop_token& stop) override;
  std::string place() const override { return folder_; }

  // Removes blobs that are not named, unless they are younger than that: somebody may be about to name them.
  // Other files that lie in the folder are not ours.
  void sweep(const std::set<std::string>& named, Duration young) const;

 private:
  static constexpr std::size_t kPrefix = 2;  // digits of the hash that name the folder below

  std::string path_of(const BlobRef& blob) const {
    return folder_ + "/" + blob.hash.substr(0, kPrefix) + "/" + blob.hash;
  }

  const std::string folder_;
};

// A folder that is made when something is put, for its owner only, and goes with this: for runs that keep
// nothing.
class TemporaryBlobs : public FolderBlobs {
 public:
  TemporaryBlobs();
  ~TemporaryBlobs() override;
  TemporaryBlobs(const TemporaryBlobs&) = delete;
  TemporaryBlobs& operator=(const TemporaryBlobs&) = delete;

  Result<BlobRef> put(const ByteSource& from, const std::stop_token& stop) override;
};

}  // namespace baton::pipeline
