#include "server/queue_counts.h"

#include <string>

#include "core/names.h"

namespace baton::server {
namespace {

constexpr std::uint32_t kNowhere = QueueCounts::kQueuesMax;

// Which of kWhat has happened, and to which task.
struct Happened {
  std::size_t what = QueueCounts::kWhat.size();  // nothing that is counted
  core::Lsn task = 0;
};

Happened happened(const core::Event& event, core::Lsn lsn) {
  if (std::holds_alternative<core::TaskCreated>(event)) return {0, lsn};
  if (const auto* granted = std::get_if<core::LeaseGranted>(&event)) return {1, granted->task};
  if (const auto* expired = std::get_if<core::LeaseExpired>(&event)) return {2, expired->task};
  if (const auto* completed = std::get_if<core::TaskCompleted>(&event)) return {3, completed->task};
  if (const auto* dead = std::get_if<core::TaskDead>(&event)) return {5, dead->task};
  // What is given back unharmed has not failed.
  const auto* failed = std::get_if<core::TaskFailed>(&event);
  if (failed != nullptr && failed->outcome != core::Ended::released) return {4, failed->task};
  return {};
}

}  // namespace

void QueueCounts::recorded(const core::Event& event, const core::Stamp& stamp) {
  const auto [what, lsn] = happened(event, stamp.lsn);
  if (what == kWhat.size()) return;
  const core::Slot task = state_.ids.find(lsn);
  if (task != 0) ++counts_of(state_.lanes[state_.tasks[task].lane].queue).of[what];
}

// A queue that is empty goes, and another one may take its slot; then its name tells.
QueueCounts::Counts& QueueCounts::counts_of(core::Slot queue) {
  const core::Queue& known = state_.queues[queue];
  if (queue >= last_places_.size()) last_places_.resize(queue + 1, kNowhere);
  std::uint32_t& place = last_places_[queue];
  if (place < each_.size() && each_[place].queue == known.name && each_[place].ns == known.ns)
    return each_[place];
  const std::string name(core::ScopedName(known.ns, known.name));
  if (const auto found = places_.find(name); found != places_.end()) return each_[place = found->second];
  if (each_.size() == kQueuesMax) return others_;
  place = places_[name] = static_cast<std::uint32_t>(each_.size());
  return each_.emplace_back(Counts{.ns = known.ns, .queue = known.name});
}

}  // namespace baton::server
