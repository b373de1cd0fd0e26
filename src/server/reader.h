// Reads bytes from the log on a thread of its own, so that the loop never waits for the disk.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/bytes.h"
#include "base/result.h"
#include "core/task/task.h"

namespace baton::server {

class Reader {
 public:
  using Read = std::function<Result<Bytes>(const core::BlobRef&)>;
  using Done = std::function<void(Result<Bytes>)>;
  using Post = std::function<void(std::function<void()>)>;  // to the loop's thread

  Reader(Read read, Post post);
  ~Reader();  // what is still to be read is not
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Both on the loop's thread.
  void fetch(const core::BlobRef& blob, Done done);
  bool is_busy() const { return under_way_ > 0; }

 private:
  void run();

  const Read read_;
  const Post post_;
  std::mutex mutex_;
  std::condition_variable wakes_;
  std::deque<std::pair<core::BlobRef, Done>> wanted_;
  bool stops_ = false;
  std::size_t under_way_ = 0;
  std::thread thread_;
};

}  // namespace baton::server
