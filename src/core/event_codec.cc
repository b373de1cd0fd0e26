#include "core/event_codec.h"

#include <array>
#include <utility>

#include "base/check.h"
#include "core/event_fields.h"

namespace baton::core {

// Each event's layout is one list of fields.
void fields(auto& f, Is<TaskCreated> auto& e) {
  f(e.ns), f(e.queue), f(e.capabilities), f(e.key), f(e.content), f(e.priority), f(e.eligible_at);
  f(e.retry), f(e.max_attempts), f(e.max_hold), f(e.retry_of), f(e.payload_of_old), f(e.payload);
}
void fields(auto& f, Is<LeaseGranted> auto& e) { f(e.task), f(e.attempt), f(e.expiry), f(e.worker); }
void fields(auto& f, Is<LeaseExtended> auto& e) { f(e.task), f(e.lease), f(e.expiry); }
void fields(auto& f, Is<LeasesExtended> auto& e) { f(e.items); }
void fields(auto& f, Either<LeaseExpired, TaskCancelled> auto& e) { f(e.task), f(e.lease); }
void fields(auto& f, Is<TaskCompleted> auto& e) { f(e.task), f(e.lease), f(e.result); }
void fields(auto& f, Is<TaskFailed> auto& e) {
  f(e.task), f(e.lease), f(e.outcome), f(e.failures), f(e.retry_at), f(e.reason);
}
void fields(auto& f, Is<TaskDead> auto& e) { f(e.task), f(e.why), f(e.actor), f(e.note); }
void fields(auto& f, Is<TasksPurged> auto& e) { f(e.tasks); }
void fields(auto& f, Either<QueuePaused, QueueResumed> auto& e) { f(e.ns), f(e.queue); }
void fields(auto& f, Is<BlobMoved> auto& e) { f(e.task), f(e.part), f(e.lease), f(e.blob); }

void fields(auto& f, Is<InstanceHeard> auto& e) {
  f(e.joins), f(e.service), f(e.host), f(e.process), f(e.metadata);
}
void fields(auto& f, Is<MessageReported> auto& e) {
  f(e.message), f(e.how), f(e.status);
  if (e.how != Reported::retried && e.how != Reported::dead) return;
  f(e.reason), f(e.policy), f(e.due), f.announce(e.error);
}
void fields(auto& f, Is<StreamRenewed> auto& e) { f(e.stream), f(e.until); }
void fields(auto& f, Is<StreamOpened> auto& e) { f(e.id), f(e.lane), f(e.partition); }
void fields(auto& f, Is<MessageStored> auto& e) {
  f(e.id), f(e.lane), f(e.stream), f(e.data_bytes), f(e.appends_event), f(e.is_event), f(e.policy);
  f.announce(e.body);
}
void fields(auto& f, Is<StreamClaimed> auto& e) { f(e.stream), f(e.given_seq), f(e.count); }
void fields(auto& f, Is<ReceptorRecorded> auto& e) {
  f(e.event), f(e.receptor), f(e.status), f(e.attempts), f(e.error);
}
void fields(auto& f, Is<CheckpointMoved> auto& e) {
  f(e.stream), f(e.perspective), f(e.status), f(e.error), f(e.version), f(e.ahead);
}
void fields(auto& f, Is<WorkBatchApplied> auto& e) {
  f(e.ns), f(e.instance), f(e.heard), f(e.reports), f(e.receptors), f(e.checkpoints), f(e.renewals);
  f(e.opened), f(e.stored), f(e.lease_until), f(e.claims);
  for (auto& report : e.reports) {
    if (report.how == Reported::retried || report.how == Reported::dead) f.bytes(report.error);
  }
  for (auto& stored : e.stored) f.bytes(stored.body);
}
void fields(auto& f, Is<InstancesEvicted> auto& e) { f(e.instances); }
void fields(auto& f, Is<InstanceLeft> auto& e) { f(e.instance); }
void fields(auto& f, Is<LettersReplayed> auto& e) { f(e.letters), f.later(e.remembers); }
void fields(auto& f, Is<LettersPurged> auto& e) { f(e.letters); }
void fields(auto& f, Is<StreamsForgotten> auto& e) {
  f(e.seen), f(e.tombstones), f(e.events), f(e.receptors), f(e.checkpoints), f(e.kept), f(e.idle);
}
void fields(auto& f, Is<MessageBlobMoved> auto& e) { f(e.number), f(e.is_letter), f(e.part), f(e.blob); }

void fields(auto& f, Is<EpochStarted> auto& e) { f(e.key); }
void fields(auto& f, Is<StateDigest> auto& e) { f(e.digest); }
void fields(auto& f, Is<SnapshotTaken> auto& e) { f(e.lsn), f(e.digest); }
void fields(auto&, Is<Sealed> auto&) {}

namespace {

// In the order of the variant's alternatives.
constexpr std::array kTypes = {
    EventType::task_created,      EventType::lease_granted,      EventType::lease_extended,
    EventType::leases_extended,   EventType::lease_expired,      EventType::task_completed,
    EventType::task_cancelled,    EventType::task_failed,        EventType::task_dead,
    EventType::tasks_purged,      EventType::queue_paused,       EventType::queue_resumed,
    EventType::blob_moved,        EventType::work_batch_applied, EventType::instances_evicted,
    EventType::instance_left,     EventType::letters_replayed,   EventType::letters_purged,
    EventType::streams_forgotten, EventType::message_blob_moved, EventType::epoch_started,
    EventType::state_digest,      EventType::snapshot_taken,     EventType::sealed,
};
static_assert(kTypes.size() == std::variant_size_v<Event>);

template <std::size_t kIndex = 0>
Result<Event> decode_as(std::size_t index, ByteView body) {
  if constexpr (kIndex == std::variant_size_v<Event>) {
    BATON_CHECK(false && "index out of range");
  } else {
    if (index != kIndex) return decode_as<kIndex + 1>(index, body);
    Event event(std::in_place_index<kIndex>);
    ByteReader in(body);
    FieldReader reader(in);
    fields(reader, std::get<kIndex>(event));
    if (!in.finished()) {
      return failure(Errc::corrupt, "a " + std::string(name_of(kTypes[kIndex])) + " entry cannot be decoded");
    }
    return event;
  }
}

}  // namespace

EventType type_of(const Event& event) { return kTypes[event.index()]; }

std::string_view name_of(EventType type) {
  switch (type) {
    case EventType::task_created: return "TaskCreated";
    case EventType::lease_granted: return "LeaseGranted";
    case EventType::lease_extended: return "LeaseExtended";
    case EventType::leases_extended: return "LeasesExtended";
    case EventType::lease_expired: return "LeaseExpired";
    case EventType::task_completed: return "TaskCompleted";
    case EventType::task_cancelled: return "TaskCancelled";
    case EventType::task_failed: return "TaskFailed";
    case EventType::task_dead: return "TaskDead";
    case EventType::tasks_purged: return "TasksPurged";
    case EventType::queue_paused: return "QueuePaused";
    case EventType::queue_resumed: return "QueueResumed";
    case EventType::blob_moved: return "BlobMoved";
    case EventType::work_batch_applied: return "WorkBatchApplied";
    case EventType::instances_evicted: return "InstancesEvicted";
    case EventType::instance_left: return "InstanceLeft";
    case EventType::letters_replayed: return "LettersReplayed";
    case EventType::letters_purged: return "LettersPurged";
    case EventType::streams_forgotten: return "StreamsForgotten";
    case EventType::message_blob_moved: return "MessageBlobMoved";
    case EventType::epoch_started: return "EpochStarted";
    case EventType::state_digest: return "StateDigest";
    case EventType::snapshot_taken: return "SnapshotTaken";
    case EventType::sealed: return "Sealed";
  }
  BATON_CHECK(false && "unknown event type");
}

void encode(const Event& event, Bytes& out) {
  FieldWriter writer{ByteWriter(out)};
  std::visit([&](const auto& fact) { fields(writer, fact); }, event);
}

Result<Event> decode(std::uint16_t type, ByteView body) {
  for (std::size_t index = 0; index < kTypes.size(); ++index) {
    if (static_cast<std::uint16_t>(kTypes[index]) == type) return decode_as(index, body);
  }
  return failure(Errc::unsupported_version,
                 "entry type " + std::to_string(type) + " is not known to this version");
}

}  // namespace baton::core
