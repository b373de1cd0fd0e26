#include "core/stream/keeper.h"

#include "core/stream/keys.h"

namespace baton::core::streams {
namespace {

std::set<Ready>& index_of(Streams& all, const Stream& stream) {
  LaneOfService& lane = all.services[stream.service].at(stream.lane);
  return stream.is_loose() ? lane.loose : lane.ready;
}

void move_in(std::set<Ready>& index, const Ready& from, const Ready& to) {
  if (from == to) return;
  if (from.at == kNever) {
    index.insert(to);
    return;
  }
  auto node = index.extract(from);
  BATON_CHECK(!node.empty());
  if (to.at == kNever) return;
  node.value() = to;
  index.insert(std::move(node));
}

enum class Count : std::uint64_t { in = 1, out = ~std::uint64_t{0} };

// For whoever wants to know how much there is of what, and must not have to look at all of it.
void count(Streams& all, const Stream& of, Count which) {
  const auto one = static_cast<std::uint64_t>(which);
  LaneOfService& lane = all.services[of.service].at(of.lane);
  if (of.owner != 0) {
    lane.held += one * of.outstanding;
    all.instances[of.owner].messages += one * of.outstanding;
  }
  if (of.is_loose()) return;
  if (of.pending > 0) lane.streams += one;
  if (of.owner != 0) lane.held_streams += one, all.instances[of.owner].streams += one;
  if (of.parking > 0) lane.parked_streams += one;
}

}  // namespace

StreamChange::StreamChange(Streams& all, Slot slot, std::uint64_t& digest)
    : all_(all),
      slot_(slot),
      digest_(digest),
      ready_(all.streams[slot].ready(slot)),
      owner_(all.streams[slot].owner),
      idle_(all.streams[slot].is_idle()) {
  digest_ -= fact_hash(all, all.streams[slot]);
  count(all, all.streams[slot], Count::out);
}

StreamChange::~StreamChange() {
  Stream& now = all_.streams[slot_];
  digest_ += fact_hash(all_, now);
  count(all_, now, Count::in);
  move_in(index_of(all_, now), ready_, now.ready(slot_));
  const bool stays = now.owner == owner_ && now.is_idle() == idle_;
  if (stays) return;
  if (owner_ != 0) {
    unlink(all_.streams, all_.instances[owner_].held, slot_);
    --all_.instances[owner_].holds;
  }
  if (idle_) unlink(all_.streams, all_.idle, slot_);
  if (now.owner != 0) {
    link_back(all_.streams, all_.instances[now.owner].held, slot_);
    ++all_.instances[now.owner].holds;
  }
  if (now.is_idle()) link_back(all_.streams, all_.idle, slot_);
}

Slot Keeper::make_history(Slot space, stream::StreamId id) {
  if (const Slot known = all_.history_ids.find(space, id.value)) return known;
  const Slot slot = all_.histories.take();
  all_.histories[slot].id = id, all_.histories[slot].space = space;
  use_space(space);
  all_.history_ids.insert(space, id.value, slot);
  digest_ += fact_hash(all_, all_.histories[slot]);
  return slot;
}

Slot Keeper::recorded_instance(Number number) const {
  const auto found = all_.instance_numbers.find(number);
  BATON_CHECK(found != all_.instance_numbers.end());
  return found->second;
}
Slot Keeper::recorded_stream(Number number) const {
  const Slot slot = all_.stream_numbers.find(number);
  BATON_CHECK(slot != 0);
  return slot;
}
Slot Keeper::recorded_message(Number number) const {
  const Slot slot = all_.message_numbers.find(number);
  BATON_CHECK(slot != 0);
  return slot;
}
Slot Keeper::recorded_letter(Number number) const {
  const auto found = all_.dead_numbers.find(number);
  BATON_CHECK(found != all_.dead_numbers.end());
  return found->second;
}

void Keeper::add(const Instance& instance) {
  Service& service = all_.services[instance.service];
  const Slot slot = all_.instances.take();
  use_service(instance.service);
  all_.instances[slot] = instance;
  all_.instance_ids.insert(service.space, instance.id.value, slot);
  const bool is_new = all_.instance_numbers.emplace(instance.number, slot).second;
  BATON_CHECK(is_new);
  service.instances.emplace(instance.id, slot);
  digest_ += fact_hash(all_, instance);
}

void Keeper::remove_instance(Slot slot) {
  const Instance& gone = all_.instances[slot];
  BATON_CHECK(gone.holds == 0);
  digest_ -= fact_hash(all_, gone);
  const Slot of = gone.service;
  Service& service = all_.services[of];
  service.instances.erase(gone.id);
  all_.instance_ids.erase(service.space, gone.id.value);
  all_.instance_numbers.erase(gone.number);
  all_.instances.give_back(slot);
  let_go_of_service(of);
}

Slot Keeper::add(const Stream& stream) {
  BATON_CHECK(stream.pending == 0 && stream.owner == 0 && stream.letters == 0 && stream.ready_at == kNever);
  const Slot slot = all_.streams.take();
  use_service(stream.service);
  all_.streams[slot] = stream;
  all_.stream_numbers.append(stream.number, slot);
  if (!stream.is_loose())
    all_.stream_ids.insert(scope_of(stream.service, stream.lane), stream.id.value, slot);
  link_back(all_.streams, all_.idle, slot);
  digest_ += fact_hash(all_, stream);
  count(all_, stream, Count::in);
  return slot;
}

void Keeper::remove_stream(Slot slot) {
  const Stream& gone = all_.streams[slot];
  BATON_CHECK(gone.is_idle() && gone.messages.head == 0 && gone.ready_at == kNever);
  digest_ -= fact_hash(all_, gone);
  count(all_, gone, Count::out);
  unlink(all_.streams, all_.idle, slot);
  const Slot service = gone.service;
  if (!gone.is_loose()) all_.stream_ids.erase(scope_of(service, gone.lane), gone.id.value);
  all_.stream_numbers.erase(gone.number);
  all_.streams.give_back(slot);
  let_go_of_service(service);
}

Slot Keeper::add(const Message& message) {
  Stream& of = all_.streams[message.stream];
  const Slot slot = all_.messages.take();
  all_.messages[slot] = message;
  all_.message_ids.insert(scope_of(of.service, of.lane), message.id.value, slot);
  all_.message_numbers.append(message.number, slot);
  const Slot before = next_to(of, message);
  link_before(all_.messages, of.messages, slot, before);
  if (before != 0) put_back_ = slot;
  ++all_.services[of.service].at(of.lane).messages;
  digest_ += fact_hash(all_, message);
  return slot;
}

// The one that it belongs before; none, if it is the last. Those that come back do so one behind the other,
// so the search goes on from the one before, and a thousand of them are not a million steps.
Slot Keeper::next_to(const Stream& of, const Message& message) const {
  if (of.messages.tail == 0 || all_.messages[of.messages.tail].seq < message.seq) return 0;
  const bool goes_on = put_back_ != 0 && all_.messages[put_back_].stream == message.stream &&
                       all_.messages[put_back_].seq < message.seq;
  Slot next = goes_on ? put_back_ : of.messages.head;
  while (all_.messages[next].seq < message.seq) next = all_.messages[next].next;
  BATON_CHECK(all_.messages[next].seq != message.seq);
  return next;
}

void Keeper::remove_message(Slot slot) {
  if (put_back_ == slot) put_back_ = 0;
  const Message& gone = all_.messages[slot];
  Stream& of = all_.streams[gone.stream];
  digest_ -= fact_hash(all_, gone);
  unlink(all_.messages, of.messages, slot);
  --all_.services[of.service].at(of.lane).messages;
  all_.message_ids.erase(scope_of(of.service, of.lane), gone.id.value);
  all_.message_numbers.erase(gone.number);
  all_.messages.give_back(slot);
}

template <class T>
Slot Keeper::keep(Memory<T>& memory, const T& fact) {
  const Slot slot = memory.all.take();
  memory.all[slot] = fact;
  link_back(memory.all, memory.by_age, slot);
  digest_ += fact_hash(all_, fact);
  return slot;
}

template <class T>
void Keeper::drop(Memory<T>& memory, Slot slot) {
  digest_ -= fact_hash(all_, memory.all[slot]);
  unlink(memory.all, memory.by_age, slot);
  memory.all.give_back(slot);
}

template <class T>
Slot Keeper::oldest(const Memory<T>& memory) const {
  BATON_CHECK(memory.by_age.head != 0);
  return memory.by_age.head;
}

void Keeper::add(Memory<Letter>& into, const Letter& letter) {
  const Slot slot = keep(into, letter);
  use_service(letter.service);
  if (!letter.is_dead) return;
  const bool is_new = all_.dead_numbers.emplace(letter.number, slot).second;
  BATON_CHECK(is_new);
  if (!letter.parks) all_.dead_in_no_way.insert(letter.number);
  ++all_.services[letter.service].at(letter.lane).letters;
}

void Keeper::remove_dead(Slot slot) {
  const Letter& gone = all_.dead.all[slot];
  const Slot service = gone.service;
  --all_.services[service].at(gone.lane).letters;
  all_.dead_numbers.erase(gone.number);
  all_.dead_in_no_way.erase(gone.number);
  drop(all_.dead, slot);
  let_go_of_service(service);
}

// Of one that was seen too long ago to count, the time is new.
void Keeper::remember(const Seen& seen) {
  if (const Slot known = all_.seen_ids.find(seen.service, seen.id.value)) {
    all_.seen_ids.erase(seen.service, seen.id.value);
    drop(all_.seen, known);
  } else {
    use_service(seen.service);
  }
  all_.seen_ids.insert(seen.service, seen.id.value, keep(all_.seen, seen));
}

void Keeper::remember(const Tombstone& tombstone) {
  use_space(tombstone.space);
  all_.tombstone_ids.insert(tombstone.space, tombstone.id.value, keep(all_.tombstones, tombstone));
}

void Keeper::remember(const StoredEvent& event) {
  History& of = all_.histories[event.history];
  ++of.known, ++of.events;
  all_.event_ids.insert(of.space, event.id.value, keep(all_.events, event));
}

void Keeper::remember(const ReceptorRecord& record) {
  const std::string key = scoped_key(record.space, record.event.value, record.receptor);
  if (const Slot known = all_.receptor_names.find(key)) {
    all_.receptor_names.erase(key);
    drop(all_.receptors, known);
  } else {
    use_space(record.space);
  }
  all_.receptor_names.insert(key, keep(all_.receptors, record));
}

void Keeper::remember(const Checkpoint& checkpoint) {
  History& of = all_.histories[checkpoint.history];
  const std::string key = scoped_key(of.space, of.id.value, checkpoint.perspective);
  if (const Slot known = all_.checkpoint_names.find(key)) {
    all_.checkpoint_names.erase(key);
    drop(all_.checkpoints, known);
  } else {
    ++of.known;
  }
  all_.checkpoint_names.insert(key, keep(all_.checkpoints, checkpoint));
}

// A history without events or checkpoints is none.
void Keeper::let_go(Slot slot) {
  History& history = all_.histories[slot];
  if (--history.known > 0) return;
  const Slot space = history.space;
  digest_ -= fact_hash(all_, history);
  all_.history_ids.erase(space, history.id.value);
  all_.histories.give_back(slot);
  let_go_of_space(space);
}

void Keeper::forget_kept() {
  const Slot slot = oldest(all_.kept), service = all_.kept.all[slot].service;
  drop(all_.kept, slot);
  let_go_of_service(service);
}

void Keeper::forget_seen() {
  const Slot slot = oldest(all_.seen), service = all_.seen.all[slot].service;
  all_.seen_ids.erase(service, all_.seen.all[slot].id.value);
  drop(all_.seen, slot);
  let_go_of_service(service);
}

void Keeper::forget_tombstone() {
  const Slot slot = oldest(all_.tombstones), space = all_.tombstones.all[slot].space;
  all_.tombstone_ids.erase(space, all_.tombstones.all[slot].id.value);
  drop(all_.tombstones, slot);
  let_go_of_space(space);
}

void Keeper::forget_event() {
  const Slot slot = oldest(all_.events), history = all_.events.all[slot].history;
  all_.event_ids.erase(all_.histories[history].space, all_.events.all[slot].id.value);
  drop(all_.events, slot);
  --all_.histories[history].events;
  let_go(history);
}

void Keeper::forget_receptor() {
  const Slot slot = oldest(all_.receptors);
  const ReceptorRecord& record = all_.receptors.all[slot];
  const Slot space = record.space;
  all_.receptor_names.erase(scoped_key(space, record.event.value, record.receptor));
  drop(all_.receptors, slot);
  let_go_of_space(space);
}

void Keeper::forget_checkpoint() {
  const Slot slot = oldest(all_.checkpoints), history = all_.checkpoints.all[slot].history;
  const History& of = all_.histories[history];
  all_.checkpoint_names.erase(scoped_key(of.space, of.id.value, all_.checkpoints.all[slot].perspective));
  drop(all_.checkpoints, slot);
  let_go(history);
}

}  // namespace baton::core::streams
