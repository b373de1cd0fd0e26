#include "core/stream/work_turn.h"

#include <algorithm>

#include "base/mutant.h"
#include "core/names.h"
#include "core/stream/claim.h"
#include "core/stream/rules.h"
#include "stream/partition.h"

namespace baton::core::streams {

using stream::Lane;
using stream::Verdict;

WorkTurn::WorkTurn(const Streams& all, const Presence& presence, const ProcessWork& request, const Moment& at)
    : all_(all),
      presence_(presence),
      request_(request),
      at_(at),
      draft_(all, memory_),
      results_(all, entry_) {
  entry_.ns = request.ns;
  entry_.instance = request.instance;
}

Decision WorkTurn::decide() {
  if (auto refused = identify()) return *refused;
  if (auto refused = refuse_size()) return *refused;
  for (const Lane lane : kLanes) complete(lane);
  for (const Lane lane : kLanes) fail(lane);
  reply_.receptors.completed = results_.receptors(space_, request_.receptors.completed, false);
  reply_.receptors.failed = results_.receptors(space_, request_.receptors.failed, true);
  reply_.perspectives.completed = results_.perspectives(space_, request_.perspectives.completed, false);
  reply_.perspectives.failed = results_.perspectives(space_, request_.perspectives.failed, true);
  for (const Lane lane : kLanes) renew(lane);
  for (const Lane lane : kLanes) {
    if (auto refused = judge_new(lane)) return *refused;
  }
  for (const Lane lane : kLanes) store(lane);
  const Duration stale = request_.claim ? request_.claim->stale : request_.stale;
  reply_.standing = standing(stale);
  if (request_.claim) {
    const Claimant claimant{service_, instance_, reply_.standing, at_};
    const std::size_t room = at_.rules.streams.entry_bytes_max - bytes_;
    entry_.lease_until = at_.now + request_.claim->lease;
    Claim claim(draft_, claimant, *request_.claim, room, entry_, reply_.work);
    claim.prefer(outbox_streams());
    claim.make();
    if (entry_.claims.empty()) entry_.lease_until = {};
  }
  if (entry_.changes_nothing()) return Reply{std::move(reply_)};
  return Append{std::move(entry_), std::move(reply_)};
}

std::optional<Reject> WorkTurn::identify() {
  if (!is_name(request_.ns))
    return Reject{Errc::invalid_request, "the namespace must be 1 to 128 graphic ASCII characters"};
  space_ = find_space(all_, request_.ns);
  instance_ = find_instance(all_, request_.ns, request_.instance);
  if (instance_ == 0 && was_evicted(all_, request_.ns, request_.instance))
    return Reject{Errc::lease_lost, "the instance was evicted: start again under a new id"};
  if (instance_ == 0 && !request_.heartbeat)
    return Reject{Errc::not_found, "the instance is not registered: send a heartbeat first"};
  if (instance_ != 0) service_ = all_.instances[instance_].service;
  return request_.heartbeat ? beat(*request_.heartbeat) : std::nullopt;
}

std::optional<Reject> WorkTurn::beat(const stream::Instance& said) {
  if (instance_ == 0) {
    if (all_.instances.used() >= at_.rules.streams.instances_max)
      return Reject{Errc::exhausted, "there are as many instances as there may be"};
    service_ = find_service(all_, request_.ns, said.service);
    if (service_ == 0 && all_.services.used() >= at_.rules.streams.services_max)
      return Reject{
          Errc::exhausted,
          "there are as many services as there may be: one goes with its last instance, stream, dead letter "
          "and message it has seen"};
    entry_.heard = {.joins = true,
                    .service = said.service,
                    .host = said.host,
                    .process = said.process,
                    .metadata = said.metadata};
    return {};
  }
  const Instance& known = all_.instances[instance_];
  if (all_.services[service_].name != said.service)
    return Reject{Errc::invalid_request, "the instance belongs to another service"};
  // Once in a while is enough: what happens in between is remembered without an entry.
  const bool is_old = at_.now - known.heard >= Duration{request_.stale.ms / 3};
  const auto news = [](std::string_view now, std::string_view before) {
    return now == before ? std::string_view() : now;  // where nothing is said, nothing is new
  };
  const InstanceHeard heard{.host = news(said.host, known.host),
                            .process = said.process == known.process ? 0 : said.process,
                            .metadata = news(said.metadata, known.metadata)};
  if (is_old || !heard.host.empty() || heard.process != 0 || !heard.metadata.empty()) entry_.heard = heard;
  return {};
}

// All of a call has to fit one entry. What the items take at most is added up before any is looked at.
std::optional<Reject> WorkTurn::refuse_size() {
  constexpr std::size_t kBase = 1024, kItem = 96;
  bytes_ = kBase;
  if (request_.heartbeat) bytes_ += request_.heartbeat->metadata.size();
  for (const Lane lane : kLanes) {
    bytes_ += kItem * (request_.completions[lane].size() + request_.renewals[lane].size());
    for (const FailMessage& item : request_.failures[lane]) bytes_ += kItem + item.error.bytes().size();
    for (const StoreMessage& item : request_.messages[lane]) bytes_ += kItem + item.body.bytes().size();
  }
  for (const auto* list : {&request_.receptors.completed, &request_.receptors.failed}) {
    for (const auto& item : *list) bytes_ += kItem + item.receptor.size() + item.error.size();
  }
  for (const auto* list : {&request_.perspectives.completed, &request_.perspectives.failed}) {
    for (const auto& item : *list)
      bytes_ += kItem + item.perspective.size() + item.error.size() + 5 * item.processed.size();
  }
  if (bytes_ <= at_.rules.streams.entry_bytes_max) return {};
  return Reject{Errc::too_large, "the call is larger than one entry of the log: make it several"};
}

WorkTurn::Judged WorkTurn::judge(Lane lane, const stream::Held& held, Named& named) const {
  const auto [at, first] = named.verdicts.try_emplace(held.message, Verdict::unknown);
  if (!first) return {at->second == Verdict::unknown ? Verdict::unknown : Verdict::duplicate};
  const Slot message = named.last = find_held(lane, held.message, named.last);
  if (message == 0 || draft_.is_gone(message)) return {};
  at->second = judge(held, message);
  return {at->second, message};
}

// Who reports on what it was given names one message of a stream after the other.
Slot WorkTurn::find_held(Lane lane, stream::MessageId id, Slot before) const {
  const Slot next = before == 0 ? 0 : all_.messages[before].next;
  if (next != 0 && all_.messages[next].id == id) return next;
  return service_ == 0 ? 0 : find_message(all_, service_, lane, id);
}

// Whoever reports must hold the message. With an epoch, that claim must be the last one; without, the
// instance that holds it now may speak.
Verdict WorkTurn::judge(const stream::Held& held, Slot slot) const {
  const Message& message = draft_.message_now(slot);
  const Stream& known = all_.streams[message.stream];
  const DraftStream* drafted = draft_.find_stream(known.number);
  const Stream& of = drafted == nullptr ? known : drafted->now;
  const Lsn epoch = held.epoch ? static_cast<Lsn>(held.epoch->value) : of.epoch;
  if (message.settled != 0 && message.settled == epoch) return Verdict::duplicate;
  if (mutant(Mutant::m31_report_under_a_lost_lease_accepted) && is_out(of, message)) return Verdict::ok;
  const bool is_held = instance_ != 0 && of.owner == instance_ && of.epoch == epoch;
  return is_held && message.seq <= of.given_seq ? Verdict::ok : Verdict::lost_lease;
}

void WorkTurn::report(Slot slot, MessageReported reported) {
  DraftMessage& message = draft_.message(slot);
  DraftStream& of = draft_.stream(message.now.stream);
  const bool is_dead = reported.how == Reported::dead;
  message.gone = is_dead || reported.how == Reported::done || reported.how == Reported::kept;
  message.now.status = reported.status;
  if (reported.how == Reported::retried) {
    message.now.due = reported.due;
    message.now.reason = reported.reason;
    ++message.now.failures, ++message.now.deliveries;
  }
  message.now.settled = of.now.epoch;
  reported.message = message.now.number;
  const bool parks = is_dead && reported.policy == stream::FailurePolicy::park_stream;
  take_report(of.now, message.gone, parks, at_.now);
  make_ready(of.now, ready_from(of.now, draft_.head_due(of), at_.now), at_.lsn);
  entry_.reports.push_back(std::move(reported));
}

void WorkTurn::complete(Lane lane) {
  Named named(memory_);
  for (const stream::Completion& item : request_.completions[lane]) {
    const Judged judged = judge(lane, item.held, named);
    reply_.completions[lane].push_back(judged.verdict);
    if (judged.verdict != Verdict::ok) continue;
    const std::int32_t status =
        draft_.message_now(judged.message).status | static_cast<std::int32_t>(item.status);
    const bool is_done = (status & done_bit(lane)) != 0;
    const Reported done = request_.keep_done ? Reported::kept : Reported::done;
    report(judged.message, {.how = is_done ? done : Reported::returned, .status = status});
  }
}

void WorkTurn::fail(Lane lane) {
  const StreamRules& rules = at_.rules.streams;
  Named named(memory_);
  for (const FailMessage& item : request_.failures[lane]) {
    const Judged judged = judge(lane, item.held, named);
    reply_.failures[lane].push_back(judged.verdict);
    if (judged.verdict != Verdict::ok) continue;
    const Message& message = draft_.message_now(judged.message);
    const std::uint32_t failures = message.failures + 1;
    const stream::FailurePolicy policy = item.policy.value_or(message.policy);
    const bool dies =
        policy != stream::FailurePolicy::block || (rules.failures_max > 0 && failures >= rules.failures_max);
    report(judged.message, {.how = dies ? Reported::dead : Reported::retried,
                            .status = message.status | static_cast<std::int32_t>(item.completed) |
                                      static_cast<std::int32_t>(stream::MessageStatus::failed),
                            .reason = static_cast<std::int32_t>(item.reason),
                            .policy = policy,
                            .due = dies ? Instant{} : at_.now + retry_delay(rules, failures),
                            .error = item.error});
  }
}

// Possible after the lease has ended too, as long as nobody else has claimed the stream. Holds it for longer,
// never for less: two renewals may overtake each other on their way.
void WorkTurn::renew(Lane lane) {
  const Instant until = at_.now + request_.lease;
  Named named(memory_);
  for (const stream::Held& item : request_.renewals[lane]) {
    const Judged judged = judge(lane, item, named);
    reply_.renewals[lane].push_back(judged.verdict);
    if (judged.verdict != Verdict::ok) continue;
    DraftStream& of = draft_.stream(all_.messages[judged.message].stream);
    if (of.now.lease_until >= until) continue;
    of.now.lease_until = until;
    make_ready(of.now, ready_from(of.now, draft_.head_due(of), at_.now), at_.lsn);
    entry_.renewals.push_back({of.now.number, until});
  }
}

// The inbox remembers what it has seen for a while; the outbox leaves that to the caller.
bool WorkTurn::is_new(Lane lane, const StoreMessage& message) const {
  if (service_ == 0) return true;
  const Slot known = find_message(all_, service_, lane, message.id);
  if (known != 0 && !draft_.is_gone(known)) return false;
  const Slot seen = lane == Lane::inbox ? all_.seen_ids.find(service_, message.id.value) : 0;
  const Duration window = at_.rules.streams.seen_for;
  if (mutant(Mutant::m30_duplicate_in_the_window_accepted)) return true;
  return seen == 0 || (window > Duration{} && all_.seen.all[seen].since < at_.now - window);
}

std::optional<Reject> WorkTurn::judge_new(Lane lane) {
  std::pmr::set<stream::MessageId> named(&memory_);
  std::pmr::set<stream::StreamId> unknown(&memory_);  // in the order in which they are numbered
  std::uint64_t fresh = 0;
  for (const StoreMessage& message : request_.messages[lane]) {
    const bool is_fresh = named.insert(message.id).second && is_new(lane, message);
    reply_.messages[lane].push_back(is_fresh ? Verdict::ok : Verdict::duplicate);
    fresh += is_fresh;
    if (is_fresh && message.stream && find_stream(lane, *message.stream) == 0)
      unknown.insert(*message.stream);
  }
  fresh_ += fresh;
  if (fresh_ > 0 && !at_.rules.admit_submissions)
    return Reject{Errc::exhausted, "the disk is nearly full: new messages wait until there is space again"};
  if (all_.messages.used() + fresh_ > at_.rules.streams.messages_max)
    return Reject{Errc::exhausted, "the coordinator holds as many messages as it may"};
  for (const stream::StreamId& id : unknown) {
    const Number number = all_.next_stream + entry_.opened.size();
    const std::int32_t partition = stream::partition_of(id, request_.partitions);
    entry_.opened.push_back({.id = id, .lane = lane, .partition = partition});
    opened_[{lane, id}] = number;
    draft_.open({.id = id, .number = number, .service = service_, .lane = lane, .partition = partition});
  }
  return {};
}

Slot WorkTurn::find_stream(Lane lane, stream::StreamId id) const {
  return service_ == 0 ? 0 : all_.stream_ids.find(scope_of(service_, lane), id.value);
}

DraftStream& WorkTurn::stream_for(Lane lane, const StoreMessage& message) {
  if (!message.stream) {  // numbered behind those that were opened
    const Number number = all_.next_stream + entry_.opened.size() + loose_++;
    return draft_.open({.number = number, .service = service_, .lane = lane});
  }
  if (const Slot known = find_stream(lane, *message.stream)) return draft_.stream(known);
  return draft_.opened(opened_.at({lane, *message.stream}));
}

void WorkTurn::store(Lane lane) {
  for (std::size_t i = 0; i < request_.messages[lane].size(); ++i) {
    if (reply_.messages[lane][i] == Verdict::ok) add(lane, request_.messages[lane][i]);
  }
}

void WorkTurn::add(Lane lane, const StoreMessage& message) {
  DraftStream& of = stream_for(lane, message);
  take_message(of.now, at_.now, at_.lsn);
  of.added.push_back(entry_.stored.size());
  const bool appends = message.is_event && message.stream &&
                       (space_ == 0 || all_.event_ids.find(space_, message.id.value) == 0) &&
                       events_.insert(message.id).second;
  entry_.stored.push_back({.id = message.id,
                           .lane = lane,
                           .stream = message.stream ? of.now.number : 0,
                           .data_bytes = message.data_bytes,
                           .appends_event = appends,
                           .is_event = message.is_event,
                           .policy = message.policy,
                           .body = message.body});
}

// Those that are named with a message, stored just now or before.
std::set<Number> WorkTurn::outbox_streams() const {
  std::set<Number> streams;
  for (const StoreMessage& message : request_.messages.outbox) {
    if (!message.stream) continue;
    const auto opened = opened_.find({Lane::outbox, *message.stream});
    const Slot known = find_stream(Lane::outbox, *message.stream);
    if (opened != opened_.end()) streams.insert(opened->second);
    if (known != 0) streams.insert(all_.streams[known].number);
  }
  return streams;
}

stream::Standing WorkTurn::standing(Duration stale) const {
  stream::Standing standing{.rank = 0, .active = instance_ == 0 ? 1 : 0};
  if (service_ == 0) return standing;
  for (const auto& [id, slot] : all_.services[service_].instances) {
    const bool counts = slot == instance_ || presence_.has_rank(all_.instances[slot], at_.now - stale);
    standing.active += counts;
    standing.rank += counts && id < request_.instance;
  }
  return standing;
}

}  // namespace baton::core::streams
