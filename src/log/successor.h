// The next segment's file, made ahead of time, so that a rotation does not have to fill megabytes with
// zeros while requests wait.
//
// prepare() runs wherever there is time; take() is called by a rotation, waits for a prepare() that is
// under way, and makes the file itself if there is none.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "log/disk.h"

namespace baton::log {

inline constexpr const char* kSuccessorPath = "wal/next.tmp";

class Successor {
 public:
  Successor(Disk& disk, std::uint64_t file_bytes) : disk_(disk), file_bytes_(file_bytes) {}

  // A failure leaves no file behind and harms nothing yet; it is remembered by last_attempt_failed().
  Status prepare();
  Result<std::unique_ptr<File>> take();
  // The file that was taken has its own name now; kSuccessorPath is free for the next one.
  void renamed();

  bool ready() const { return ready_.load(); }
  bool last_attempt_failed() const { return failed_.load(); }

 private:
  Result<std::unique_ptr<File>> make();

  Disk& disk_;
  const std::uint64_t file_bytes_;
  std::mutex mutex_;  // held while a file is being made
  std::unique_ptr<File> file_;
  bool taken_ = false;  // and not yet renamed
  std::atomic<bool> ready_ = false;
  std::atomic<bool> failed_ = false;
};

}  // namespace baton::log
