#include "engine/work_news.h"

#include <chrono>

#include "core/stream/outlook.h"

namespace baton::engine {

void WorkNews::saw(const core::State& state, const core::Event& event, const core::Stamp& at) {
  if (!core::brings_work(state, event, at)) return;
  newest_ = at.lsn;
  if (untold_ == 0) untold_ = at.lsn;
}

// Under load there is always an entry that is newer than what is durable; nobody waits for a pause.
void WorkNews::durable(core::Lsn lsn) {
  if (untold_ == 0 || untold_ > lsn) return;
  untold_ = newest_ > lsn ? lsn + 1 : 0;  // or a little later, so somebody may be woken too early
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
