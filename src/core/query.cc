#include "core/query.h"

#include <algorithm>

#include "core/holder.h"

namespace baton::core {
namespace {

constexpr std::uint32_t kDueVisitsMax = 20'000;

TaskView view_of(const State& state, const Task& task) {
  const Lane& lane = state.lanes[task.lane];
  TaskView view{
      .id = task.id(),
      .queue = state.queues[lane.queue].name,
      .state = task.state,
      .dead_reason = task.dead_reason,
      .priority = lane.priority,
      .attempt = task.attempt,
      .failures = task.failures,
      .created_at = task.created_at,
      .since = task.since,
      .capabilities = lane.capabilities,
      .payload = task.payload,
  };
  if (task.options != 0) {
    view.key = state.options[task.options].key;
    view.retry_of = state.options[task.options].retry_of;
  }
  if (task.lease != 0) {
    const Lease& lease = state.leases[task.lease];
    view.worker = worker_of(state, lease);
    view.lease_expiry = lease.expiry;
    view.lease_epoch = lease.epoch;
    view.lease = lease.lsn;
  }
  if (task.endings != 0) view.note = state.endings[task.endings].note;
  return view;
}

bool is_held_by(const State& state, const Task& task, std::string_view worker) {
  return task.lease != 0 && worker_of(state, state.leases[task.lease]) == worker;
}

bool matches(const State& state, const Task& task, const ListTasks& query) {
  const Queue& queue = state.queue_of(task);
  return queue.ns == query.ns && (query.queue.empty() || queue.name == query.queue) &&
         (!query.state || task.state == *query.state) &&
         (query.worker.empty() || is_held_by(state, task, query.worker)) &&
         (!query.older_than || task.since < *query.older_than);
}

void add(Tally& tally, const Queue& queue) {
  ++tally.queues;
  for (std::size_t state = 0; state < kTaskStates; ++state) tally.tasks[state] += queue.counts[state];
}

}  // namespace

std::optional<TaskView> view(const State& state, std::string_view ns, const TaskRef& task) {
  const Slot slot = find_task(state, ns, task);
  if (slot == 0) return {};
  return view_of(state, state.tasks[slot]);
}

TaskPage list(const State& state, const ListTasks& query) {
  TaskPage page;
  // At least one, so that whoever follows the cursor gets on.
  const std::size_t wanted = std::clamp<std::size_t>(query.count_max, 1, kListTasksMax);
  std::size_t examined = 0;
  for (Slot slot = state.ids.first_from(query.from); slot != 0;
       slot = state.ids.first_from(state.tasks[slot].lsn + 1)) {
    const Task& task = state.tasks[slot];
    if (page.tasks.size() == wanted || ++examined > kListExaminedMax) {
      page.next = task.lsn;
      break;
    }
    if (matches(state, task, query)) page.tasks.push_back(view_of(state, task));
  }
  return page;
}

QueuePage queues(const State& state, const ListQueues& query) {
  QueuePage page;
  const std::size_t wanted = std::clamp<std::size_t>(query.count_max, 1, kListQueuesMax);
  std::uint32_t due_left = kDueVisitsMax;  // beyond them, some that are due are shown as delayed
  for (auto at = state.queues_by_name.upper_bound(QueueOrder::Name{query.ns, query.after});
       at != state.queues_by_name.end() && (*at)->ns == query.ns; ++at) {
    const Queue& queue = **at;
    if (page.queues.size() == wanted) {
      page.next = page.queues.back().name;
      break;
    }
    QueueView view{.name = queue.name, .paused = queue.paused, .counts = queue.counts};
    for (const Slot slot : queue.open_lanes()) {
      const Timer& delayed = state.lanes[slot].delayed;
      view.delayed += delayed.size() - delayed.count_due(std::max(query.now, state.time), due_left);
    }
    page.queues.push_back(std::move(view));
  }
  return page;
}

Tally tally(const State& state, std::string_view ns) {
  Tally tally;
  for (auto at = state.queues_by_name.lower_bound(QueueOrder::Name{ns, {}});
       at != state.queues_by_name.end() && (*at)->ns == ns; ++at)
    add(tally, **at);
  return tally;
}

Tally tally(const State& state) {
  Tally tally;
  for (const Queue* queue : state.queues_by_name) add(tally, *queue);
  return tally;
}

}  // namespace baton::core
