// Blobs: bytes that are too many for the log, in files beside it, named by their SHA-256.
//
//   DIRECTORY/blobs/EPOCH-LSN/HASH     of that task, and goes with it
//
// A blob belongs to a task, mostly to that of a pipeline's run: so who may see it, and how long it is kept,
// is decided already. What belongs to no task that there is goes at the next look, a minute later or after a
// restart. The loop's thread decides, another waits for the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/request.h"
#include "server/limits.h"
#include "server/syncer.h"

namespace baton::server {

class BlobShelf {
 public:
  BlobShelf(std::string directory, const BlobLimits& given, Syncer::Post post)
      : limits(given), directory_(std::move(directory) + "/blobs"), disk_(std::move(post)) {}

  std::string folder_of(core::TaskId task) const;
  Syncer& disk() { return disk_; }

  // Removes what belongs to nobody; `is_there` is asked on the loop's thread, later. Nothing while the last
  // look goes on.
  void sweep(std::function<bool(core::TaskId)> is_there);

  const BlobLimits limits;
  std::uint64_t set_aside_bytes = 0;  // of the disk, for the log and its snapshots
  const std::shared_ptr<std::size_t> transfers = std::make_shared<std::size_t>();  // they may outlive us

 private:
  const std::string directory_;
  Syncer disk_;
  bool sweeps_ = false;
};

}  // namespace baton::server
