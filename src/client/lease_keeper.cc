// The keeper's part of a shift: leases are extended while handlers work, and their loss is told.
#include <algorithm>
#include <chrono>

#include "client/call.h"
#include "client/shift.h"

namespace baton::client {
namespace {

constexpr std::size_t kExtendItemsMax = 512;  // in one request
constexpr std::size_t kEarlyLossesMax = 64;

}  // namespace

void Worker::Shift::keep() {
  const std::int64_t every = std::max<std::int64_t>(options_.ttl.ms / 3, 1);
  std::int64_t extend_at = now_ms() + every;
  std::int64_t beat_at = now_ms();
  Lock lock(mutex_);
  while (!ends_) {
    const std::int64_t now = now_ms();
    const bool extends = now >= extend_at;
    const bool beats = now >= beat_at;
    if (extends) extend_at = now + every;
    if (beats) beat_at = now + std::max<std::int64_t>(options_.heartbeat.ms, 1);
    std::int64_t until = std::min(extend_at, beat_at);
    std::vector<Held> all;
    std::vector<Running> overdue;
    for (Running& one : running_) {
      if (extends && !one.is_lost) all.push_back(one.held);
      if (one.stop.stop_requested()) continue;
      // No extension came through in time, so somebody else may have the task. Whether its result still
      // counts is for the coordinator to say.
      if (now >= one.held_until) overdue.push_back(one);
      until = std::min(until, one.held_until);
    }
    lock.unlock();
    for (Running& one : overdue) {
      report(
          {Errc::lease_lost, one.held.task + ": no extension came through in time; the handler is stopped"});
      one.stop.request_stop();
    }
    for (auto begin = all.begin(); begin != all.end();) {
      const auto end = begin + std::min<std::ptrdiff_t>(all.end() - begin, kExtendItemsMax);
      extend({begin, end});
      begin = end;
    }
    if (beats) beat();
    lock.lock();
    const auto wait = std::chrono::milliseconds(std::max<std::int64_t>(until - now_ms(), 1));
    changed_.wait_for(lock, wait, [&] { return ends_; });
  }
}

// The keeper does not wait for answers: one that is slow to come must not keep the others from being sent.
void Worker::Shift::extend(const std::vector<Held>& batch) {
  using Answer = Result<std::vector<Result<Duration>>>;
  const auto deal = [this, batch, asked_at = now_ms()](const Answer& extended) {
    if (!extended) return report(extended.error());
    std::vector<Held> gone;
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t at = 0; at < std::min(batch.size(), extended->size()); ++at) {
        const Result<Duration>& item = (*extended)[at];
        const auto one = std::ranges::find(running_, batch[at], &Running::held);
        if (one == running_.end()) continue;
        if (item) one->held_until = std::max(one->held_until, asked_at + item->ms);
        if (!item && is_loss(item.error().code)) gone.push_back(batch[at]);
      }
    }
    lost(gone);
  };
  client_.extend_many(batch, options_.ttl, later<Answer>(deal), options_.ttl);
}

void Worker::Shift::lost(const std::vector<Held>& held) {
  std::vector<std::stop_source> stops;
  {
    const std::lock_guard lock(mutex_);
    for (const Held& one : held) {
      const auto place = std::ranges::find(running_, one, &Running::held);
      if (place == running_.end()) {
        early_losses_.push_back(one);
        if (early_losses_.size() > kEarlyLossesMax) early_losses_.pop_front();
        continue;
      }
      place->is_lost = true;
      stops.push_back(place->stop);
    }
  }
  changed_.notify_all();
  for (std::stop_source& stop : stops)
    stop.request_stop();  // not under the lock: it calls whoever asked for it
}

void Worker::Shift::beat() {
  const auto deal = [this](const Result<std::uint64_t>& leases) {
    if (!leases) report(leases.error());
  };
  client_.heartbeat({.worker = options_.name,
                     .capacity = static_cast<std::uint32_t>(options_.slots),
                     .capabilities = options_.capabilities},
                    later<Result<std::uint64_t>>(deal), options_.heartbeat);
}

}  // namespace baton::client
