#include "tests/sim/stream_history.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/limits.h"
#include "tests/sim/violation.h"

namespace baton::sim {
namespace {

using core::Lsn;
using core::Stamp;

}  // namespace

void StreamHistory::happened(const core::WorkBatchApplied& event, const Stamp& at) {
  const std::pair name(std::string(event.ns), event.instance);
  if (event.heard && event.heard->joins)
    demand(instances_.emplace(name, SeenInstance{at.lsn, at.time}).second, "S16", at,
           "an instance joins twice");
  const auto found = instances_.find(name);
  demand(found != instances_.end(), "S16", at, "an instance speaks that is not there");
  found->second.spoke = at.time;
  const Lsn speaker = found->second.number;
  for (const auto& report : event.reports) reported(report, speaker, at);
  for (const auto& renewed : event.renewals) {
    SeenStream& of = streams_[renewed.stream];
    demand(of.holder == speaker, "S10", at, "a stream is renewed by one who does not hold it");
    of.lease_until = renewed.until;
  }
  for (const auto& opened : event.opened) streams_[next_stream_++].lane = opened.lane;
  for (const auto& message : event.stored) stored(message, at);
  for (const auto& claim : event.claims) claimed(claim, event.lease_until, speaker, at);
}

void StreamHistory::called(const std::string& ns, stream::InstanceId instance, Instant at) {
  if (const auto found = instances_.find({ns, instance}); found != instances_.end()) found->second.spoke = at;
}

// That it was heard of is recorded when a third of the time has passed; in between it may have called.
void StreamHistory::demand_nobody_silent(const Stamp& at) const {
  const Duration longest = stale_ + Duration{stale_.ms / 3};
  for (const auto& [name, instance] : instances_)
    demand(at.time - std::max(instance.spoke, began_) <= longest, "S16", at,
           "an instance that fell silent keeps its place");
}

void StreamHistory::reported(const core::MessageReported& report, Lsn instance, const Stamp& at) {
  const auto found = messages_.find(report.message);
  demand(found != messages_.end(), "S5", at, "a report on a message that is not there");
  Seen& message = found->second;
  SeenStream& of = streams_[message.stream];
  if (report.how == core::Reported::dead && (report.status & 32768) == 0) {  // lost too often
    demand(of.holder == 0 || of.lease_until <= at.time, "S10", at, "a message dies that somebody holds");
    demand(of.messages.begin()->second == report.message, "S15", at, "a message dies behind another");
    count_lost(of);
    of.holder = 0, of.out = 0;
    bury(message, report.policy);
    of.messages.erase(message.seq);
    messages_.erase(found);
    return;
  }
  demand(of.holder == instance, "S10", at, "a report by one who does not hold the stream");
  demand(message.given == of.epoch, "S5", at,
         "a report on a message that was not handed out, or a second one");
  message.given = 0;
  if (--of.out == 0) of.holder = 0;
  if (report.how == core::Reported::returned) return;
  if (report.how == core::Reported::retried) {
    message.due = report.due;
    ++message.failures, ++message.deliveries;
    return;
  }
  if (report.how == core::Reported::dead) bury(message, report.policy);
  if (report.how == core::Reported::kept) ++next_letter_;
  of.messages.erase(message.seq);
  messages_.erase(found);
}

// Deliveries that end although nobody has reported on them.
void StreamHistory::count_lost(SeenStream& of) {
  if (of.holder == 0) return;
  for (const auto& [seq, number] : of.messages) {
    Seen& message = messages_.at(number);
    message.deliveries += message.given == of.epoch;
  }
}

void StreamHistory::bury(const Seen& message, stream::FailurePolicy policy) {
  SeenStream& of = streams_[message.stream];
  const bool parks = policy == stream::FailurePolicy::park_stream && !of.loose;
  of.parking += parks;
  letters_[next_letter_++] = {message, of.lane, parks};
}

void StreamHistory::take_letter(std::uint64_t letter, const Stamp& at) {
  const auto found = letters_.find(letter);
  demand(found != letters_.end(), "S15", at, "a letter is taken that is not there");
  streams_[found->second.message.stream].parking -= found->second.parks;
  letters_.erase(found);
}

void StreamHistory::put(std::uint64_t stream, std::uint64_t seq, stream::MessageId id) {
  const std::uint64_t number = next_message_++;
  streams_[stream].messages[seq] = number;
  messages_[number] = {.stream = stream, .seq = seq, .id = id};
}

void StreamHistory::stored(const core::MessageStored& message, const Stamp& at) {
  const std::uint64_t number = message.stream == 0 ? next_stream_++ : message.stream;
  SeenStream& of = streams_[number];
  of.lane = message.lane;
  of.loose = message.stream == 0;
  if (message.lane == stream::Lane::inbox) {
    const auto [seen, first] = in_inbox_.try_emplace(message.id, at.time);
    demand(first || at.time - seen->second > core::StreamRules{}.seen_for, "S13", at,
           "an inbox takes a message twice within the window");
    seen->second = at.time;
  }
  put(number, of.next_seq++, message.id);
}

void StreamHistory::claimed(const core::StreamClaimed& claim, Instant until, Lsn instance, const Stamp& at) {
  SeenStream& of = streams_[claim.stream];
  demand(of.holder == 0 || of.lease_until <= at.time, "S10", at, "a stream is claimed that somebody holds");
  demand(at.lsn > of.epoch, "S5", at, "an epoch does not grow");
  demand(of.parking == 0, "S11", at, "a stream is handed out that stops behind a dead letter");
  count_lost(of);
  of.holder = instance;
  of.epoch = at.lsn;
  of.lease_until = until;
  of.out = claim.count;
  std::size_t given = 0;
  for (const auto& [seq, number] : of.messages) {
    if (seq > claim.given_seq) break;
    Seen& message = messages_.at(number);
    demand(message.due <= at.time, "S11", at, "a message is handed out before its time, or one behind it");
    message.given = at.lsn;
    ++given;
  }
  demand(given == claim.count, "S9", at, "a message of a stream is passed over");
}

// Whoever was lost may have begun; whoever leaves has not.
void StreamHistory::let_go(Lsn instance, bool lost) {
  for (auto& [number, of] : streams_) {
    if (of.holder != instance) continue;
    if (lost) count_lost(of);
    of.holder = 0, of.out = 0;
  }
  std::erase_if(instances_, [&](const auto& one) { return one.second.number == instance; });
}

void StreamHistory::happened(const core::EpochStarted&, const Stamp& at) { began_ = at.time; }

void StreamHistory::happened(const core::InstancesEvicted& event, const Stamp&) {
  for (const Lsn instance : event.instances) let_go(instance, true);
}
void StreamHistory::happened(const core::InstanceLeft& event, const Stamp&) { let_go(event.instance, false); }

void StreamHistory::happened(const core::LettersReplayed& event, const Stamp& at) {
  for (const std::uint64_t letter : event.letters) {
    const SeenLetter seen = letters_.contains(letter) ? letters_.at(letter) : SeenLetter{};
    take_letter(letter, at);
    const bool loose = streams_[seen.message.stream].loose;
    const std::uint64_t stream = loose ? next_stream_++ : seen.message.stream;
    streams_[stream].lane = seen.lane;
    streams_[stream].loose = loose;
    put(stream, seen.message.seq, seen.message.id);
  }
}

void StreamHistory::happened(const core::LettersPurged& event, const Stamp& at) {
  for (const std::uint64_t letter : event.letters) take_letter(letter, at);
}

void StreamHistory::compare(const core::State& state) const {
  const core::streams::Streams& all = state.streams;
  if (all.messages.used() != messages_.size() || all.dead_numbers.size() != letters_.size())
    throw Violation{
        "S9", fmt::format("{} messages and {} dead letters are held, {} and {} should be",
                          all.messages.used(), all.dead_numbers.size(), messages_.size(), letters_.size())};
  for (const auto& [number, message] : messages_) {
    const core::Slot slot = all.message_numbers.find(number);
    if (slot == 0 || all.messages[slot].id != message.id || all.messages[slot].seq != message.seq)
      throw Violation{"S9", fmt::format("message {} is lost, or out of its place", number)};
    const core::streams::Message& held = all.messages[slot];
    if (held.deliveries != message.deliveries || held.failures != message.failures)
      throw Violation{
          "S15", fmt::format("message {} counts {} deliveries and {} failures; it has seen {} and {}", number,
                             held.deliveries, held.failures, message.deliveries, message.failures)};
  }
}

}  // namespace baton::sim
