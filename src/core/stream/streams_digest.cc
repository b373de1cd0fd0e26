#include "core/stream/streams_digest.h"

#include <array>
#include <span>

#include "base/hash.h"

namespace baton::core::streams {
namespace {

enum class Kind : std::uint64_t {
  instance = 1,
  stream,
  message,
  letter,
  seen,
  tombstone,
  history,
  event,
  checkpoint,
  receptor
};

// Numbers and texts, one after the other. Slots have no part in it: they differ between states with the same
// facts.
class Hasher {
 public:
  explicit Hasher(Kind kind) : hash_(static_cast<std::uint64_t>(kind)) {}
  Hasher& numbers(std::initializer_list<std::uint64_t> values) {
    hash_ = content_hash(std::as_bytes(std::span(values.begin(), values.size())), hash_);
    return *this;
  }
  Hasher& id(const stream::Uuid& id) {
    hash_ = content_hash(id.bytes, hash_);
    return *this;
  }
  Hasher& text(std::string_view text) {
    hash_ = content_hash(bytes_of(text), hash_);
    return *this;
  }
  std::uint64_t get() const { return hash_; }

 private:
  std::uint64_t hash_;
};

constexpr std::uint64_t u(Instant at) { return static_cast<std::uint64_t>(at.ms); }
constexpr std::uint64_t u(std::int32_t value) { return static_cast<std::uint64_t>(value); }
template <class Enum>
  requires std::is_enum_v<Enum>
constexpr std::uint64_t u(Enum value) {
  return static_cast<std::uint64_t>(value);
}

// What it was called by whoever stored it, and not where it lies.
std::string_view service_name(const Streams& all, Slot service) { return all.services[service].name; }

void add(Hasher& out, const Message& message, Number stream) {
  out.id(message.id.value)
      .numbers({message.number, stream, message.seq, message.body.lsn, message.body.hash, message.body.length,
                message.error.lsn, message.error.hash, message.error.length, u(message.stored_at),
                u(message.due), message.settled, message.data_bytes, u(message.status), message.deliveries,
                message.failures, u(message.reason), u(message.policy), message.is_event});
}

}  // namespace

std::uint64_t fact_hash(const Streams& all, const Instance& instance) {
  return Hasher(Kind::instance)
      .id(instance.id.value)
      .numbers({instance.number, u(instance.process), u(instance.started), u(instance.heard)})
      .text(all.services[instance.service].ns)
      .text(service_name(all, instance.service))
      .text(instance.host)
      .text(instance.metadata)
      .get();
}

std::uint64_t fact_hash(const Streams& all, const Stream& stream) {
  return Hasher(Kind::stream)
      .id(stream.id.value)
      .numbers({stream.number, u(stream.lane), stream.parking, u(stream.partition),
                stream.owner == 0 ? 0 : all.instances[stream.owner].number, stream.outstanding,
                stream.pending, stream.letters, stream.epoch, u(stream.lease_until), u(stream.ready_at),
                stream.ready_since, stream.next_seq, stream.given_seq, u(stream.idle_since)})
      .text(service_name(all, stream.service))
      .get();
}

std::uint64_t fact_hash(const Streams& all, const Message& message) {
  Hasher out(Kind::message);
  add(out, message, all.streams[message.stream].number);
  return out.get();
}

std::uint64_t fact_hash(const Streams& all, const Letter& letter) {
  Hasher out(Kind::letter);
  const Slot stream = letter.message.stream;
  add(out, letter.message, stream == 0 ? 0 : all.streams[stream].number);
  return out.numbers({letter.number, u(letter.lane), letter.is_dead, letter.parks, u(letter.since)})
      .id(letter.by.value)
      .text(service_name(all, letter.service))
      .get();
}

std::uint64_t fact_hash(const Streams& all, const Seen& seen) {
  return Hasher(Kind::seen)
      .id(seen.id.value)
      .numbers({u(seen.since)})
      .text(service_name(all, seen.service))
      .get();
}

std::uint64_t fact_hash(const Streams& all, const Tombstone& tombstone) {
  return Hasher(Kind::tombstone)
      .id(tombstone.id.value)
      .numbers({u(tombstone.since)})
      .text(all.spaces[tombstone.space].name)
      .get();
}

std::uint64_t fact_hash(const Streams& all, const History& history) {
  return Hasher(Kind::history)
      .id(history.id.value)
      .numbers({history.version})
      .text(all.spaces[history.space].name)
      .get();
}

std::uint64_t fact_hash(const Streams& all, const StoredEvent& event) {
  const History& of = all.histories[event.history];
  return Hasher(Kind::event)
      .id(event.id.value)
      .id(of.id.value)
      .numbers({event.version, u(event.since)})
      .get();
}

std::uint64_t fact_hash(const Streams& all, const Checkpoint& checkpoint) {
  Hasher out(Kind::checkpoint);
  out.id(all.histories[checkpoint.history].id.value)
      .text(checkpoint.perspective)
      .numbers({checkpoint.version, u(checkpoint.status), u(checkpoint.since)})
      .text(checkpoint.error);
  checkpoint.ahead.visit([&](std::uint32_t version) { out.numbers({version}); });
  return out.get();
}

std::uint64_t fact_hash(const Streams& all, const ReceptorRecord& record) {
  return Hasher(Kind::receptor)
      .id(record.event.value)
      .text(all.spaces[record.space].name)
      .text(record.receptor)
      .numbers({u(record.status), u(record.attempts), u(record.since)})
      .text(record.error)
      .get();
}

std::uint64_t full_digest(const Streams& all) {
  std::uint64_t sum = 0;
  const auto add_all = [&](const auto& memory) {
    for (Slot slot = memory.by_age.head; slot != 0; slot = memory.all[slot].next)
      sum += fact_hash(all, memory.all[slot]);
  };
  for (const auto& [number, slot] : all.instance_numbers) sum += fact_hash(all, all.instances[slot]);
  for (Slot slot = all.stream_numbers.first_from(0); slot != 0;
       slot = all.stream_numbers.first_from(all.streams[slot].number + 1))
    sum += fact_hash(all, all.streams[slot]);
  for (Slot slot = all.message_numbers.first_from(0); slot != 0;
       slot = all.message_numbers.first_from(all.messages[slot].number + 1))
    sum += fact_hash(all, all.messages[slot]);
  for (Slot slot = 1; slot < all.histories.end(); ++slot) {
    if (all.histories[slot].known > 0) sum += fact_hash(all, all.histories[slot]);
  }
  add_all(all.dead), add_all(all.kept), add_all(all.seen), add_all(all.tombstones);
  add_all(all.events), add_all(all.checkpoints), add_all(all.receptors);
  return sum;
}

}  // namespace baton::core::streams
