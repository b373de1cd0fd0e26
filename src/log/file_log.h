// The log on a real disk: a thread writes and syncs while the loop goes on gathering records. A flush that is
// wanted while one is in flight follows it at once, with all that was gathered until then.
//
// All of Log is called by the loop thread only. `wake` is called on another thread after each flush of that
// thread, whether it succeeded or not, and when awaits_successor() has become false; the loop then looks at
// durable() and failure().
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "log/flush_stats.h"
#include "log/log.h"
#include "log/writer.h"

namespace baton::log {

class FileLog final : public Log {
 public:
  FileLog(std::unique_ptr<LogWriter> writer, std::function<void()> wake);
  // Without close() this is a crash as far as the log is concerned: what was not flushed is gone.
  ~FileLog() override;

  bool has_room() const override { return has_room_.load(std::memory_order_relaxed); }
  Place append(std::uint16_t type, Instant time, ByteView body) override;
  void start_flush() override;
  Lsn last() const override { return writer_->last(); }  // only the loop's own thread changes it
  Lsn durable() const override { return durable_.load(std::memory_order_acquire); }
  Status failure() const override;

  // Flushes on the caller's thread what start_flush() would have another do, unless that one is at work. For
  // one who has nothing else to do meanwhile: two threads less have to wake up.
  void flush_here();

  Headroom headroom() const override;
  void prepare_rotation() override;
  bool end_segment() override;

  // True near the end of a segment while the next one is being made: it is not known yet whether there will
  // be one, and on a full disk the end is kept for those who were let in.
  bool awaits_successor();
  // Returns when everything appended is durable, or the log has failed.
  Status settle();
  // Settles and records the clean end. Nothing may be appended afterwards.
  Status close();

  const FlushStats& stats() const { return stats_; }
  std::uint32_t epoch() const { return writer_->epoch(); }
  Segments& segments() { return writer_->segments(); }  // may be read from any thread

 private:
  void run_flusher();
  void run_preparer();
  void stop_threads();
  bool flush_next(std::unique_lock<std::mutex>& lock);

  std::unique_ptr<LogWriter> writer_;
  std::function<void()> wake_;
  std::atomic<Lsn> durable_;
  std::atomic<bool> has_room_ = true;  // asked before every request, so without the lock
  FlushStats stats_;

  mutable std::mutex mutex_;  // guards the writer's appending side and everything below
  std::condition_variable flusher_wakes_;
  std::condition_variable preparer_wakes_;
  std::condition_variable flush_ended_;
  std::optional<Error> error_;
  bool flush_wanted_ = false;
  bool flushing_ = false;
  bool stopping_ = false;
  bool prepare_wanted_ = true;
  bool awaited_ = false;  // somebody was told that the next segment is awaited

  std::thread flusher_;
  std::thread preparer_;
};

}  // namespace baton::log
