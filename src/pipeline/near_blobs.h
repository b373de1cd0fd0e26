// Blobs that are far away, each fetched once by this process: modules of a worker that need the same ones
// find them here. A copy is verified before it is one.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "pipeline/blob_store.h"

namespace baton::pipeline {

class NearBlobs : public BlobStore {
 public:
  static constexpr std::uint64_t kBytesMax = 10ULL << 30;  // then those that were not used for longest go

  // `far` outlives it. The folder goes with this.
  explicit NearBlobs(BlobStore& far, std::uint64_t bytes_max = kBytesMax);
  ~NearBlobs() override;
  NearBlobs(const NearBlobs&) = delete;
  NearBlobs& operator=(const NearBlobs&) = delete;

  Result<BlobRef> put(const ByteSource& from, const std::stop_token& stop) override {
    return far_.put(from, stop);
  }
  Status pour(const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) override;
  Result<bool> has(const BlobRef& blob, const std::stop_token& stop) override { return far_.has(blob, stop); }
  std::string place() const override { return far_.place(); }

 private:
  std::string path_of(const BlobRef& blob) const { return folder_ + "/" + blob.hash; }
  // Whether there is a copy, by now. False: it has to come from afar.
  bool bring(const BlobRef& blob, const std::stop_token& stop);
  bool make_room(std::uint64_t bytes);  // false: others that are on their way take it up

  BlobStore& far_;
  const std::uint64_t bytes_max_;
  const std::string folder_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any arrived_;
  std::set<std::string> on_their_way_;
  std::list<BlobRef> copies_;  // those used last come last
  std::uint64_t bytes_ = 0;    // of all copies, and of those on their way
};

}  // namespace baton::pipeline
