#include "core/digest.h"

#include <span>
#include <type_traits>

#include "core/stream/streams_digest.h"

namespace baton::core {
namespace {

// What is hashed has no padding and no slot number in it: slots depend on history, facts do not.
struct TaskFact {
  Lsn lsn;
  std::int64_t created_at, since;
  Lsn place;
  Lsn payload_lsn;
  std::uint64_t payload_hash;
  std::uint64_t lane_hash;
  std::uint64_t options_hash;
  std::uint32_t payload_length;
  Epoch epoch;
  std::uint32_t attempt, failures;
  std::uint32_t state, dead_reason;
};

struct LeaseFact {
  Lsn lsn, task;
  std::int64_t granted_at, expiry;
  std::uint64_t holder_hash;
  Epoch epoch;
  std::uint32_t kind;
};

struct EndingFact {
  Lsn task, lease;
  std::int64_t retry_at;
  Lsn note_lsn;
  std::uint64_t note_hash;
  std::uint32_t note_length;
  Epoch lease_epoch;
  std::uint32_t how, told;
};

template <class Fact>
std::uint64_t hash_of(const Fact& fact) {
  static_assert(std::has_unique_object_representations_v<Fact>);
  return content_hash(std::as_bytes(std::span(&fact, 1)));
}

std::uint64_t options_hash(const TaskOptions& options) {
  const std::uint64_t fields[] = {
      options.content,
      options.retry.max_failures,
      static_cast<std::uint64_t>(options.retry.base.ms),
      options.retry.factor_percent,
      static_cast<std::uint64_t>(options.retry.max.ms),
      options.retry.jitter_percent,
      options.max_attempts,
      static_cast<std::uint64_t>(options.max_hold.ms),
      options.retry_of.epoch,
      options.retry_of.lsn,
  };
  return content_hash(bytes_of(options.key), content_hash(std::as_bytes(std::span(fields))));
}

}  // namespace

std::uint64_t fact_hash(const State& state, const Task& task) {
  return hash_of(TaskFact{
      .lsn = task.lsn,
      .created_at = task.created_at.ms,
      .since = task.since.ms,
      .place = task.place,
      .payload_lsn = task.payload.lsn,
      .payload_hash = task.payload.hash,
      .lane_hash = state.lanes[task.lane].hash,
      .options_hash = task.options == 0 ? 0 : options_hash(state.options[task.options]),
      .payload_length = task.payload.length,
      .epoch = task.epoch,
      .attempt = task.attempt,
      .failures = task.failures,
      .state = static_cast<std::uint32_t>(task.state),
      .dead_reason = static_cast<std::uint32_t>(task.dead_reason),
  });
}

std::uint64_t fact_hash(const State& state, const Lease& lease) {
  return hash_of(LeaseFact{
      .lsn = lease.lsn,
      .task = lease.task,
      .granted_at = lease.granted_at.ms,
      .expiry = lease.expiry.ms,
      .holder_hash = state.holders[lease.worker].hash,
      .epoch = lease.epoch,
      .kind = 1,
  });
}

std::uint64_t fact_hash(const Ending& ending) {
  return hash_of(EndingFact{
      .task = ending.task,
      .lease = ending.lease,
      .retry_at = ending.retry_at.ms,
      .note_lsn = ending.note.lsn,
      .note_hash = ending.note.hash,
      .note_length = ending.note.length,
      .lease_epoch = ending.lease_epoch,
      .how = static_cast<std::uint32_t>(ending.how),
      .told = ending.told,
  });
}

std::uint64_t paused_hash(const Queue& queue) {
  return content_hash(bytes_of(queue.name), content_hash(bytes_of(queue.ns), 1));
}

std::uint64_t full_digest(const State& state) {
  std::uint64_t sum = 0;
  for (Slot slot = state.ids.first_from(0); slot != 0;
       slot = state.ids.first_from(state.tasks[slot].lsn + 1)) {
    const Task& task = state.tasks[slot];
    sum += fact_hash(state, task);
    if (task.lease != 0) sum += fact_hash(state, state.leases[task.lease]);
    for (Slot ending = task.endings; ending != 0; ending = state.endings[ending].next) {
      sum += fact_hash(state.endings[ending]);
    }
  }
  for (Slot slot = 1; slot < state.queues.end(); ++slot) {
    if (state.queues[slot].paused) sum += paused_hash(state.queues[slot]);
  }
  return sum + streams::full_digest(state.streams);
}

}  // namespace baton::core
