// After the faults end: everything that was accepted comes to an end in bounded time, and what the log says
// is what everyone sees.
#include <fmt/format.h>

#include <algorithm>

#include "engine/verify.h"
#include "tests/sim/world.h"

namespace baton::sim {
namespace {

constexpr std::int64_t kSettleMs = 3000;      // L1, L3, L7: within this, things are noticed
constexpr std::int64_t kConvergeMs = 60'000;  // L2: everything has ended, and …
constexpr std::int64_t kPerTaskMs = 500;      // … so much more for each task
constexpr std::uint64_t kWatchdogSteps = 200'000;
constexpr std::uint64_t kCheckEvery = 16;  // steps

}  // namespace

void World::heal() {
  say("from here on nothing fails");
  healed_at_ = std::max(clock_.now, node_.busy_until());
  next_item_ = scenario_.items.size();
  disk_.heal();
  cut_.reset();
  next_recovery_.reset();
  node_.reads_fail = false;
  node_.slow_flush(0);
  calls_.heal();
  for (Worker& worker : workers_) worker.become_honest();
  for (StreamInstance& instance : instances_) instance.become_honest();
}

// Again and again, for a client may still be trying to pause one.
void World::resume_queues() {
  if (clock_.now < resumed_at_ + kSettleMs / 2) return;
  resumed_at_ = clock_.now;
  for (std::uint64_t queue = 0; queue < scenario_[Knob::queues]; ++queue) {
    calls_.ask(0, core::ResumeQueue{.ns = kNamespace, .queue = fmt::format("q{}", queue)}, 1);
  }
}

bool World::all_is_done() const {
  if (!node_.running() || node_.backlog() > 0) return false;
  if (!instances_.empty() && witness_.streams().waiting() > 0) return false;
  return std::ranges::all_of(witness_.model().tasks(),
                             [](const auto& entry) { return is_final(entry.second.state); });
}

void World::converge() {
  const std::int64_t limit =
      healed_at_ + kConvergeMs + kPerTaskMs * static_cast<std::int64_t>(scenario_[Knob::tasks_max]);
  const bool someone = !workers_.empty();
  for (std::uint64_t steps = 0; !refused_; ++steps) {
    resume_queues();
    step();
    if (steps % kCheckEvery != 0) continue;
    if (clock_.now > healed_at_ + kSettleMs) check_liveness();
    if (!someone && clock_.now > healed_at_ + 2 * kSettleMs) return;
    if (clock_.now > healed_at_ + kSettleMs && all_is_done()) return;
    if (clock_.now > limit || steps > kWatchdogSteps)
      throw Violation{"L2", "the faults have ended, and still not every task or message has come to its end"};
  }
}

void World::check_liveness() {
  if (!node_.running()) throw Violation{"L4", "the coordinator does not come up"};
  const core::State& state = node_.engine().state();
  if (!state.expiries.empty() && state.expiries.first().at + milliseconds(kSettleMs) < node_.engine().now())
    throw Violation{"L3", "a lease has expired and nobody recorded it"};
  if (healed_time_ == Instant{}) healed_time_ = node_.engine().now();
  for (const auto& [lsn, task] : witness_.model().tasks()) {
    if (task.state != core::TaskState::waiting || task.is_doomed() || workers_.empty()) continue;
    const Instant eligible = std::max(task.since, healed_time_);
    const auto backlog = static_cast<std::int64_t>(witness_.model().tasks().size());
    if (eligible + milliseconds(kSettleMs + kPerTaskMs * backlog) < node_.engine().now())
      throw Violation{"L1", fmt::format("task {} is eligible, workers ask, and nobody gets it", lsn)};
  }
  if (!node_.admits()) throw Violation{"L7", "there is space again and submissions are still refused"};
}

// At rest, seen from every side: live, from snapshot and log, from the first entry, from the model.
void World::check_end() {
  if (!node_.running()) return;
  witness_.compare_all(node_.engine().state());
  node_.check_blobs();
  const core::State again = witness_.ledger().replay();
  if (again.digest != node_.engine().state().digest)
    throw Violation{"I6", "a second replay gives another state"};
  for (const Worker& worker : workers_) {
    if (worker.pulls_answered() == 0) throw Violation{"L6", worker.name() + " was never answered"};
  }
  node_.stop();
  crashed();
  if (scenario_.mode() != Mode::lying) {
    const auto report = engine::verify(disk_, false);
    if (!report || report->finding != engine::Finding::intact)
      throw Violation{"I1", "verify: " + (report ? report->message : report.error().message)};
  }
  restart();
  if (!refused_ && !node_.running())
    throw Violation{"L4", "the coordinator does not come up after a clean stop"};
}

}  // namespace baton::sim
