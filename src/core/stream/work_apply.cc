#include "core/stream/work_apply.h"

#include "base/check.h"
#include "base/mutant.h"
#include "core/stream/deliveries.h"
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
    if (!heard.host.empty()) known.host = heard.host;
    if (heard.process != 0) known.process = heard.process;
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
    for (const std::uint32_t version : moved.ahead) now.ahead.add(version);
    now.ahead.drop_up_to(now.version);
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

  Streams& all_;
  Keeper keeper_;
  const WorkBatchApplied& event_;
  const Stamp& at_;
  Blobs blobs_;
  Slot instance_ = 0;
  Slot service_ = 0;
  Slot space_ = 0;
};

}  // namespace

void fact(State& state, const WorkBatchApplied& event, const Stamp& at) { Turn(state, event, at).apply(); }

}  // namespace baton::core
