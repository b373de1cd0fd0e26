#include "engine/loop.h"

#include <chrono>
#include <utility>

namespace baton {

Result<std::unique_ptr<Coordinator::Loop>> Coordinator::Loop::open(const std::string& directory,
                                                                   CoordinatorOptions options) {
  auto loop = std::make_unique<Loop>();
  auto authority = engine::Authority::open(directory, std::move(options), [at = loop.get()] { at->wake(); });
  if (!authority) return std::unexpected(authority.error());
  loop->authority_ = std::move(*authority);
  loop->thread_ = std::thread([at = loop.get()] { at->run(); });
  return loop;
}

Coordinator::Loop::~Loop() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  wakes_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Coordinator::Loop::wake() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(woken_, true)) return;
  }
  wakes_.notify_one();
}

void Coordinator::Loop::run() {
  for (;;) {
    const Duration wait = authority_->wait();
    bool quiet = false;
    {
      std::unique_lock lock(mutex_);
      const bool woken =
          wakes_.wait_for(lock, std::chrono::milliseconds(wait.ms), [&] { return woken_ || abandoned_; });
      quiet = !woken && wait > Duration{};
      woken_ = false;
      if (abandoned_) return;
    }
    authority_->begin_turn(quiet);
    if (!authority_->end_turn()) return;
  }
}

Status Coordinator::Loop::close() {
  authority_->stop();
  if (thread_.joinable()) thread_.join();
  return authority_->close();
}

}  // namespace baton
