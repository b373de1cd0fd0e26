#include "pipeline/inbox.h"

#include <chrono>
#include <utility>

namespace baton::pipeline {

void Inbox::add(std::function<void()> what) {
  if (is_closed_) return;
  all_.push_back(std::move(what));
  if (all_.size() == 1) arrived_.notify_one();
}

void Inbox::post(std::function<void()> what) {
  const std::lock_guard lock(mutex_);
  add(std::move(what));
}

void Inbox::post_chatter(std::function<void()> what) {
  std::unique_lock lock(mutex_);
  if (std::this_thread::get_id() != taker_)
    has_room_.wait(lock, [this] { return is_closed_ || all_.size() < kChatterMax; });
  add(std::move(what));
}

void Inbox::wait(std::optional<Duration> at_most) {
  std::unique_lock lock(mutex_);
  const auto something = [this] { return !all_.empty(); };
  if (at_most)
    arrived_.wait_for(lock, std::chrono::milliseconds(at_most->ms), something);
  else
    arrived_.wait(lock, something);
}

std::vector<std::function<void()>> Inbox::take() {
  const std::lock_guard lock(mutex_);
  taker_ = std::this_thread::get_id();
  if (all_.size() >= kChatterMax) has_room_.notify_all();
  return std::exchange(all_, {});
}

void Inbox::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  all_.clear();
  has_room_.notify_all();
}

}  // namespace baton::pipeline
