#include "core/event_codec.h"

#include <array>
#include <concepts>
#include <utility>

#include "base/check.h"
#include "core/limits.h"

namespace baton::core {
namespace {

// In the order of the variant's alternatives.
constexpr std::array kTypes = {
    EventType::task_created,    EventType::lease_granted, EventType::lease_extended,
    EventType::leases_extended, EventType::lease_expired, EventType::task_completed,
    EventType::task_cancelled,  EventType::task_failed,   EventType::task_dead,
    EventType::tasks_purged,    EventType::queue_paused,  EventType::queue_resumed,
    EventType::blob_moved,      EventType::epoch_started, EventType::state_digest,
    EventType::snapshot_taken,  EventType::sealed,
};
static_assert(kTypes.size() == std::variant_size_v<Event>);

// A field is written and read by overloads of one name, so that each event's layout is one list of fields.
class Writer {
 public:
  explicit Writer(Bytes& out) : out_(out) {}
  void operator()(std::uint8_t value) { out_.fixed(value); }
  void operator()(std::uint32_t value) { out_.varint(value); }
  void operator()(std::uint64_t value) { out_.varint(value); }
  void operator()(Instant value) { out_.zigzag(value.ms); }
  void operator()(Duration value) { out_.zigzag(value.ms); }
  void operator()(std::string_view value) { out_.text(value); }
  void operator()(Ended value) { out_.fixed(static_cast<std::uint8_t>(value)); }
  void operator()(BlobPart value) { out_.fixed(static_cast<std::uint8_t>(value)); }
  void operator()(DeadReason value) { out_.fixed(static_cast<std::uint8_t>(value)); }
  void operator()(const TaskId& value) { out_.varint(value.epoch), out_.varint(value.lsn); }
  void operator()(const SecretKey& value) { out_.fixed(value.low), out_.fixed(value.high); }
  void operator()(const RetryPolicy& value) {
    const bool usual = value == RetryPolicy{};
    out_.fixed(std::uint8_t{!usual});
    if (usual) return;
    (*this)(value.max_failures), (*this)(value.base), (*this)(value.factor_percent);
    (*this)(value.max), (*this)(value.jitter_percent);
  }
  void operator()(const BlobRef& value) {
    out_.varint(value.length);
    if (value.length == 0) return;
    out_.varint(value.lsn), out_.varint(value.offset), out_.fixed(value.hash);
  }
  void operator()(const BlobView& value) {  // always last
    out_.fixed(value.hash);
    out_.raw(value.bytes);
  }
  void operator()(const LeaseExtended& value) {
    (*this)(value.task), (*this)(value.lease), (*this)(value.expiry);
  }
  void operator()(const std::vector<LeaseExtended>& items) {
    out_.varint(items.size());
    for (const LeaseExtended& item : items) (*this)(item);
  }
  void operator()(const std::vector<Lsn>& items) {
    out_.varint(items.size());
    for (const Lsn item : items) out_.varint(item);
  }

 private:
  ByteWriter out_;
};

class Reader {
 public:
  explicit Reader(ByteView body) : in_(body) {}
  void operator()(std::uint8_t& value) { value = in_.fixed<std::uint8_t>(); }
  void operator()(std::uint32_t& value) { value = narrow(in_.varint()); }
  void operator()(std::uint64_t& value) { value = in_.varint(); }
  void operator()(Instant& value) { value.ms = in_.zigzag(); }
  void operator()(Duration& value) { value.ms = in_.zigzag(); }
  void operator()(std::string_view& value) { value = in_.text(); }
  void operator()(Ended& value) { value = enumerator<Ended>(Ended::dead); }
  void operator()(BlobPart& value) { value = enumerator<BlobPart>(BlobPart::note); }
  void operator()(DeadReason& value) { value = enumerator<DeadReason>(DeadReason::attempts_exhausted); }
  void operator()(TaskId& value) { (*this)(value.epoch), (*this)(value.lsn); }
  void operator()(SecretKey& value) {
    value.low = in_.fixed<std::uint64_t>();
    value.high = in_.fixed<std::uint64_t>();
  }
  void operator()(RetryPolicy& value) {
    const auto special = in_.fixed<std::uint8_t>();
    if (special > 1) in_.fail();
    if (special == 0) return;
    (*this)(value.max_failures), (*this)(value.base), (*this)(value.factor_percent);
    (*this)(value.max), (*this)(value.jitter_percent);
    if (value == RetryPolicy{}) in_.fail();  // one encoding per value
  }
  void operator()(BlobRef& value) {
    (*this)(value.length);
    if (value.length == 0) return;
    (*this)(value.lsn), (*this)(value.offset);
    value.hash = in_.fixed<std::uint64_t>();
  }
  void operator()(BlobView& value) {
    value.hash = in_.fixed<std::uint64_t>();
    value.bytes = in_.rest();
  }
  void operator()(LeaseExtended& value) { (*this)(value.task), (*this)(value.lease), (*this)(value.expiry); }
  void operator()(std::vector<LeaseExtended>& items) { list(items, kExtendItemsMax); }
  void operator()(std::vector<Lsn>& items) { list(items, kPurgeItemsMax); }

  bool finished() const { return in_.finished(); }

 private:
  std::uint32_t narrow(std::uint64_t value) {
    if (value > UINT32_MAX) in_.fail();
    return static_cast<std::uint32_t>(value);
  }
  template <class Enum>
  Enum enumerator(Enum last) {
    const auto value = in_.fixed<std::uint8_t>();
    if (value > static_cast<std::uint8_t>(last)) in_.fail();
    return static_cast<Enum>(value);
  }
  template <class Item>
  void list(std::vector<Item>& items, std::size_t count_max) {
    const std::uint64_t count = in_.varint();
    if (count > count_max) in_.fail();
    for (std::uint64_t i = 0; i < count && in_.ok(); ++i) (*this)(items.emplace_back());
  }

  ByteReader in_;
};

template <class E, class Of>
concept Is = std::same_as<std::remove_const_t<E>, Of>;
template <class E, class One, class Other>
concept Either = Is<E, One> || Is<E, Other>;

void fields(auto& f, Is<TaskCreated> auto& e) {
  f(e.ns), f(e.queue), f(e.capabilities), f(e.key), f(e.content), f(e.priority), f(e.eligible_at);
  f(e.retry), f(e.max_attempts), f(e.max_hold), f(e.retry_of), f(e.payload_of_old), f(e.payload);
}
void fields(auto& f, Is<LeaseGranted> auto& e) { f(e.task), f(e.attempt), f(e.expiry), f(e.worker); }
void fields(auto& f, Is<LeaseExtended> auto& e) { f(e); }
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
void fields(auto& f, Is<EpochStarted> auto& e) { f(e.key); }
void fields(auto& f, Is<StateDigest> auto& e) { f(e.digest); }
void fields(auto& f, Is<SnapshotTaken> auto& e) { f(e.lsn), f(e.digest); }
void fields(auto&, Is<Sealed> auto&) {}

template <std::size_t kIndex = 0>
Result<Event> decode_as(std::size_t index, ByteView body) {
  if constexpr (kIndex == std::variant_size_v<Event>) {
    BATON_CHECK(false && "index out of range");
  } else {
    if (index != kIndex) return decode_as<kIndex + 1>(index, body);
    Event event(std::in_place_index<kIndex>);
    Reader reader(body);
    fields(reader, std::get<kIndex>(event));
    if (!reader.finished()) {
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
    case EventType::epoch_started: return "EpochStarted";
    case EventType::state_digest: return "StateDigest";
    case EventType::snapshot_taken: return "SnapshotTaken";
    case EventType::sealed: return "Sealed";
  }
  BATON_CHECK(false && "unknown event type");
}

void encode(const Event& event, Bytes& out) {
  Writer writer(out);
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
