#include "engine/work_news.h"

#include <chrono>

namespace baton::engine {
namespace {

bool may_bring_work(const core::Event& event) {
  if (const auto* batch = std::get_if<core::WorkBatchApplied>(&event))
    return !batch->stored.empty() || !batch->reports.empty();
  return std::holds_alternative<core::InstancesEvicted>(event) ||
         std::holds_alternative<core::InstanceLeft>(event) ||
         std::holds_alternative<core::LettersReplayed>(event) ||
         std::holds_alternative<core::LettersPurged>(event);
}

}  // namespace

void WorkNews::saw(const core::Event& event, core::Lsn lsn) {
  if (may_bring_work(event)) newest_ = lsn;
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
