#include "server/reader.h"

#include <utility>

namespace baton::server {

Reader::Reader(Read read, Post post)
    : read_(std::move(read)), post_(std::move(post)), thread_([this] { run(); }) {}

Reader::~Reader() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wakes_.notify_one();
  thread_.join();
}

void Reader::fetch(const core::BlobRef& blob, Done done) {
  ++under_way_;
  {
    const std::lock_guard lock(mutex_);
    wanted_.emplace_back(blob, std::move(done));
    if (wanted_.size() > 1) return;  // it is awake
  }
  wakes_.notify_one();
}

void Reader::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wakes_.wait(lock, [&] { return stops_ || !wanted_.empty(); });
    if (stops_) return;
    std::deque<std::pair<core::BlobRef, Done>> taken;
    taken.swap(wanted_);
    lock.unlock();
    // All that was wanted goes back at once: the loop is woken once for it.
    std::vector<std::pair<Done, Result<Bytes>>> read;
    for (auto& [blob, done] : taken) read.emplace_back(std::move(done), read_(blob));
    post_([this, read = std::move(read)]() mutable {
      under_way_ -= read.size();
      for (auto& [done, bytes] : read) done(std::move(bytes));
    });
    lock.lock();
  }
}

}  // namespace baton::server
