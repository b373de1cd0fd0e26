#include "server/lease_news.h"

namespace baton::server {

LeaseNews::Standing LeaseNews::standing(const HeldLease& held) const {
  const core::Slot slot = state_.ids.find(held.task.lsn);
  if (slot == 0) return Standing::ended_by_holder;  // or so long ago that nobody asks any more
  const core::Task& task = state_.tasks[slot];
  if (task.lease != 0 && state_.leases[task.lease].lsn == held.lease.lsn) return Standing::held;
  for (core::Slot at = task.endings; at != 0; at = state_.endings[at].next) {
    const core::Ending& ending = state_.endings[at];
    if (ending.lease != held.lease.lsn) continue;
    const bool lost = ending.how == core::Ended::expired || ending.how == core::Ended::dead;
    return lost ? Standing::lost : Standing::ended_by_holder;
  }
  return Standing::ended_by_holder;
}

void LeaseNews::watch(Finisher& who, const HeldLease& held) {
  if (!who.wants_news()) return;
  const auto [id, is_new] = ids_.try_emplace(&who, last_id_ + 1);
  if (is_new) listeners_.emplace(++last_id_, &who);
  // The reply waited until it was durable, and other requests were decided meanwhile.
  const Standing now = standing(held);
  if (now == Standing::held) watches_[held.lease.lsn] = {id->second, held};
  if (now == Standing::lost) news_.push_back({state_.last, {id->second, held}});
}

void LeaseNews::forget(Finisher& who) {
  const auto found = ids_.find(&who);
  if (found == ids_.end()) return;
  listeners_.erase(found->second);
  ids_.erase(found);
}

void LeaseNews::recorded(const core::Event& event) {
  if (watches_.empty()) return;
  if (const auto* completed = std::get_if<core::TaskCompleted>(&event)) {
    ended(completed->lease, false);
  } else if (const auto* failed = std::get_if<core::TaskFailed>(&event)) {
    ended(failed->lease, false);
  } else if (const auto* expired = std::get_if<core::LeaseExpired>(&event)) {
    ended(expired->lease, true);
  } else if (const auto* dead = std::get_if<core::TaskDead>(&event)) {
    // The entry names the task alone; the lease it ended, if there was one, is the last the task remembers.
    const core::Slot slot = state_.ids.find(dead->task);
    ended(state_.endings[state_.tasks[slot].endings].lease, true);
  }
}

void LeaseNews::ended(core::Lsn lease, bool is_news) {
  const auto watch = watches_.find(lease);
  if (watch == watches_.end()) return;
  if (is_news) news_.push_back({state_.last, watch->second});
  watches_.erase(watch);
}

void LeaseNews::tell(core::Lsn durable) {
  for (; !news_.empty() && news_.front().lsn <= durable; news_.pop_front()) {
    const auto listener = listeners_.find(news_.front().watch.who);
    if (listener != listeners_.end()) listener->second->lost(news_.front().watch.held);
  }
}

}  // namespace baton::server
