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
    // Much of what was wanted goes back at once, so that the loop is woken once for it, but not so much that
    // replies pile up here.
    constexpr std::size_t kAtOnce = std::size_t{4} << 20;
    std::vector<std::pair<core::BlobRef, Done>> taken;
    for (std::size_t bytes = 0; !wanted_.empty() && bytes < kAtOnce; wanted_.pop_front()) {
      bytes += wanted_.front().first.length;
      taken.push_back(std::move(wanted_.front()));
    }
    lock.unlock();
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
