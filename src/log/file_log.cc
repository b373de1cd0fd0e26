#include "log/file_log.h"

#include <time.h>

#include <utility>

#include "base/check.h"

namespace baton::log {
namespace {

std::uint64_t now_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

}  // namespace

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

bool FileLog::awaits_successor() {
  const std::lock_guard lock(mutex_);
  const Successor& successor = writer_->successor();
  awaited_ = !successor.ready() && !successor.last_attempt_failed() && writer_->is_near_end();
  return awaited_;
}

Place FileLog::append(std::uint16_t type, Instant time, ByteView body) {
  const std::lock_guard lock(mutex_);
  const Place place = writer_->append(type, time, body);
  has_room_.store(writer_->has_room(), std::memory_order_relaxed);
  return place;
}

Headroom FileLog::headroom() const {
  const std::lock_guard lock(mutex_);
  return {.left_in_segment = writer_->left_in_segment(),
          .can_rotate = !writer_->successor().last_attempt_failed()};
}

void FileLog::start_flush() {
  {
    const std::lock_guard lock(mutex_);
    if (flush_wanted_ || writer_->last() == writer_->durable()) return;
    flush_wanted_ = true;
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
    flusher_wakes_.wait(lock, [&] { return flush_wanted_ || stopping_; });
    if (stopping_) return;
    flush_wanted_ = false;
    flushing_ = true;
    const bool flushed = flush_next(lock);
    flushing_ = false;
    flush_ended_.notify_all();
    if (!flushed || !wake_) continue;
    lock.unlock();
    wake_();
    lock.lock();
  }
}

void FileLog::flush_here() {
  std::unique_lock lock(mutex_);
  if (flushing_ || flush_wanted_) {
    flush_wanted_ = true;  // the one in flight may have begun without the newest
    return;
  }
  flushing_ = true;
  flush_next(lock);
  flushing_ = false;
}

// `lock` is held on entry and on return. False if there was nothing to flush, or nothing may be flushed any
// more.
bool FileLog::flush_next(std::unique_lock<std::mutex>& lock) {
  auto flush = error_ || stopping_ ? std::nullopt : writer_->begin_flush();
  if (!flush) return false;
  has_room_.store(true, std::memory_order_relaxed);  // a new batch fills from here on
  lock.unlock();
  const std::uint64_t began = now_us();
  const Status done = writer_->perform(*flush);
  stats_.count(now_us() - began, flush->last - durable(), flush->bytes.size());
  lock.lock();
  if (done) {
    durable_.store(flush->last, std::memory_order_release);
    writer_->finish(std::move(*flush));
  } else {
    error_ = done.error();  // the first and last: no flush follows a failed one
  }
  if (!prepare_wanted_ && !writer_->successor().ready()) {
    prepare_wanted_ = true;
    preparer_wakes_.notify_one();
  }
  return true;
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
    if (!std::exchange(awaited_, false)) continue;
    lock.unlock();
    if (wake_) wake_();
    lock.lock();
  }
}

bool FileLog::end_segment() {
  const std::lock_guard lock(mutex_);
  return writer_->end_segment();
}

void FileLog::prepare_rotation() {
  {
    const std::lock_guard lock(mutex_);
    prepare_wanted_ = true;
  }
  preparer_wakes_.notify_one();
}

Status FileLog::settle() {
  start_flush();
  {
    std::unique_lock lock(mutex_);
    flush_ended_.wait(lock, [&] { return !flushing_ && !flush_wanted_; });
  }
  return failure();
}

Status FileLog::close() {
  if (auto settled = settle(); !settled) return settled;
  stop_threads();
  return writer_->close();
}

}  // namespace baton::log
