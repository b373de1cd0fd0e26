#include "server/syncer.h"

namespace baton::server {

Syncer::Syncer(Post post) : post_(std::move(post)), thread_([this] { work(); }) {}

Syncer::~Syncer() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wakes_.notify_one();
  thread_.join();
}

void Syncer::run(Sync sync, Done done) {
  ++under_way_;
  {
    const std::lock_guard lock(mutex_);
    wanted_.emplace_back(std::move(sync), std::move(done));
  }
  wakes_.notify_one();
}

void Syncer::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wakes_.wait(lock, [&] { return stops_ || !wanted_.empty(); });
    if (wanted_.empty()) return;
    auto [sync, done] = std::move(wanted_.front());
    wanted_.pop_front();
    lock.unlock();
    post_([this, tell = std::move(done), synced = sync()] {
      --under_way_;
      tell(synced);
    });
    lock.lock();
  }
}

}  // namespace baton::server
