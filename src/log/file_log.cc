#include "log/file_log.h"

#include <utility>

#include "base/check.h"

namespace baton::log {

FileLog::FileLog(std::unique_ptr<LogWriter> writer, std::function<void()> wake)
    : writer_(std::move(writer)), wake_(std::move(wake)), durable_(writer_->durable()) {
  flusher_ = std::thread([this] { run_flusher(); });
  preparer_ = std::thread([this] { run_preparer(); });
}

FileLog::~FileLog() { stop_threads(); }

void FileLog::stop_threads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  flusher_wakes_.notify_one();
  preparer_wakes_.notify_one();
  if (flusher_.joinable()) flusher_.join();
  if (preparer_.joinable()) preparer_.join();
}

Place FileLog::append(std::uint16_t type, Instant time, ByteView body) {
  return writer_->append(type, time, body);
}

// A flush that has ended is taken over by the loop's thread, to which the appending side belongs.
void FileLog::harvest() {
  std::optional<Flush> done;
  {
    const std::lock_guard lock(mutex_);
    done = std::exchange(done_, std::nullopt);
  }
  if (done) writer_->finish(std::move(*done));
}

void FileLog::start_flush() {
  harvest();
  auto flush = writer_->begin_flush();
  if (!flush) return;
  {
    const std::lock_guard lock(mutex_);
    BATON_CHECK(!flushing_ && !stopping_);
    waiting_ = std::move(flush);
    flushing_ = true;
  }
  flusher_wakes_.notify_one();
}

Status FileLog::failure() const {
  const std::lock_guard lock(mutex_);
  if (error_) return std::unexpected(*error_);
  return {};
}

void FileLog::run_flusher() {
  std::unique_lock lock(mutex_);
  for (;;) {
    flusher_wakes_.wait(lock, [&] { return waiting_ || stopping_; });
    if (!waiting_) return;
    Flush flush = std::move(*waiting_);
    waiting_.reset();
    lock.unlock();

    const Status done = writer_->perform(flush);
    const Lsn last = flush.last;

    lock.lock();
    if (done) {
      done_ = std::move(flush);
      durable_.store(last, std::memory_order_release);
      flushes_.fetch_add(1, std::memory_order_relaxed);
    } else {
      error_ = done.error();  // the first and last: no flush follows a failed one
    }
    flushing_ = false;
    prepare_wanted_ = prepare_wanted_ || !writer_->successor().ready();
    lock.unlock();
    flush_ended_.notify_all();
    preparer_wakes_.notify_one();
    if (wake_) wake_();
    lock.lock();
  }
}

// A thread of its own, because filling a segment with zeros takes longer than anyone should wait for a flush.
void FileLog::run_preparer() {
  std::unique_lock lock(mutex_);
  for (;;) {
    preparer_wakes_.wait(lock, [&] { return prepare_wanted_ || stopping_; });
    if (stopping_) return;
    prepare_wanted_ = false;
    lock.unlock();
    (void)writer_->successor().prepare();  // remembered there, and tried again after the next flush
    lock.lock();
  }
}

void FileLog::retry_successor() {
  {
    const std::lock_guard lock(mutex_);
    prepare_wanted_ = true;
  }
  preparer_wakes_.notify_one();
}

Status FileLog::close() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      flush_ended_.wait(lock, [&] { return !flushing_; });
    }
    if (auto failed = failure(); !failed) return failed;
    start_flush();
    if (durable() == last()) break;
  }
  stop_threads();
  harvest();
  return writer_->close();
}

}  // namespace baton::log
