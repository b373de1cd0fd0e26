// Questions that change nothing: one task, a page of tasks, a page of queues, how many of what.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/state.h"

namespace baton::core {

inline constexpr std::size_t kListTasksMax = 1000;       // tasks one page holds
inline constexpr std::size_t kListExaminedMax = 20'000;  // tasks looked at to fill it
inline constexpr std::size_t kListQueuesMax = 1000;      // queues one page holds

struct TaskView {
  TaskId id;
  std::string queue;
  std::string key;
  TaskState state = TaskState::waiting;
  DeadReason dead_reason = DeadReason::none;
  std::uint8_t priority = 0;
  std::uint32_t attempt = 0;
  std::uint32_t failures = 0;
  Instant created_at;
  Instant since;       // waiting: eligible from here on; else when it came into its state
  std::string worker;  // leased: by whom
  Instant lease_expiry;
  Epoch lease_epoch = 0;  // with the lsn: the fence. The nonce is the holder's alone.
  Lsn lease = 0;
  TaskId retry_of;
  std::string capabilities;
  BlobRef payload;
  BlobRef note;  // result, or reason of the last failure
};

struct QueueView {
  std::string name;
  bool paused = false;
  std::array<std::uint64_t, kTaskStates> counts{};
  std::uint64_t delayed = 0;  // of the waiting ones
};

// How many there are of what.
struct Tally {
  std::uint64_t queues = 0;
  std::array<std::uint64_t, kTaskStates> tasks{};
};

struct ListTasks {
  std::string ns;
  std::string queue;                  // empty: all
  std::optional<TaskState> state;     // none: all
  std::string worker;                 // leased by; empty: leased or not
  std::optional<Instant> older_than;  // `since` before this
  Lsn from = 0;                       // cursor: lsn of the first task to look at
  std::size_t count_max = 100;
};
struct TaskPage {
  std::vector<TaskView> tasks;
  Lsn next = 0;  // where to go on, 0 at the end
};

struct ListQueues {
  std::string ns;
  std::string after;  // cursor: names behind this one; empty: from the first
  std::size_t count_max = kListQueuesMax;
  Instant now;  // what is due by then is not delayed; never before the last entry
};
struct QueuePage {
  std::vector<QueueView> queues;  // by name
  std::string next;               // `after` of the next page, empty at the end
};

std::optional<TaskView> view(const State& state, std::string_view ns, const TaskRef& task);
// A page may be empty and not the last: only so many tasks are looked at.
TaskPage list(const State& state, const ListTasks& query);
QueuePage queues(const State& state, const ListQueues& query);
Tally tally(const State& state, std::string_view ns);
Tally tally(const State& state);  // of all namespaces

}  // namespace baton::core
