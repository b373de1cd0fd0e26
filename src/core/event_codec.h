// Events as bytes. The layout of each is in docs/log-format.md and held by golden files.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "core/event.h"

namespace baton::core {

// The number of a type is for ever. A reader that does not know one refuses the log.
enum class EventType : std::uint16_t {
  task_created = 1,
  lease_granted = 2,
  lease_extended = 3,
  leases_extended = 4,
  lease_expired = 5,
  task_completed = 6,
  task_cancelled = 7,
  task_failed = 8,
  task_dead = 9,
  tasks_purged = 10,
  queue_paused = 11,
  queue_resumed = 12,
  blob_moved = 13,
  work_batch_applied = 14,
  instances_evicted = 15,
  instance_left = 16,
  letters_replayed = 17,
  letters_purged = 18,
  streams_forgotten = 19,
  message_blob_moved = 20,
  epoch_started = 0x100,
  state_digest = 0x101,
  snapshot_taken = 0x102,
  sealed = 0x103,
};

EventType type_of(const Event& event);
std::string_view name_of(EventType type);

// Appends the event's bytes to `out`.
void encode(const Event& event, Bytes& out);
// The event borrows from `body`.
Result<Event> decode(std::uint16_t type, ByteView body);

}  // namespace baton::core
