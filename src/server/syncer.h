// Waits for the disk on a thread of its own, so that the loop does not.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "base/result.h"

namespace baton::server {

class Syncer {
 public:
  using Sync = std::function<Status()>;                     // on the thread
  using Done = std::function<void(const Status&)>;          // on the loop's
  using Post = std::function<void(std::function<void()>)>;  // to the loop's thread

  explicit Syncer(Post post);
  ~Syncer();  // all is synced, though nobody is told any more
  Syncer(const Syncer&) = delete;
  Syncer& operator=(const Syncer&) = delete;

  // Both on the loop's thread.
  void run(Sync sync, Done done);
  bool is_busy() const { return under_way_ > 0; }

 private:
  void work();

  const Post post_;
  std::mutex mutex_;
  std::condition_variable wakes_;
  std::deque<std::pair<Sync, Done>> wanted_;
  bool stops_ = false;
  std::size_t under_way_ = 0;
  std::thread thread_;
};

}  // namespace baton::server
