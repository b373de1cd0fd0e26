#include <algorithm>
#include <concepts>
#include <sstream>

#include "core/limits.h"
#include "core/usage.h"
#include "tests/model/reference_model.h"

namespace baton::model {

using namespace core;

namespace {

template <class Value>
std::string shown(const Value& value) {
  std::ostringstream out;
  if constexpr (std::same_as<Value, Instant> || std::same_as<Value, Duration>) {
    out << value.ms << " ms";
  } else if constexpr (std::same_as<Value, TaskState>) {
    out << name_of(value);
  } else if constexpr (std::is_enum_v<Value>) {
    out << int(value);
  } else if constexpr (std::same_as<Value, TaskId>) {
    out << to_text(value);
  } else if constexpr (std::same_as<Value, BlobRef>) {
    out << value.lsn << '+' << value.offset << ':' << value.length << '#' << value.hash;
  } else if constexpr (std::same_as<Value, RetryPolicy>) {
    out << "a retry policy";
  } else {
    out << value;
  }
  return out.str();
}

// Collects the first difference.
class Comparison {
 public:
  explicit Comparison(std::string about) : about_(std::move(about)) {}
  template <class Value>
  void operator()(std::string_view what, const Value& model, const Value& core) {
    if (found_ || model == core) return;
    found_ = about_ + ": " + std::string(what) + " is " + shown(core) + ", should be " + shown(model);
  }
  const std::optional<std::string>& found() const { return found_; }

 private:
  std::string about_;
  std::optional<std::string> found_;
};

std::optional<std::string> walk(const State& state, const TaskList& list, std::vector<Lsn>& order) {
  Slot before = 0;
  for (Slot slot = list.head; slot != 0; slot = state.tasks[slot].next) {
    if (state.tasks[slot].prev != before) return "a list is not linked back";
    if (order.size() > state.tasks.used()) return "a list runs in a circle";
    order.push_back(state.tasks[slot].lsn);
    before = slot;
  }
  if (list.tail != before) return "a list does not end at its tail";
  return {};
}

}  // namespace

std::optional<std::string> ReferenceModel::compare_task(const State& state, Lsn lsn) const {
  const auto known = tasks_.find(lsn);
  const Slot slot = state.ids.find(lsn);
  const std::string name = "task " + std::to_string(lsn);
  if (known == tasks_.end()) return slot == 0 ? std::nullopt : std::optional(name + " should not be there");
  if (slot == 0) return name + " is not there";

  const ModelTask& wanted = known->second;
  const Task& task = state.tasks[slot];
  const Lane& lane = state.lanes[task.lane];
  const TaskOptions usual;
  const TaskOptions& options = task.options == 0 ? usual : state.options[task.options];
  Comparison compare(name);
  compare("the id", wanted.id, task.id());
  compare("the state", wanted.state, task.state);
  compare("the reason of its death", wanted.why, task.dead_reason);
  compare("the creation", wanted.created_at, task.created_at);
  compare("since", wanted.since, task.since);
  compare("the place", wanted.place, task.place);
  compare("the attempt", wanted.attempt, task.attempt);
  compare("the number of failures", wanted.failures, task.failures);
  compare("the payload", wanted.payload, task.payload);
  compare("the namespace", wanted.ns, state.queue_of(task).ns);
  compare("the queue", wanted.queue, state.queue_of(task).name);
  compare("the set of capabilities", wanted.capabilities, lane.capabilities);
  compare("the priority", wanted.priority, lane.priority);
  compare("the key", wanted.key, options.key);
  compare("the policy", wanted.retry, options.retry);
  compare("the attempts allowed", wanted.max_attempts, options.max_attempts);
  compare("the hold allowed", wanted.max_hold, options.max_hold);
  compare("the repeated task", wanted.retry_of, options.retry_of);
  if (!wanted.key.empty()) {
    compare("what the key finds", slot, state.keys.find(ScopedName(wanted.ns, wanted.key)));
  }
  compare("being held", wanted.hold.has_value(), task.lease != 0);
  if (wanted.hold && task.lease != 0) {
    const Lease& lease = state.leases[task.lease];
    compare("the lease", wanted.hold->lease, lease.lsn);
    compare("the lease's epoch", wanted.hold->epoch, lease.epoch);
    compare("the lease's task", lsn, lease.task);
    compare("the lease's slot", slot, lease.task_slot);
    compare("the time of the grant", wanted.hold->granted_at, lease.granted_at);
    compare("the expiry", wanted.hold->expiry, lease.expiry);
    const std::string holder(ScopedName(wanted.ns, wanted.hold->worker));
    compare("the holder", holder, state.holders[lease.worker].name);
  }
  Slot ending_slot = task.endings;
  for (const Past& past : wanted.pasts) {
    compare("having another ending", true, ending_slot != 0);
    if (ending_slot == 0) break;
    const Ending& ending = state.endings[ending_slot];
    compare("an ending's task", lsn, ending.task);
    compare("an ending's lease", past.lease, ending.lease);
    compare("an ending's epoch", past.epoch, ending.lease_epoch);
    compare("an ending's kind", past.how, ending.how);
    compare("an ending being told", past.told, ending.told);
    compare("an ending's retry time", past.retry_at, ending.retry_at);
    compare("an ending's note", past.note, ending.note);
    ending_slot = ending.next;
  }
  compare("having one ending more", false, ending_slot != 0);
  return compare.found();
}

std::optional<std::string> ReferenceModel::compare_queues(const State& state) const {
  struct Tally {
    std::array<std::uint64_t, kTaskStates> counts{};
    std::map<std::pair<std::string, std::uint8_t>, std::uint64_t> lanes, open;
  };
  std::map<std::pair<std::string, std::string>, Tally> tallies;
  for (const auto& [lsn, task] : tasks_) {
    Tally& tally = tallies[{task.ns, task.queue}];
    ++tally.counts[static_cast<std::size_t>(task.state)];
    ++tally.lanes[{task.capabilities, task.priority}];
    tally.open[{task.capabilities, task.priority}] += !is_final(task.state);
  }
  for (const auto& name : paused_) tallies[name];
  if (state.queues.used() != tallies.size() || state.queue_names.size() != tallies.size())
    return "the number of queues is wrong";
  const auto has_name = [](const Queue* queue, const auto& tally) {
    return std::pair(queue->ns, queue->name) == tally.first;
  };
  if (!std::ranges::equal(state.queues_by_name, tallies, has_name)) return "the order of the queues is wrong";

  std::map<std::string, std::array<std::uint64_t, 3>> spaces;  // queues, tasks, bytes of payload
  for (const auto& [name, tally] : tallies) ++spaces[name.first][0];
  for (const auto& [lsn, task] : tasks_) ++spaces[task.ns][1], spaces[task.ns][2] += task.payload.length;
  if (state.namespaces.used() != spaces.size()) return "the number of namespaces is wrong";
  for (const auto& [name, wanted] : spaces) {
    const Namespace& space = usage_of(state, name);
    if (wanted != std::array{space.queues, space.tasks, space.payload_bytes})
      return "what namespace " + name + " holds is counted wrong";
  }

  std::size_t lanes = 0;
  for (const auto& [name, tally] : tallies) {
    const Slot slot = find_queue(state, name.first, name.second);
    if (slot == 0) return "queue " + name.second + " is not there";
    const Queue& queue = state.queues[slot];
    Comparison compare("queue " + name.first + " " + name.second);
    compare("paused", paused_.contains(name), queue.paused);
    for (std::size_t i = 0; i < kTaskStates; ++i) compare("a count", tally.counts[i], queue.counts[i]);
    compare("the number of lanes", tally.lanes.size(), queue.lanes.size());
    if (queue.lanes_open > queue.lanes.size()) return "too many lanes are open";
    std::uint32_t place = 0;
    for (const Slot lane : queue.lanes) {
      const auto known = tally.lanes.find({state.lanes[lane].capabilities, state.lanes[lane].priority});
      if (known == tally.lanes.end()) return "a lane should not be there";
      compare("the size of a lane", known->second, state.lanes[lane].tasks);
      compare("its tasks that have not ended", tally.open.at(known->first), state.lanes[lane].open);
      compare("its place", place++, state.lanes[lane].place);
    }
    const auto is_open = [&](Slot lane) { return state.lanes[lane].open > 0; };
    const auto others = queue.lanes.begin() + queue.lanes_open;
    compare("those with such tasks being first", true,
            std::all_of(queue.lanes.begin(), others, is_open) &&
                std::none_of(others, queue.lanes.end(), is_open));
    std::vector<Lsn> order, wanted;
    if (auto broken = walk(state, queue.finished, order)) return broken;
    for (const ModelTask* task : finished(name.first, name.second)) wanted.push_back(task->id.lsn);
    compare("the order of the finished ones being right", true, order == wanted);
    if (compare.found()) return compare.found();
    lanes += queue.lanes.size();
  }
  if (state.lanes.used() != lanes) return "the number of lanes is wrong";
  return {};
}

// What is derived: lists, timers, tables.
std::optional<std::string> ReferenceModel::compare_indexes(const State& state) const {
  std::size_t held = 0, pasts = 0, keys = 0;
  std::map<std::string, std::uint32_t> holders;
  std::map<Slot, std::vector<const ModelTask*>> waiting;  // by lane
  std::vector<const ModelTask*> doomed;
  Instant first_expiry{INT64_MAX};
  for (const auto& [lsn, task] : tasks_) {
    pasts += task.pasts.size();
    keys += !task.key.empty();
    if (task.hold) {
      ++held;
      ++holders[std::string(ScopedName(task.ns, task.hold->worker))];
      first_expiry = std::min(first_expiry, task.hold->expiry);
    }
    if (task.is_doomed()) doomed.push_back(&task);
    if (task.state == TaskState::waiting && !task.is_doomed())
      waiting[state.tasks[state.ids.find(lsn)].lane].push_back(&task);
  }
  Comparison compare("the state");
  compare("the number of tasks", tasks_.size(), std::size_t{state.tasks.used()});
  compare("the number of leases", held, std::size_t{state.leases.used()});
  compare("the number of expiries", held, std::size_t{state.expiries.size()});
  compare("the number of endings", pasts, std::size_t{state.endings.used()});
  compare("the number of keys", keys, state.keys.size());
  compare("the number of holders", holders.size(), state.holder_names.size());
  if (held > 0) compare("the first expiry", first_expiry, state.expiries.first().at);
  for (const auto& [name, count] : holders) {
    const Slot slot = state.holder_names.find(name);
    compare("the leases of " + name, count, slot == 0 ? 0u : state.holders[slot].leases);
  }
  const auto order_of = [](std::vector<const ModelTask*> tasks) {
    std::ranges::sort(tasks, {}, [](const ModelTask* task) { return std::pair(task->since, task->place); });
    std::vector<Lsn> order;
    for (const ModelTask* task : tasks) order.push_back(task->id.lsn);
    return order;
  };
  std::vector<Lsn> order;
  if (auto broken = walk(state, state.doomed, order)) return broken;
  compare("the order of the doomed being right", true, order == order_of(doomed));
  for (auto& [lane_slot, tasks] : waiting) {
    const Lane& lane = state.lanes[lane_slot];
    std::vector<Lsn> ready;
    if (auto broken = walk(state, lane.ready, ready)) return broken;
    std::erase_if(tasks, [&](const ModelTask* task) {
      return state.tasks[state.ids.find(task->id.lsn)].shelf != Shelf::ready;
    });
    compare("the order of a lane being right", true, ready == order_of(tasks));
    Instant first_due{INT64_MAX};
    std::size_t delayed = 0;
    for (const auto& [lsn, task] : tasks_) {
      const Task& found = state.tasks[state.ids.find(lsn)];
      if (found.shelf != Shelf::delayed || found.lane != lane_slot) continue;
      ++delayed;
      first_due = std::min(first_due, task.since);
    }
    compare("the number of delayed ones", delayed, std::size_t{lane.delayed.size()});
    if (delayed > 0 && !lane.delayed.empty()) compare("the first due", first_due, lane.delayed.first().at);
  }
  return compare.found();
}

std::optional<std::string> ReferenceModel::compare(const State& state) const {
  Comparison compare("the state");
  compare("the last entry", last_, state.last);
  compare("the epoch", epoch_, state.epoch);
  compare("the time", time_, state.time);
  if (compare.found()) return compare.found();
  for (const auto& [lsn, task] : tasks_) {
    if (auto found = compare_task(state, lsn)) return found;
  }
  std::vector<Lsn> wanted, order;
  for (const auto& [lsn, task] : tasks_) wanted.push_back(lsn);
  for (Slot slot = state.ids.first_from(0); slot != 0;
       slot = state.ids.first_from(state.tasks[slot].lsn + 1)) {
    order.push_back(state.tasks[slot].lsn);
  }
  if (wanted != order) return "the index of ids holds other tasks";
  if (auto found = compare_queues(state)) return found;
  return compare_indexes(state);
}

std::optional<std::string> ReferenceModel::compare_touched(const State& state, const Event& event,
                                                           const Stamp& stamp) const {
  return std::visit(
      [&]<class Fact>(const Fact& fact) -> std::optional<std::string> {
        if constexpr (std::same_as<Fact, TaskCreated>) {
          return compare_task(state, stamp.lsn);
        } else if constexpr (requires { fact.task; }) {
          return compare_task(state, fact.task);
        } else if constexpr (std::same_as<Fact, LeasesExtended>) {
          for (const LeaseExtended& item : fact.items) {
            if (auto found = compare_task(state, item.task)) return found;
          }
        } else if constexpr (std::same_as<Fact, TasksPurged>) {
          for (const Lsn lsn : fact.tasks) {
            if (auto found = compare_task(state, lsn)) return found;
          }
        }
        return {};
      },
      event);
}

}  // namespace baton::model
