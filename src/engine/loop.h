// The coordinator's thread: takes what was asked, runs turns of the engine, delivers what is durable.
//
//   callers --inbox--> [ loop thread: engine ] --flush--> [ log's thread ] --wake--> [ loop thread: answers ]
//                                     ^------- snapshots, blobs to move ------ [ housekeeping thread ]
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>

#include "engine/coordinator.h"
#include "engine/coordinator_time.h"
#include "log/file_log.h"
#include "log/posix_disk.h"

namespace baton {

class Coordinator::Loop {
 public:
  static Result<std::unique_ptr<Loop>> open(const std::string& directory, CoordinatorOptions options);
  ~Loop();

  // Both are false, and what was given goes uncalled, once the loop has stopped.
  bool ask(core::Request request, std::function<void(engine::Answer)> done);
  // Runs on the loop's thread between two turns, again later if it returns false; `then` is called once
  // everything recorded so far is durable.
  bool run(std::function<bool(engine::Engine&)> now, std::function<void()> then);
  Status close();
  // Makes a snapshot and cleans up behind it.
  Status tidy();
  Result<Bytes> read(const core::BlobRef& blob);
  const RecoverySummary& recovery() const { return recovery_; }
  std::uint64_t flushes() const { return log_ ? log_->flushes() : 0; }

 private:
  struct Asked {
    core::Request request;
    std::function<void(engine::Answer)> done;
  };
  struct Visit {
    std::function<bool(engine::Engine&)> now;
    std::function<void()> then;
  };
  using Item = std::variant<Asked, Visit>;

  Loop() = default;
  Status start();
  void run_loop();
  bool take_inbox();
  void handle_taken();
  bool handle(Item& item);
  void deliver();
  void check_disk();
  void check_wall_clock();
  bool finish();
  void wake();
  void give_up(const Error& error);
  bool put(Item item);
  void drop_everything();
  void run_housekeeping();

  CoordinatorOptions options_;
  RecoverySummary recovery_;
  engine::SystemClock clock_;
  std::mutex mutex_;
  std::condition_variable loop_wakes_;
  std::vector<Item> inbox_;
  bool woken_ = false;
  bool stopping_ = false;   // no more is taken in
  bool abandoned_ = false;  // the object goes without close(), or the log has failed

  // Below what its flusher's thread touches, so that it goes first.
  std::unique_ptr<log::PosixDisk> disk_;
  std::unique_ptr<log::FileLog> log_;
  std::unique_ptr<engine::CoordinatorTime> time_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::Housekeeper> housekeeper_;

  // The loop thread's own.
  std::vector<Item> taken_;                                  // from the inbox
  std::size_t next_ = 0;                                     // the first of them not yet handled
  std::deque<std::function<void(engine::Answer)>> callers_;  // in the order of the engine's answers
  std::deque<std::pair<core::Lsn, std::function<void()>>> visitors_;
  Instant disk_checked_;
  std::uint64_t left_in_segment_ = 0;  // when the disk was last looked at
  Instant wall_checked_;
  core::Lsn marked_ = 0;  // no client's entry has come since this one
  Status closed_ = {};

  std::mutex tidying_;  // one snapshot at a time; never held by the loop's thread
  std::mutex housekeeping_mutex_;
  std::condition_variable housekeeping_wakes_;
  bool housekeeping_wanted_ = false;
  bool housekeeping_stops_ = false;

  std::thread loop_thread_;
  std::thread housekeeping_thread_;
};

}  // namespace baton
