#include "engine/work_news.h"

#include <chrono>

#include "core/stream/outlook.h"

namespace baton::engine {

void WorkNews::saw(const core::State& state, const core::Event& event, const core::Stamp& at) {
  if (core::brings_work(state, event, at)) newest_ = at.lsn;
}

void WorkNews::durable(core::Lsn lsn) {
  if (newest_ == told_ || newest_ > lsn) return;
  told_ = newest_;
  {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  told_all_.notify_all();
}

std::uint64_t WorkNews::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

bool WorkNews::wait(std::uint64_t known, Duration at_most, std::stop_token stop) const {
  std::unique_lock lock(mutex_);
  return told_all_.wait_for(lock, stop, std::chrono::milliseconds(at_most.ms),
                            [&] { return count_ > known; });
}

}  // namespace baton::engine
