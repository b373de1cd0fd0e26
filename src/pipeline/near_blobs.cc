#include "pipeline/near_blobs.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "base/random_name.h"
#include "wire/sha256.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;

// Where no file can be made there are no copies, and that is all.
fs::path temporary_folder() {
  std::error_code absent;
  const fs::path folder = fs::temp_directory_path(absent);
  return absent ? fs::path("/tmp") : folder;
}

}  // namespace

NearBlobs::NearBlobs(BlobStore& far, std::uint64_t bytes_max)
    : far_(far),
      bytes_max_(bytes_max),
      folder_((temporary_folder() / ("baton-near-" + random_name())).string()) {}

NearBlobs::~NearBlobs() {
  std::error_code ignored;  // nobody is left to be told
  fs::remove_all(folder_, ignored);
}

Status NearBlobs::pour(const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) {
  if (wire::is_sha256(blob.hash) && bring(blob, stop)) {
    bool has_begun = false;
    auto done = bytes_of_file(path_of(blob))([&](std::string_view bytes) -> Status {
      if (stop.stop_requested()) return failure(Errc::closed, "stopped");
      has_begun = true;
      return into(bytes);
    });
    if (done || has_begun || stop.stop_requested()) return done;  // otherwise it was removed meanwhile
  }
  return far_.pour(blob, into, stop);
}

// One of those that want it fetches it, and the others wait.
bool NearBlobs::bring(const BlobRef& blob, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, stop, [&] { return !on_their_way_.contains(blob.hash); });
  if (const auto copy = std::ranges::find(copies_, blob); copy != copies_.end()) {
    copies_.splice(copies_.end(), copies_, copy);
    return true;
  }
  if (stop.stop_requested() || !make_room(blob.bytes)) return false;
  bytes_ += blob.bytes;
  on_their_way_.insert(blob.hash);
  lock.unlock();
  ::mkdir(folder_.c_str(), 0700);  // the temporary folder is everybody's, and what is in ours nobody else's
  // A full disk, say, is no reason for a module to fail that needs no copy.
  const bool is_there = fetch_file(far_, blob, path_of(blob), stop).has_value();
  lock.lock();
  on_their_way_.erase(blob.hash);
  if (is_there)
    copies_.push_back(blob);
  else
    bytes_ -= blob.bytes;
  arrived_.notify_all();
  return is_there;
}

bool NearBlobs::make_room(std::uint64_t bytes) {
  if (bytes > bytes_max_) return false;
  while (!copies_.empty() && bytes_ + bytes > bytes_max_) {
    std::error_code ignored;
    fs::remove(path_of(copies_.front()), ignored);
    bytes_ -= copies_.front().bytes;
    copies_.pop_front();
  }
  return bytes_ + bytes <= bytes_max_;
}

}  // namespace baton::pipeline
