// The part of Expectation that holds what was recovered against what was said.
#include <fmt/format.h>

#include "base/check.h"
#include "core/ids.h"
#include "tests/crash/expectation.h"
#include "tests/crash/vocabulary.h"

namespace baton::crash {

namespace {
constexpr std::int64_t kClockSlackMs = 10;
}

void Expectation::compare(std::int64_t now) {
  for (const auto& [id, found] : recovered_) check_key(found);
  for (auto& [id, task] : tasks_) compare_task(id, task, now);
  for (const auto& [id, found] : recovered_) compare_recovered(found);
  if (!paused_.contains(recovered_paused_)) lose(recovered_paused_ ? "a resumed queue" : "a paused queue");
  paused_ = {recovered_paused_};
  recovered_.clear();
  recovered_paused_ = false;
}

// Every task was submitted by somebody: its key is one that was acknowledged, or the one that each client had
// under way.
void Expectation::check_key(const Recovered& found) {
  const auto dot = found.key.rfind('.');
  if (dot == std::string::npos) return invent(found.id + " has no key");
  const std::uint64_t number = std::stoull(found.key.substr(dot + 1));
  const std::uint64_t attempted = attempted_[found.key.substr(0, dot)];
  if (number > attempted) invent(fmt::format("{} with key {} was never submitted", found.id, found.key));
  if (refused_.contains(found.key) && !ids_.contains(found.key)) {
    invent(fmt::format("{} with key {} was refused", found.id, found.key));
  }
  const auto [known, is_new] = ids_.emplace(found.key, found.id);
  if (known->second != found.id) {
    invent(fmt::format("{} has the key {} of {}", found.id, found.key, known->second));
  }
  if (is_new) ++tally_.unknown;
  attempted_[found.key.substr(0, dot)] = std::max(attempted, number + 1);
  if (found.old != "-") requeued_.emplace(found.key, tasks_[found.old].key);
  Task& task = tasks_[found.id];
  task.key = found.key;
  task.queue = found.queue;
}

void Expectation::compare_task(const std::string& id, Task& task, std::int64_t now) {
  if (cancelling_.contains(task.key)) task.cancelling = true;
  const auto found = recovered_.find(id);
  if (found == recovered_.end()) {
    const bool may_be_finished = !task.completing.empty() || task.failing || task.cancelling;
    const bool may_be_purged = purging_ && (task.queue == kPurged || task.queue.empty()) && may_be_finished;
    if (!may_be_purged) lose(fmt::format("{} with key {} is not there", id, task.key));
    task.gone = true;
    return;
  }
  const Recovered& it = found->second;
  if (task.gone) invent(id + " was purged and is back");
  if (it.payload != hash_text(payload_of(origin(task.key)))) lose("the payload of " + id);
  if (!task.completed.empty()) {
    if (it.state != "completed") lose(fmt::format("{} was completed and is {}", id, it.state));
    if (it.note != hash_text(result_of(id, task.completed))) lose("the result of " + id);
  }
  if (task.failed && it.state != "failed") lose(fmt::format("{} had failed and is {}", id, it.state));
  if (task.cancelled && it.state != "dead") lose(fmt::format("{} was cancelled and is {}", id, it.state));
  if (task.holds.empty() || task.cancelling) return;
  const auto& [order, hold] = *task.holds.rbegin();
  if (hold.lease.empty() || hold.may_have_ended || hold.deadline <= now + kClockSlackMs) return;
  if (it.lease != fmt::format("{:x}-{:x}", order.first, order.second)) {
    lose(fmt::format("the lease {} of {}, which is {} under {}", hold.lease, id, it.state, it.lease));
  }
}

// No outcome that nobody asked for.
void Expectation::compare_recovered(const Recovered& found) {
  Task& task = tasks_[found.id];
  if (found.state == "completed") {
    bool explained = false;
    for (const std::string& lease : task.completing) {
      explained = explained || found.note == hash_text(result_of(found.id, lease));
      if (explained && task.completed.empty()) {
        task.completed = lease;
        ++tally_.unknown;
      }
      if (explained) break;
    }
    if (!explained) invent(found.id + " is completed with a result that no worker gave");
  }
  if (found.state == "failed" && !task.failing) invent(found.id + " has failed and no worker said so");
  if (found.state == "dead" && !task.cancelling) invent(found.id + " is dead and nobody cancelled it");
}

}  // namespace baton::crash
