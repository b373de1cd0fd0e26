#include "core/stream/work_apply.h"

#include "base/check.h"
#include "base/mutant.h"
#include "core/stream/keeper.h"
#include "core/stream/rules.h"

namespace baton::core {
namespace {

using namespace streams;
using stream::Lane;

// The blobs of an entry lie at its end, one after the other.
class Blobs {
 public:
  Blobs(const WorkBatchApplied& event, const Stamp& at) : lsn_(at.lsn), next_(at.body_end) {
    for (const MessageReported& report : event.reports) next_ -= length(report.error);
    for (const MessageStored& stored : event.stored) next_ -= length(stored.body);
  }
  BlobRef next(const BlobView& blob) {
    if (blob.bytes.empty()) return {};
    const BlobRef ref{.lsn = lsn_, .hash = blob.hash, .offset = next_, .length = length(blob)};
    next_ += ref.length;
    return ref;
  }

 private:
  static std::uint32_t length(const BlobView& blob) { return static_cast<std::uint32_t>(blob.bytes.size()); }
  const Lsn lsn_;
  std::uint32_t next_;
};

class Turn {
 public:
  Turn(State& state, const WorkBatchApplied& event, const Stamp& at)
      : all_(state.streams), keeper_(all_, state.digest), event_(event), at_(at), blobs_(event, at) {}

  void apply() {
    if (event_.heard) hear(*event_.heard);
    instance_ = find_instance(all_, event_.ns, event_.instance);
    BATON_CHECK(instance_ != 0);
    service_ = all_.instances[instance_].service;
    space_ = all_.services[service_].space;
    for (const MessageReported& report : event_.reports) happen(report);
    for (const ReceptorRecorded& recorded : event_.receptors) happen(recorded);
    for (const CheckpointMoved& moved : event_.checkpoints) happen(moved);
    for (const StreamRenewed& renewed : event_.renewals) happen(renewed);
    for (const StreamOpened& opened : event_.opened) open(opened.id, opened.lane, opened.partition);
    for (const MessageStored& stored : event_.stored) happen(stored);
    for (const StreamClaimed& claimed : event_.claims) happen(claimed);
  }

 private:
  void hear(const InstanceHeard& heard) {
    if (heard.joins) {
      keeper_.add(Instance{.id = event_.instance,
                           .number = at_.lsn,
                           .service = keeper_.make_service(event_.ns, heard.service),
                           .host = std::string(heard.host),
                           .process = heard.process,
                           .metadata = std::string(heard.metadata),
                           .started = at_.time,
                           .heard = at_.time});
      return;
    }
    const Slot slot = find_instance(all_, event_.ns, event_.instance);
    BATON_CHECK(slot != 0);
    Instance& known = all_.instances[slot];
    const auto rewrite = keeper_.rewrite(known);
    known.heard = at_.time;
    if (!heard.metadata.empty()) known.metadata = heard.metadata;
  }

  void happen(const MessageReported& report) {
    const Slot slot = keeper_.recorded_message(report.message);
    const Slot of = all_.messages[slot].stream;
    Stream& stream = all_.streams[of];
    // Nobody has reported that it failed: it was lost too often.
    if (report.how == Reported::dead && (report.status & kFailed) == 0)
      return lose_for_good(report, slot, of);
    BATON_CHECK(stream.owner == instance_ || mutant(Mutant::m31_report_under_a_lost_lease_accepted));
    BATON_CHECK(is_out(stream, all_.messages[slot]) && stream.outstanding > 0);
    {
      const StreamChange change = keeper_.change(of);
      const BlobRef error = blobs_.next(report.error);
      const bool is_dead = report.how == Reported::dead;
      const bool parks = is_dead && report.policy == stream::FailurePolicy::park_stream && !stream.is_loose();
      const bool stays = report.how == Reported::returned || report.how == Reported::retried;
      rewrite(all_.messages[slot], report, error, stream.epoch);
      if (is_dead || report.how == Reported::kept) bury(all_.messages[slot], stream, is_dead, parks);
      if (!stays) keeper_.remove_message(slot);
      take_report(stream, !stays, parks, at_.time);
      make_ready(stream, ready_from(stream, head_due(all_, stream), at_.time), at_.lsn);
    }
    if (stream.is_loose() && stream.pending == 0) keeper_.remove_stream(of);
  }

  void lose_for_good(const MessageReported& report, Slot slot, Slot of) {
    Stream& stream = all_.streams[of];
    BATON_CHECK(stream.ready_at <= at_.time && stream.messages.head == slot);
    {
      const StreamChange change = keeper_.change(of);
      count_deliveries(all_, keeper_, stream);
      const bool parks = report.policy == stream::FailurePolicy::park_stream && !stream.is_loose();
      {
        Message& message = all_.messages[slot];
        const auto rewriting = keeper_.rewrite(message);
        message.error = blobs_.next(report.error);
        message.reason = report.reason;
      }
      if (!mutant(Mutant::m33_message_lost_at_poison)) bury(all_.messages[slot], stream, true, parks);
      keeper_.remove_message(slot);
      lose(stream, parks);
      stream.idle_since = at_.time;
      make_ready(stream, ready_from(stream, head_due(all_, stream), at_.time), at_.lsn);
    }
    if (stream.is_loose()) keeper_.remove_stream(of);
  }

  void rewrite(Message& message, const MessageReported& report, const BlobRef& error, Lsn epoch) {
    const auto rewriting = keeper_.rewrite(message);
    message.status = report.status;
    message.settled = epoch;
    if (report.how != Reported::retried && report.how != Reported::dead) return;
    message.error = error;
    message.reason = report.reason;
    message.policy = report.policy;
    message.due = report.due;
    ++message.failures;
    ++message.deliveries;
  }

  void bury(const Message& message, Stream& stream, bool is_dead, bool parks) {
    Letter letter{.message = message,
                  .number = all_.next_letter++,
                  .service = service_,
                  .lane = stream.lane,
                  .is_dead = is_dead,
                  .parks = parks,
                  .since = at_.time,
                  .by = event_.instance};
    if (stream.is_loose() || !is_dead) letter.message.stream = 0;
    if (letter.message.stream != 0) ++stream.letters;
    keeper_.add(is_dead ? all_.dead : all_.kept, letter);
  }

  void happen(const ReceptorRecorded& recorded) {
    keeper_.remember(ReceptorRecord{.event = recorded.event,
                                    .space = space_,
                                    .receptor = std::string(recorded.receptor),
                                    .status = recorded.status,
                                    .attempts = recorded.attempts,
                                    .error = std::string(recorded.error),
                                    .since = at_.time});
  }

  void happen(const CheckpointMoved& moved) {
    const Slot history = all_.history_ids.find(space_, moved.stream.value);
    BATON_CHECK(history != 0 && moved.version <= all_.histories[history].version);
    Checkpoint now{.history = history, .perspective = std::string(moved.perspective)};
    if (const Slot known = find_checkpoint(all_, space_, moved.stream, moved.perspective)) {
      now.ahead = all_.checkpoints.all[known].ahead;
      BATON_CHECK(moved.version >= all_.checkpoints.all[known].version);
    }
    now.version = moved.version;
    now.status = moved.status;
    now.error = moved.error;
    now.since = at_.time;
    now.ahead.insert(moved.ahead.begin(), moved.ahead.end());
    std::erase_if(now.ahead, [&](std::uint32_t version) { return version <= now.version; });
    keeper_.remember(now);
  }

  void happen(const StreamRenewed& renewed) {
    const Slot slot = keeper_.recorded_stream(renewed.stream);
    Stream& stream = all_.streams[slot];
    BATON_CHECK(stream.owner == instance_ && renewed.until > at_.time);
    const StreamChange change = keeper_.change(slot);
    stream.lease_until = renewed.until;
    make_ready(stream, ready_from(stream, head_due(all_, stream), at_.time), at_.lsn);
  }

  Slot open(stream::StreamId id, Lane lane, std::int32_t partition) {
    return keeper_.add(Stream{.id = id,
                              .number = all_.next_stream++,
                              .service = service_,
                              .lane = lane,
                              .partition = partition,
                              .idle_since = at_.time});
  }

  void happen(const MessageStored& stored) {
    const Slot slot = stored.stream == 0 ? open({}, stored.lane, -1) : keeper_.recorded_stream(stored.stream);
    Stream& stream = all_.streams[slot];
    BATON_CHECK(stream.service == service_ && stream.lane == stored.lane);
    {
      const StreamChange change = keeper_.change(slot);
      keeper_.add(Message{.id = stored.id,
                          .number = all_.next_message++,
                          .stream = slot,
                          .seq = stream.next_seq,
                          .body = blobs_.next(stored.body),
                          .stored_at = at_.time,
                          .data_bytes = stored.data_bytes,
                          .policy = stored.policy,
                          .is_event = stored.is_event});
      take_message(stream, at_.time, at_.lsn);
    }
    if (stored.lane == Lane::inbox)
      keeper_.remember(Seen{.id = stored.id, .service = service_, .since = at_.time});
    if (!stored.appends_event) return;
    BATON_CHECK(stored.stream != 0);
    const Slot history = keeper_.make_history(space_, stream.id);
    {
      const auto rewriting = keeper_.rewrite(all_.histories[history]);
      ++all_.histories[history].version;
    }
    keeper_.remember(StoredEvent{
        .id = stored.id, .history = history, .version = all_.histories[history].version, .since = at_.time});
  }

  void happen(const StreamClaimed& claimed) {
    const Slot slot = keeper_.recorded_stream(claimed.stream);
    Stream& stream = all_.streams[slot];
    BATON_CHECK(stream.service == service_);
    BATON_CHECK(stream.ready_at <= at_.time || mutant(Mutant::m28_stream_claimed_by_two));
    BATON_CHECK(claimed.count > 0 && claimed.count <= stream.pending && claimed.given_seq < stream.next_seq);
    const StreamChange change = keeper_.change(slot);
    count_deliveries(all_, keeper_, stream);  // of whoever lost it
    stream.owner = instance_;
    stream.epoch = at_.lsn;
    stream.lease_until = event_.lease_until;
    stream.given_seq = claimed.given_seq;
    stream.outstanding = claimed.count;
    make_ready(stream, stream.lease_until, at_.lsn);
  }

 public:
  // Those that end without a report.
  static void count_deliveries(Streams& all, Keeper& keeper, const Stream& of) {
    for (Slot slot = of.messages.head; slot != 0 && of.owner != 0; slot = all.messages[slot].next) {
      Message& message = all.messages[slot];
      if (message.seq > of.given_seq) break;
      if (!is_out(of, message)) continue;
      const auto rewriting = keeper.rewrite(message);
      ++message.deliveries;
    }
  }

 private:
  Streams& all_;
  Keeper keeper_;
  const WorkBatchApplied& event_;
  const Stamp& at_;
  Blobs blobs_;
  Slot instance_ = 0;
  Slot service_ = 0;
  Slot space_ = 0;
};

// All it holds can be claimed by others at once. Whoever was lost may have begun; whoever leaves has not.
void give_back(State& state, Keeper& keeper, Slot instance, bool lost, const Stamp& at) {
  Streams& all = state.streams;
  while (const Slot slot = all.instances[instance].held.head) {
    Stream& stream = all.streams[slot];
    const StreamChange change = keeper.change(slot);
    if (lost) Turn::count_deliveries(all, keeper, stream);
    stream.owner = 0;
    stream.lease_until = {};
    stream.outstanding = 0;
    make_ready(stream, ready_from(stream, head_due(all, stream), at.time), at.lsn);
  }
}

// A letter is gone from the dead ones; its stream goes on if it was the last in the way.
void take_letter(State& state, Keeper& keeper, Slot slot, const Stamp& at) {
  Streams& all = state.streams;
  const Letter letter = all.dead.all[slot];
  keeper.remove_dead(slot);
  if (letter.message.stream == 0) return;
  Stream& stream = all.streams[letter.message.stream];
  const StreamChange change = keeper.change(letter.message.stream);
  BATON_CHECK(stream.letters > 0 && stream.parking >= (letter.parks ? 1 : 0));
  --stream.letters;
  stream.parking -= letter.parks ? 1 : 0;
  make_ready(stream, ready_from(stream, head_due(all, stream), at.time), at.lsn);
}

// Into its old place, and if somebody holds the stream, as one that was not handed out.
void put_back(State& state, Keeper& keeper, const Letter& letter, const Stamp& at) {
  Streams& all = state.streams;
  Message message = letter.message;
  if (message.stream == 0) {
    message.stream = keeper.add(Stream{.number = all.next_stream++,
                                       .service = letter.service,
                                       .lane = letter.lane,
                                       .next_seq = message.seq,
                                       .idle_since = at.time});
  }
  Stream& stream = all.streams[message.stream];
  const StreamChange change = keeper.change(message.stream);
  message.number = all.next_message++;
  message.status &= ~static_cast<std::int32_t>(stream::MessageStatus::failed);
  message.failures = 0;
  message.deliveries = 0;
  message.due = {};
  message.settled = stream.epoch;
  message.prev = message.next = 0;
  keeper.add(message);
  const std::uint64_t next_seq = stream.next_seq;
  take_message(stream, at.time, at.lsn);
  if (!stream.is_loose()) stream.next_seq = next_seq;
}

}  // namespace

void fact(State& state, const WorkBatchApplied& event, const Stamp& at) { Turn(state, event, at).apply(); }

void fact(State& state, const InstancesEvicted& event, const Stamp& at) {
  Keeper keeper(state.streams, state.digest);
  for (const Number number : event.instances) {
    const Slot slot = keeper.recorded_instance(number);
    give_back(state, keeper, slot, true, at);
    const Instance& gone = state.streams.instances[slot];
    const Slot space = state.streams.services[gone.service].space;
    keeper.remember(Tombstone{.id = gone.id, .space = space, .since = at.time});
    keeper.remove_instance(slot);
  }
}

void fact(State& state, const InstanceLeft& event, const Stamp& at) {
  Keeper keeper(state.streams, state.digest);
  const Slot slot = keeper.recorded_instance(event.instance);
  give_back(state, keeper, slot, false, at);
  keeper.remove_instance(slot);
}

void fact(State& state, const LettersReplayed& event, const Stamp& at) {
  Keeper keeper(state.streams, state.digest);
  for (const Number number : event.letters) {
    const Slot slot = keeper.recorded_letter(number);
    const Letter letter = state.streams.dead.all[slot];
    if (letter.message.stream != 0) {
      // First the message, then the letter: its stream is never without either.
      put_back(state, keeper, letter, at);
      take_letter(state, keeper, slot, at);
    } else {
      take_letter(state, keeper, slot, at);
      put_back(state, keeper, letter, at);
    }
  }
}

void fact(State& state, const LettersPurged& event, const Stamp& at) {
  Keeper keeper(state.streams, state.digest);
  for (const Number number : event.letters) take_letter(state, keeper, keeper.recorded_letter(number), at);
}

void fact(State& state, const StreamsForgotten& event, const Stamp&) {
  Keeper keeper(state.streams, state.digest);
  for (std::uint32_t i = 0; i < event.seen; ++i) keeper.forget_seen();
  for (std::uint32_t i = 0; i < event.tombstones; ++i) keeper.forget_tombstone();
  for (std::uint32_t i = 0; i < event.events; ++i) keeper.forget_event();
  for (std::uint32_t i = 0; i < event.receptors; ++i) keeper.forget_receptor();
  for (std::uint32_t i = 0; i < event.checkpoints; ++i) keeper.forget_checkpoint();
  for (std::uint32_t i = 0; i < event.kept; ++i) keeper.forget_kept();
  for (const Number number : event.idle) keeper.remove_stream(keeper.recorded_stream(number));
}

void fact(State& state, const MessageBlobMoved& event, const Stamp& at) {
  Streams& all = state.streams;
  Keeper keeper(all, state.digest);
  const auto length = static_cast<std::uint32_t>(event.blob.bytes.size());
  const auto move = [&](const auto& fact, Message& message) {
    BlobRef& ref = event.part == MessagePart::body ? message.body : message.error;
    BATON_CHECK(length > 0 && ref.hash == event.blob.hash && ref.length == length);
    const auto rewriting = keeper.rewrite(fact);
    ref = {.lsn = at.lsn, .hash = event.blob.hash, .offset = at.body_end - length, .length = length};
  };
  if (event.is_letter) {
    Letter& letter = all.dead.all[keeper.recorded_letter(event.number)];
    move(letter, letter.message);
  } else {
    Message& message = all.messages[keeper.recorded_message(event.number)];
    move(message, message);
  }
}

}  // namespace baton::core
