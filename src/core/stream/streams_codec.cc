#include "core/stream/streams_codec.h"

#include <algorithm>

#include "base/check.h"
#include "core/event_fields.h"
#include "core/names.h"

namespace baton::core::streams {

// Slots are places among facts of their kind here.
void fields(auto& f, Is<Instance> auto& e) {
  f(e.id), f(e.number), f(e.service), f(e.host), f(e.process), f(e.metadata), f(e.started), f(e.heard);
}
void fields(auto& f, Is<Stream> auto& e) {
  f(e.id), f(e.number), f(e.service), f(e.lane), f(e.parking), f(e.partition), f(e.owner), f(e.outstanding);
  f(e.pending), f(e.letters), f(e.epoch), f(e.lease_until), f(e.ready_at), f(e.ready_since), f(e.next_seq);
  f(e.given_seq), f(e.idle_since);
}
void fields(auto& f, Is<Message> auto& e) {
  f(e.id), f(e.number), f(e.stream), f(e.seq), f(e.body), f(e.error), f(e.stored_at), f(e.due), f(e.settled);
  f(e.data_bytes), f(e.status), f(e.deliveries), f(e.failures), f(e.reason), f(e.policy), f(e.is_event);
}
void fields(auto& f, Is<Letter> auto& e) {
  f(e.message), f(e.number), f(e.service), f(e.lane), f(e.parks), f(e.since), f(e.by);
}
void fields(auto& f, Is<Seen> auto& e) { f(e.id), f(e.service), f(e.since); }
void fields(auto& f, Is<Tombstone> auto& e) { f(e.id), f(e.space), f(e.since); }
void fields(auto& f, Is<History> auto& e) { f(e.id), f(e.space), f(e.version); }
void fields(auto& f, Is<StoredEvent> auto& e) { f(e.id), f(e.history), f(e.version), f(e.since); }
void fields(auto& f, Is<Checkpoint> auto& e) {
  f(e.history), f(e.perspective), f(e.version), f(e.status), f(e.error), f(e.since);
}
void fields(auto& f, Is<ReceptorRecord> auto& e) {
  f(e.event), f(e.space), f(e.receptor), f(e.status), f(e.attempts), f(e.error), f(e.since);
}

void StreamsWriter::plan() {
  const auto all_of = [&](FactKind kind, const auto& memory) {
    for (Slot slot = memory.by_age.head; slot != 0; slot = memory.all[slot].next)
      facts_[static_cast<std::size_t>(kind)].push_back(slot);
  };
  const auto by_number = [&](FactKind kind, const IdIndex& numbers, const auto& slab) {
    for (Slot slot = numbers.first_from(0); slot != 0; slot = numbers.first_from(slab[slot].number + 1))
      facts_[static_cast<std::size_t>(kind)].push_back(slot);
  };
  const auto add = [&](FactKind kind, Slot slot) { facts_[static_cast<std::size_t>(kind)].push_back(slot); };
  for (Slot slot = 1; slot < all_.services.end(); ++slot) {
    if (all_.services[slot].is_known()) add(FactKind::service, slot);
  }
  for (const auto& [number, slot] : all_.instance_numbers) add(FactKind::instance, slot);
  by_number(FactKind::stream, all_.stream_numbers, all_.streams);
  by_number(FactKind::message, all_.message_numbers, all_.messages);
  for (Slot slot = 1; slot < all_.histories.end(); ++slot) {
    if (all_.histories[slot].known > 0) add(FactKind::history, slot);
  }
  all_of(FactKind::dead, all_.dead), all_of(FactKind::kept, all_.kept), all_of(FactKind::seen, all_.seen);
  all_of(FactKind::tombstone, all_.tombstones), all_of(FactKind::event, all_.events);
  all_of(FactKind::checkpoint, all_.checkpoints), all_of(FactKind::receptor, all_.receptors);
  for (const FactKind kind : {FactKind::service, FactKind::instance, FactKind::stream, FactKind::history}) {
    const auto& slots = facts_[static_cast<std::size_t>(kind)];
    for (std::size_t i = 0; i < slots.size(); ++i)
      places_[static_cast<std::size_t>(kind)][slots[i]] = static_cast<std::uint32_t>(i + 1);
  }
  for (const auto& [service, place] : places_[static_cast<std::size_t>(FactKind::service)])
    space_places_.emplace(all_.services[service].space, place);
}

std::uint32_t StreamsWriter::place(FactKind kind, Slot slot) const {
  return slot == 0 ? 0 : places_[static_cast<std::size_t>(kind)].at(slot);
}

void StreamsWriter::head(ByteWriter& out) const {
  out.varint(all_.next_stream), out.varint(all_.next_message), out.varint(all_.next_letter);
  for (const auto& slots : facts_) out.varint(slots.size());
}

bool StreamsWriter::next(ByteWriter& out) {
  if (!planned_) {
    planned_ = true;
    // Numbers are not used twice: they are written even if all they were given to is gone.
    if (all_.services.used() == 0 && all_.next_stream + all_.next_message + all_.next_letter == 3)
      return false;
    plan();
    head(out);
    return true;
  }
  while (kind_ < kFactKinds && next_ == facts_[kind_].size()) ++kind_, next_ = 0;
  if (kind_ == kFactKinds) return false;
  write(out, static_cast<FactKind>(kind_), facts_[kind_][next_++]);
  return true;
}

void StreamsWriter::write(ByteWriter& out, FactKind kind, Slot slot) {
  FieldWriter f(out);
  const auto with = [&](auto fact, Slot std::type_identity_t<decltype(fact)>::* link, FactKind of) {
    fact.*link = place(of, fact.*link);
    return fact;
  };
  // A namespace is named by any of its services.
  const auto space = [&](auto fact) {
    fact.space = space_places_.at(fact.space);
    return fact;
  };
  const auto letter = [&](const Letter& known) {
    Letter fact = with(known, &Letter::service, FactKind::service);
    fact.message.stream = place(FactKind::stream, fact.message.stream);
    return fact;
  };
  switch (kind) {
    case FactKind::service:
      f(std::string_view(all_.services[slot].ns)), f(std::string_view(all_.services[slot].name));
      return;
    case FactKind::instance: return f(with(all_.instances[slot], &Instance::service, FactKind::service));
    case FactKind::stream: {
      Stream fact = with(all_.streams[slot], &Stream::service, FactKind::service);
      return f(with(fact, &Stream::owner, FactKind::instance));
    }
    case FactKind::message: return f(with(all_.messages[slot], &Message::stream, FactKind::stream));
    case FactKind::history: return f(space(all_.histories[slot]));
    case FactKind::dead: return f(letter(all_.dead.all[slot]));
    case FactKind::kept: return f(letter(all_.kept.all[slot]));
    case FactKind::seen: return f(with(all_.seen.all[slot], &Seen::service, FactKind::service));
    case FactKind::tombstone: return f(space(all_.tombstones.all[slot]));
    case FactKind::event: return f(with(all_.events.all[slot], &StoredEvent::history, FactKind::history));
    case FactKind::checkpoint: {
      const Checkpoint& known = all_.checkpoints.all[slot];
      f(with(known, &Checkpoint::history, FactKind::history));
      std::vector<std::uint32_t> ahead;
      known.ahead.visit([&](std::uint32_t version) { ahead.push_back(version); });
      return f(ahead);
    }
    case FactKind::receptor: return f(space(all_.receptors.all[slot]));
  }
}

Slot StreamsReader::slot_at(FactKind kind, std::uint32_t place) const {
  const auto& slots = slots_[static_cast<std::size_t>(kind)];
  if (place == 0) return 0;
  BATON_CHECK(place <= slots.size());
  return slots[place - 1];
}

void StreamsReader::item(ByteReader& in) {
  try {
    const ThrowOnCheck rather_than_stop;
    if (!head_read_) return head(in);
    while (kind_ < kFactKinds && read_ == expected_[kind_]) ++kind_, read_ = 0;
    if (kind_ == kFactKinds) return in.fail();
    ++read_;
    put(in, static_cast<FactKind>(kind_));
  } catch (const CheckFailure&) {
    in.fail();  // facts that contradict each other
  }
}

void StreamsReader::head(ByteReader& in) {
  head_read_ = true;
  all_.next_stream = in.varint(), all_.next_message = in.varint(), all_.next_letter = in.varint();
  for (std::uint64_t& count : expected_) count = in.varint();
}

void StreamsReader::put(ByteReader& in, FactKind kind) {
  FieldReader f(in);
  const auto read = [&](auto fact, auto use) {
    f(fact);
    BATON_CHECK(in.ok());
    use(fact);
  };
  const auto service = [&](Slot& slot) {
    slot = slot_at(FactKind::service, slot);
    BATON_CHECK(slot != 0);
  };
  const auto space = [&](Slot& slot) {
    service(slot);
    slot = all_.services[slot].space;
  };
  const auto history = [&](Slot& slot) {
    slot = slot_at(FactKind::history, slot);
    BATON_CHECK(slot != 0);
  };
  switch (kind) {
    case FactKind::service: {
      const std::string_view ns = in.text(), name = in.text();
      BATON_CHECK(in.ok() && is_name(ns) && find_service(all_, ns, name) == 0);
      slots_[0].push_back(keeper_.make_service(ns, name));
      return;
    }
    case FactKind::instance: return read(Instance{}, [&](Instance& e) { service(e.service), take(e); });
    case FactKind::stream: return read(Stream{}, [&](Stream& e) { service(e.service), take(e); });
    case FactKind::message: return read(Message{}, [&](Message& e) { take(e); });
    case FactKind::history:
      return read(History{}, [&](History& e) {
        space(e.space);
        BATON_CHECK(all_.history_ids.find(e.space, e.id.value) == 0);
        const Slot slot = keeper_.make_history(e.space, e.id);
        const auto rewriting = keeper_.rewrite(all_.histories[slot]);
        all_.histories[slot].version = e.version;
        slots_[static_cast<std::size_t>(FactKind::history)].push_back(slot);
      });
    case FactKind::dead: return read(Letter{}, [&](Letter& e) { service(e.service), take(e, true); });
    case FactKind::kept: return read(Letter{}, [&](Letter& e) { service(e.service), take(e, false); });
    case FactKind::seen: return read(Seen{}, [&](Seen& e) { service(e.service), keeper_.remember(e); });
    case FactKind::tombstone:
      return read(Tombstone{}, [&](Tombstone& e) { space(e.space), keeper_.remember(e); });
    case FactKind::event:
      return read(StoredEvent{}, [&](StoredEvent& e) { history(e.history), keeper_.remember(e); });
    case FactKind::checkpoint:
      return read(Checkpoint{}, [&](Checkpoint& e) {
        std::vector<std::uint32_t> ahead;
        f(ahead);
        for (const std::uint32_t version : ahead) e.ahead.add(version);
        history(e.history), keeper_.remember(e);
      });
    case FactKind::receptor:
      return read(ReceptorRecord{}, [&](ReceptorRecord& e) { space(e.space), keeper_.remember(e); });
  }
}

void StreamsReader::take(Instance fact) {
  keeper_.add(fact);
  slots_[static_cast<std::size_t>(FactKind::instance)].push_back(keeper_.recorded_instance(fact.number));
}

void StreamsReader::take(Stream fact) {
  BATON_CHECK(fact.number < all_.next_stream);
  Stream bare = fact;
  bare.owner = 0, bare.pending = 0, bare.letters = 0, bare.ready_at = kNever;
  const Slot slot = keeper_.add(bare);
  fact.owner = slot_at(FactKind::instance, fact.owner);
  const StreamChange change = keeper_.change(slot);
  fact.prev = all_.streams[slot].prev, fact.next = all_.streams[slot].next;
  all_.streams[slot] = fact;
  slots_[static_cast<std::size_t>(FactKind::stream)].push_back(slot);
}

void StreamsReader::take(Message fact) {
  fact.stream = slot_at(FactKind::stream, fact.stream);
  BATON_CHECK(fact.stream != 0 && fact.number < all_.next_message);
  keeper_.add(fact);
}

void StreamsReader::take(Letter fact, bool is_dead) {
  fact.message.stream = slot_at(FactKind::stream, fact.message.stream);
  fact.is_dead = is_dead;
  BATON_CHECK(fact.number < all_.next_letter);
  keeper_.add(is_dead ? all_.dead : all_.kept, fact);
}

bool StreamsReader::finish() {
  if (!head_read_) return true;
  while (kind_ < kFactKinds && read_ == expected_[kind_]) ++kind_, read_ = 0;
  if (kind_ < kFactKinds) return false;
  for (Slot slot = 1; slot < all_.services.end(); ++slot) {
    if (all_.services[slot].is_known() && all_.services[slot].uses == 0) keeper_.remove_unused(slot);
  }
  // The one that has been idle longest goes first.
  std::vector<Slot> idle;
  for (Slot slot = all_.idle.head; slot != 0; slot = all_.streams[slot].next) idle.push_back(slot);
  std::ranges::stable_sort(idle, {}, [&](Slot slot) { return all_.streams[slot].idle_since; });
  all_.idle = {};
  for (const Slot slot : idle) link_back(all_.streams, all_.idle, slot);
  return true;
}

}  // namespace baton::core::streams
