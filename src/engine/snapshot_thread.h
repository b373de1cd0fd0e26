// Makes snapshots beside the loop, on a thread of its own, and cleans up behind them.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>

#include "base/time.h"
#include "engine/housekeeper.h"

namespace baton::engine {

// What the loop does for it. Both return when the outcome is durable, or false if the loop has stopped.
struct SnapshotCalls {
  std::function<bool(const SnapshotMade&)> record;
  std::function<bool(std::span<core::MoveBlob>)> move;
  std::function<void(const std::string&)> note;  // what an operator should know
};

// After a failure.
struct SnapshotPace {
  Duration retry_after = seconds(60);
  Duration look_every = seconds(1);  // for room on the disk, if it was that
};

class SnapshotThread {
 public:
  SnapshotThread(Housekeeper& housekeeper, SnapshotCalls calls, SnapshotPace pace = {});
  ~SnapshotThread() { stop(); }
  SnapshotThread(const SnapshotThread&) = delete;
  SnapshotThread& operator=(const SnapshotThread&) = delete;

  void want();        // one is due
  Status make_now();  // on the caller's thread
  void stop();        // returns when none is under way; none follows

 private:
  void run();
  Status make(const std::function<Status()>& rest);

  Housekeeper& housekeeper_;
  const SnapshotCalls calls_;
  const SnapshotPace pace_;
  std::mutex making_;  // one at a time
  std::mutex mutex_;
  std::condition_variable wakes_;
  bool wanted_ = false;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace baton::engine
