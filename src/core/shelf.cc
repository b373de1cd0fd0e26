#include "core/shelf.h"

#include <utility>

#include "base/check.h"
#include "core/names.h"
#include "core/usage.h"

namespace baton::core {
namespace {

void link_last(State& state, TaskList& list, Slot slot) {
  Task& task = state.tasks[slot];
  task.prev = list.tail;
  task.next = 0;
  (list.tail == 0 ? list.head : state.tasks[list.tail].next) = slot;
  list.tail = slot;
}

void unlink(State& state, TaskList& list, Slot slot) {
  Task& task = state.tasks[slot];
  (task.prev == 0 ? list.head : state.tasks[task.prev].next) = task.next;
  (task.next == 0 ? list.tail : state.tasks[task.next].prev) = task.prev;
  task.prev = task.next = 0;
}

// A delayed task has no neighbours, so its position in the timer is kept in place of one.
auto remember_position(State& state) {
  return [&state](Slot slot, std::uint32_t position) { state.tasks[slot].prev = position; };
}

Queue& queue_of(State& state, const Task& task) { return state.queues[state.lanes[task.lane].queue]; }

Shelf shelf_for(const State& state, const Task& task, Instant now) {
  if (is_final(task.state)) return Shelf::finished;
  if (task.state == TaskState::leased) return Shelf::none;
  const std::uint32_t max_attempts =
      task.options == 0 ? kDefaultMaxAttempts : state.options[task.options].max_attempts;
  if (task.attempt >= max_attempts) return Shelf::doomed;
  return task.since > now ? Shelf::delayed : Shelf::ready;
}

// Lanes with tasks that have not ended come first, so that whoever looks for one passes the others by.
void change_places(State& state, Queue& queue, std::uint32_t a, std::uint32_t b) {
  std::swap(queue.lanes[a], queue.lanes[b]);
  state.lanes[queue.lanes[a]].place = a;
  state.lanes[queue.lanes[b]].place = b;
}

void count_open(State& state, Lane& lane) {
  if (++lane.open > 1) return;
  Queue& queue = state.queues[lane.queue];
  change_places(state, queue, lane.place, queue.lanes_open++);
}

void uncount_open(State& state, Lane& lane) {
  if (--lane.open > 0) return;
  Queue& queue = state.queues[lane.queue];
  change_places(state, queue, lane.place, --queue.lanes_open);
}

}  // namespace

void shelve(State& state, Slot slot, Instant now) {
  Task& task = state.tasks[slot];
  Lane& lane = state.lanes[task.lane];
  ++queue_of(state, task).counts[static_cast<std::size_t>(task.state)];
  if (!is_final(task.state)) count_open(state, lane);
  task.shelf = shelf_for(state, task, now);
  switch (task.shelf) {
    case Shelf::none: break;
    case Shelf::ready: link_last(state, lane.ready, slot); break;
    case Shelf::delayed: lane.delayed.insert({task.since, task.place, slot}, remember_position(state)); break;
    case Shelf::doomed: link_last(state, state.doomed, slot); break;
    case Shelf::finished: link_last(state, queue_of(state, task).finished, slot); break;
  }
}

void unshelve(State& state, Slot slot) {
  Task& task = state.tasks[slot];
  Lane& lane = state.lanes[task.lane];
  --queue_of(state, task).counts[static_cast<std::size_t>(task.state)];
  if (!is_final(task.state)) uncount_open(state, lane);
  switch (task.shelf) {
    case Shelf::none: break;
    case Shelf::ready: unlink(state, lane.ready, slot); break;
    case Shelf::delayed:
      lane.delayed.erase(task.prev, remember_position(state));
      task.prev = 0;
      break;
    case Shelf::doomed: unlink(state, state.doomed, slot); break;
    case Shelf::finished: unlink(state, queue_of(state, task).finished, slot); break;
  }
  task.shelf = Shelf::none;
}

bool is_earlier(const Task& a, const Task& b) {
  return a.since != b.since ? a.since < b.since : a.place < b.place;
}

Slot next_in(const State& state, const Lane& lane, Instant now) {
  const Slot ready = lane.ready.head;
  if (lane.delayed.empty() || lane.delayed.first().at > now) return ready;
  const Slot due = lane.delayed.first().slot;
  return ready == 0 || is_earlier(state.tasks[due], state.tasks[ready]) ? due : ready;
}

Slot make_queue(State& state, std::string_view ns, std::string_view name) {
  if (const Slot known = find_queue(state, ns, name)) return known;
  const Slot slot = state.queues.take();
  state.queues[slot].ns = ns;
  state.queues[slot].name = name;
  state.queues[slot].space = count_queue(state, ns);
  state.queue_names.insert(ScopedName(ns, name), slot);
  state.queues_by_name.insert(&state.queues[slot]);
  return slot;
}

Slot join_lane(State& state, std::string_view ns, std::string_view queue_name, std::string_view capabilities,
               std::uint8_t priority) {
  const Slot queue_slot = make_queue(state, ns, queue_name);
  Queue& queue = state.queues[queue_slot];
  for (const Slot slot : queue.lanes) {
    Lane& lane = state.lanes[slot];
    if (lane.priority != priority || lane.capabilities != capabilities) continue;
    ++lane.tasks;
    return slot;
  }
  const Slot slot = state.lanes.take();
  Lane& lane = state.lanes[slot];
  lane.capabilities = capabilities;
  lane.queue = queue_slot;
  lane.priority = priority;
  lane.hash =
      content_hash(bytes_of(capabilities), content_hash(bytes_of(ScopedName(ns, queue_name)), priority));
  lane.tasks = 1;
  lane.place = static_cast<std::uint32_t>(queue.lanes.size());
  queue.lanes.push_back(slot);
  return slot;
}

void leave_lane(State& state, Slot slot) {
  Lane& lane = state.lanes[slot];
  BATON_CHECK(lane.tasks > 0);
  if (--lane.tasks > 0) return;
  BATON_CHECK(lane.open == 0);
  const Slot queue_slot = lane.queue;
  Queue& queue = state.queues[queue_slot];
  change_places(state, queue, lane.place, static_cast<std::uint32_t>(queue.lanes.size() - 1));
  queue.lanes.pop_back();
  state.lanes.give_back(slot);
  forget_if_empty(state, queue_slot);
}

void forget_if_empty(State& state, Slot slot) {
  const Queue& queue = state.queues[slot];
  if (!queue.lanes.empty() || queue.paused) return;
  state.queue_names.erase(ScopedName(queue.ns, queue.name));
  state.queues_by_name.erase(&queue);
  uncount_queue(state, queue.space);
  state.queues.give_back(slot);
}

}  // namespace baton::core
