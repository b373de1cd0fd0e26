#include "pipeline/pulse.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/stop_after.h"
#include "pipeline/steady_time.h"

namespace baton::pipeline {
namespace {

constexpr Duration kGoodbye = seconds(2);  // a courtesy: whoever does not hear it notices the silence
constexpr Duration kBetweenNews = milliseconds(200);  // one that takes much on tells it no more often

std::string in_seconds(Duration time) { return std::to_string(time.ms / 1000) + " s"; }

}  // namespace

bool is_transient(Errc code) {
  return code == Errc::unavailable || code == Errc::deadline_exceeded || code == Errc::outcome_unknown ||
         code == Errc::io_failed || code == Errc::exhausted || code == Errc::no_space;
}

void Pulse::start(const WorkerRegistration& self) {
  index_ = self.index;
  session_ = self.session;
  learn_lease({});
  thread_ = std::jthread([this](const std::stop_token& end) { beat(end); });
  guard_ = std::jthread([this](const std::stop_token& end) { guard(end); });
}

void Pulse::stop() {
  thread_.request_stop();
  guard_.request_stop();
  thread_.join();
  guard_.join();
  const StopAfter enough(kGoodbye);
  (void)coordinator_.send_heartbeat({.index = index_, .session = session_, .leaving = true}, enough.token());
}

bool Pulse::keep(const Assigned& assigned) {
  learn_lease(thread_.get_stop_token());
  const std::int64_t until_ms = assigned.asked_at_ms + lease().ms;
  if (steady_ms() >= until_ms) return false;
  const std::lock_guard lock(mutex_);
  held_[assigned.lease] = {{assigned.assignment.module, assigned.attempt}, until_ms};
  has_news_ = true;
  learned_.notify_all();
  return true;
}

bool Pulse::has(const std::string& lease) {
  const std::lock_guard lock(mutex_);
  const auto one = held_.find(lease);
  return one != held_.end() && !one->second.is_lost && steady_ms() < one->second.until_ms;
}

void Pulse::let_go(const std::string& lease) {
  const std::lock_guard lock(mutex_);
  held_.erase(lease);
}

void Pulse::beat(const std::stop_token& end) {
  heard_at_ms_ = steady_ms();
  std::optional<std::int64_t> sent_at_ms;
  const auto often = [this] { return std::min(options_.cancellation_poll, heartbeat()); };
  const auto briefly = [&] { return std::min(kBetweenNews, often()); };
  do {
    learn_lease(end);
    if (!sent_at_ms || has_news() || steady_ms() >= *sent_at_ms + heartbeat().ms) {
      sent_at_ms = steady_ms();
      if (!send(end)) return;
    } else if (const auto signal = coordinator_.is_cancellation_requested(end)) {
      heard_at_ms_ = steady_ms();
      if (*signal) listener_.cancelled((*signal)->reason);
    }
  } while (!rest(briefly(), end) && !rest(often() - briefly(), end, true));
}

void Pulse::learn_lease(const std::stop_token& end) {
  {
    const std::lock_guard lock(mutex_);
    if (is_lease_known_) return;
  }
  const auto opening = coordinator_.run_opening(end);
  if (!opening) return;
  const std::lock_guard lock(mutex_);
  if (std::exchange(is_lease_known_, true)) return;
  lease_ = opening->lease.value_or(options_.lease);
  learned_.notify_all();
}

Duration Pulse::lease() {
  const std::lock_guard lock(mutex_);
  return lease_;
}

// Two may get lost on the way.
Duration Pulse::heartbeat() { return std::min(options_.heartbeat, Duration{lease().ms / 3}); }

bool Pulse::rest(Duration time, const std::stop_token& end, bool until_news) {
  std::unique_lock lock(mutex_);
  learned_.wait_for(lock, end, std::chrono::milliseconds(time.ms),
                    [&, before = lease_] { return lease_ != before || (until_news && has_news_); });
  return end.stop_requested();
}

bool Pulse::has_news() {
  const std::lock_guard lock(mutex_);
  return has_news_;
}

// False: there is no use in another.
bool Pulse::send(const std::stop_token& end) {
  WorkerHeartbeat heartbeat{.index = index_, .session = session_};
  {
    const std::lock_guard lock(mutex_);
    has_news_ = false;
    for (const auto& [lease, one] : held_) {
      if (one.is_lost) continue;
      heartbeat.leases.push_back(lease);
      heartbeat.current_modules.push_back(one.begun.module);
    }
  }
  const std::int64_t sent_at_ms = steady_ms();
  const auto reply = coordinator_.send_heartbeat(heartbeat, end);
  if (!reply) {
    if (end.stop_requested()) return false;
    if (!is_transient(reply.error().code)) {
      listener_.ended(WorkerEnd::refused, reply.error().message);
      return false;
    }
    const Duration silence{steady_ms() - heard_at_ms_};
    if (silence > options_.unreachable_max)
      listener_.ended(WorkerEnd::coordination_lost, "the coordinator has not answered for " +
                                                        in_seconds(silence) + ": " + reply.error().message);
    return true;
  }
  heard_at_ms_ = steady_ms();
  if (reply->cancelled) listener_.cancelled(reply->cancelled->reason);
  for (const std::string& lease : reply->lost) lose(lease);
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& lease : heartbeat.leases) {
      if (const auto one = held_.find(lease); one != held_.end())
        one->second.until_ms = sent_at_ms + lease_.ms;
    }
  }
  if (reply->master_silent_for > options_.master_lost_after)
    listener_.ended(WorkerEnd::master_lost,
                    "the master has not been heard of for " + in_seconds(reply->master_silent_for));
  if (reply->closed) listener_.ended(WorkerEnd::closed, reply->closed->reason);
  return true;
}

// A little before their time rather than after it.
void Pulse::guard(const std::stop_token& end) {
  const auto often = [this] { return Duration{std::max<std::int64_t>(1, lease().ms / 20)}; };
  while (!rest(often(), end)) {
    const std::int64_t soon_ms = steady_ms() + often().ms;
    std::vector<std::string> overdue;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [lease, one] : held_) {
        if (soon_ms >= one.until_ms) overdue.push_back(lease);
      }
    }
    for (const std::string& lease : overdue) lose(lease);
  }
}

void Pulse::lose(const std::string& lease) {
  Begun begun;
  {
    const std::lock_guard lock(mutex_);
    const auto one = held_.find(lease);
    if (one == held_.end() || std::exchange(one->second.is_lost, true)) return;
    begun = one->second.begun;
  }
  listener_.lost(begun);
}

}  // namespace baton::pipeline
