// All that baton knows about tasks, leases and streams. It is what replaying the log gives, and nothing else:
// only apply() changes it. The lists, timers and name tables in it are derived and never written down.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/paged.h"
#include "base/time.h"
#include "core/id_index.h"
#include "core/name_map.h"
#include "core/request.h"
#include "core/stream/streams.h"
#include "core/task/task.h"
#include "core/timer.h"

namespace baton::core {

// A list threaded through Task::prev and Task::next.
struct TaskList {
  Slot head = 0;
  Slot tail = 0;
};

// Waiting tasks of one queue that need the same capabilities at the same priority, in the order in which they
// became eligible. A worker either may take all of a lane or none, so a LEASE looks at lanes, never at tasks.
struct Lane {
  std::string capabilities;
  std::uint64_t hash = 0;  // of queue, capabilities and priority
  Slot queue = 0;
  std::uint8_t priority = 0;
  std::uint64_t tasks = 0;  // of any state
  std::uint64_t open = 0;   // of them, those that have not ended
  TaskList ready;           // eligible from the start
  Timer delayed;            // eligible later
  std::uint32_t place = 0;  // among the lanes of its queue
  Slot next = 0;
};

// What a namespace holds. One without a queue holds nothing and is not kept.
struct Namespace {
  std::string name;
  std::uint64_t queues = 0;
  std::uint64_t tasks = 0;  // of any state
  std::uint64_t payload_bytes = 0;
  Slot next = 0;
};

struct Queue {
  std::string ns;
  std::string name;
  Slot space = 0;  // its namespace
  bool paused = false;
  std::vector<Slot> lanes;  // first those with tasks that have not ended
  TaskList finished;        // oldest first
  std::array<std::uint64_t, kTaskStates> counts{};
  std::uint32_t lanes_open = 0;  // how many come first
  Slot next = 0;

  std::uint64_t count(TaskState state) const { return counts[static_cast<std::size_t>(state)]; }
  // Those in which there may be a task to take.
  std::span<const Slot> open_lanes() const { return {lanes.data(), lanes_open}; }
  std::uint64_t finished_count() const {
    return count(TaskState::completed) + count(TaskState::failed) + count(TaskState::dead);
  }
};

// By namespace, then by name; both are bytes. A pointer does as a key because a slab never moves what it
// holds.
struct QueueOrder {
  using is_transparent = void;
  struct Name {
    std::string_view ns, name;
    friend auto operator<=>(const Name&, const Name&) = default;
  };
  static Name name_of(const Queue* queue) { return {queue->ns, queue->name}; }
  static Name name_of(const Name& name) { return name; }
  bool operator()(const auto& a, const auto& b) const { return name_of(a) < name_of(b); }
};

struct LeaseHolder {
  std::string name;  // with its namespace
  std::uint64_t hash = 0;
  std::uint32_t leases = 0;
  Slot next = 0;
};

struct State {
  Lsn last = 0;  // entry applied last
  Epoch epoch = 0;
  Instant time;  // of that entry
  SecretKey key;
  std::uint64_t digest = 0;  // sum of the hashes of all facts below, kept up with every change

  Slab<Task> tasks;
  Slab<TaskOptions> options;
  Slab<Lease> leases;
  Slab<Ending> endings;
  Slab<Namespace> namespaces;
  Slab<Queue> queues;
  Slab<Lane> lanes;
  Slab<LeaseHolder> holders;

  IdIndex ids;
  NameMap keys;         // to tasks
  NameMap queue_names;  // to queues
  NameMap namespace_names;
  std::set<const Queue*, QueueOrder> queues_by_name;
  NameMap holder_names;  // to holders
  Timer expiries;        // of leases
  TaskList doomed;       // waiting, with no attempt left

  streams::Streams streams;

  const Queue& queue_of(const Task& task) const { return queues[lanes[task.lane].queue]; }
};

// The task's slot, or 0. A task of another namespace is not found.
Slot find_task(const State& state, std::string_view ns, const TaskRef& task);
Slot find_queue(const State& state, std::string_view ns, std::string_view queue);
std::uint32_t active_leases(const State& state, std::string_view ns, std::string_view worker);

}  // namespace baton::core
