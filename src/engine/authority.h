// An engine on a data directory, with its log, its time and its snapshots, and a box for what is asked of it.
// It has no loop of its own: whoever owns it takes a turn whenever there is something to do.
//
//   callers --ask--> inbox --> [ a turn: engine ] --flush--> [ log's thread ] --wake--> [ a turn: answers ]
//           --run--> visits -->    ^      ^------- snapshots, blobs to move ------ [ snapshot thread ]
//                              ask_here
//
// Visits stand in a line of their own: each sees all that was asked before it, and no request waits for one.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/options.h"
#include "engine/snapshot_thread.h"
#include "engine/turns.h"
#include "engine/work_news.h"
#include "log/file_log.h"
#include "log/posix_disk.h"

namespace baton::engine {

class Authority {
 public:
  using Done = std::function<void(Answer&&)>;

  // Recovers, and records all that expired meanwhile. From then on `wake` is called, on any thread, when
  // there is a reason for a turn.
  static Result<std::unique_ptr<Authority>> open(const std::string& directory, CoordinatorOptions options,
                                                 std::function<void()> wake);
  // Without stop() this is a crash as far as the log is concerned, which is safe.
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;

  // From any thread. `done` is called in a turn, when the outcome is durable. Both are false, and what was
  // given goes uncalled, once it has stopped.
  bool ask(core::Request request, Done done);
  // `now` runs in a turn between two requests, behind those that were asked before, again later if it
  // returns false; `then` is called once everything recorded so far is durable.
  bool run(std::function<bool(Engine&)> now, std::function<void()> then);
  Status make_snapshot();
  Result<Bytes> read(const core::BlobRef& blob);
  // Likewise of many, in fewer goes: those that lie side by side in a segment. Null where something is wrong:
  // `read` says what.
  std::vector<SharedBytes> read_together(const std::vector<core::BlobRef>& blobs);
  // Likewise of one, if it takes no waiting and nothing is wrong with it.
  std::optional<Bytes> read_at_once(const core::BlobRef& blob);
  // Takes in nothing more. The turns go on until everything asked is answered and the clean end is recorded.
  void stop();

  // From the one thread that drives it.
  Duration wait();              // until the next turn, unless it is woken
  void begin_turn(bool quiet);  // quiet: that long nothing came
  // Between the two: something has come, and is judged by the time it is now.
  void look_at_clock() { engine_->look_at_clock(time_->now()); }
  // As ask(), and between begin_turn() and end_turn() decided at once, where it lies, if there is room.
  bool ask_here(core::Request& request, const Done& done);
  // What comes of it, if there is room. Nobody may hear of it before it is durable, and `when_durable` tells.
  const Answer* decide_here(core::Request& request);
  // `then` is called in a turn, once all that was decided so far is durable.
  void when_durable(std::function<void()> then);
  // What came of what was asked here last, if it was decided at once. It is not durable yet.
  const Answer* decided_last() const { return may_ask_here_ ? &engine_->last_answer() : nullptr; }
  // So much was asked here that it is time for the disk, and for the first answers while all of it is in
  // the caches. What came by the inbox does not count: those outside have their part of every turn.
  bool is_turn_long() const;
  // What is asked now waits, in memory, for room in the log.
  bool is_behind() const { return !may_ask_here_; }
  std::size_t waiting();  // requests that do
  bool end_turn();        // false when it is all over
  // After that: lets the data directory go, and tells whether all is well.
  Status close();

  void note(const std::string& text) const { options_.on_note(text); }  // for the operator; any thread
  const Engine& engine() const { return *engine_; }                     // for the driving thread

  const RecoverySummary& recovery() const { return recovery_; }
  std::uint64_t flushes() const { return log_ ? log_->stats().flushes.load() : 0; }
  const log::FlushStats& flush_stats() const { return log_->stats(); }
  core::Lsn durable() const { return log_->durable(); }
  core::Epoch epoch() const { return log_->epoch(); }                          // higher at every start
  std::uint64_t disk_free_bytes() const { return turns_->disk_free_bytes(); }  // about a second ago
  // Of that, what the log and its snapshots are to have.
  std::uint64_t disk_set_aside_bytes() const { return turns_->disk_set_aside_bytes(); }
  const WorkNews& work_news() const { return work_news_; }

 private:
  struct Asked {
    core::Request request;
    Done done;
  };
  struct Visit {
    std::function<bool(Engine&)> now;
    std::function<void()> then;
    std::uint64_t after = 0;  // so many requests ever came before it by the inbox
  };

  Authority(CoordinatorOptions options, std::function<void()> wake);
  Status start();
  Clock& clock() { return options_.clock == nullptr ? system_clock_ : *options_.clock; }
  SnapshotCalls snapshot_calls();
  template <class Add>
  bool put(const Add& add);
  void take_inbox();
  void handle_taken();
  void receive_visits();
  void flush();
  bool may_handle();
  bool handle(Asked& asked);
  void deliver();
  bool finish();
  void give_up(const Error& error);
  void drop_everything();
  Result<Bytes> read_bytes(core::Lsn lsn, std::uint32_t offset, std::size_t length);

  CoordinatorOptions options_;
  const std::function<void()> wake_;
  RecoverySummary recovery_;
  WorkNews work_news_;
  SystemClock system_clock_;
  std::unique_ptr<log::PosixDisk> disk_;
  std::unique_ptr<log::FileLog> log_;
  std::unique_ptr<CoordinatorTime> time_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Housekeeper> housekeeper_;
  std::unique_ptr<Turns> turns_;

  std::mutex mutex_;
  std::vector<Asked> inbox_;
  std::vector<Visit> visits_inbox_;
  std::uint64_t asked_ = 0;             // requests that ever came by the inbox
  std::atomic<bool> stopping_ = false;  // nothing more is taken in; changed under the mutex

  // The driving thread's own.
  std::vector<Asked> taken_;       // from the inbox
  std::size_t next_ = 0;           // the first of them not yet handled
  std::uint64_t decided_ = 0;      // of those that ever came by the inbox
  std::deque<Visit> visits_;       // not yet received
  std::size_t handled_ = 0;        // requests and visits in this turn
  std::size_t from_inbox_ = 0;     // of them
  std::size_t received_ = 0;       // visits in this turn
  std::size_t look_again_at_ = 0;  // at the disk, when there were so many
  bool may_ask_here_ = false;      // a turn has begun, and nobody waits for room
  std::deque<Done> callers_;       // in the order of the engine's answers
  std::deque<std::pair<core::Lsn, std::function<void()>>> visitors_;
  Status outcome_;

  std::unique_ptr<SnapshotThread> snapshots_;
};

}  // namespace baton::engine
