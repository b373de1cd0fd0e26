#include "engine/work_calls.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/utf8.h"
#include "core/stream/streams.h"
#include "stream/body.h"
#include "stream/checks.h"
#include "stream/json_text.h"

namespace baton::engine {
namespace {

using namespace stream;

std::unexpected<Error> invalid(std::string message) {
  return failure(Errc::invalid_request, std::move(message));
}

Status check_texts(const Instance& instance) {
  if (!is_utf8(instance.service) || !is_utf8(instance.host)) return invalid("a name is not UTF-8");
  if (!instance.metadata.empty() && !is_json(instance.metadata))
    return invalid("the metadata of the instance is not JSON");
  return {};
}

Status check_texts(const NewMessage& message) {
  if (!is_json(message.data)) return invalid("the data of a message is not JSON");
  if (!message.metadata.empty() && !is_json(message.metadata))
    return invalid("the metadata of a message is not JSON");
  if (!message.scope.empty() && !is_json(message.scope)) return invalid("the scope of a message is not JSON");
  if (!is_utf8(message.type) || !is_utf8(message.target) || !is_utf8(message.envelope_type))
    return invalid("a type, target or envelope type is not UTF-8");
  return {};
}

template <class Reported>
Status check_texts(const std::vector<Reported>& results, std::string Reported::* name) {
  for (const Reported& result : results) {
    if (!is_utf8(result.*name) || !is_utf8(result.error))
      return invalid("the name or the error of a receptor or perspective is not UTF-8");
  }
  return {};
}

Status check_results(const WorkBatchRequest& request) {
  for (const auto* results : {&request.receptor_completions, &request.receptor_failures}) {
    if (auto fine = check_texts(*results, &ReceptorResult::receptor); !fine) return fine;
  }
  for (const auto* results : {&request.perspective_completions, &request.perspective_failures}) {
    if (auto fine = check_texts(*results, &PerspectiveResult::perspective); !fine) return fine;
  }
  return {};
}

Status take(std::vector<core::StoreMessage>& into, const std::vector<NewMessage>& messages) {
  into.reserve(messages.size());
  for (const NewMessage& message : messages) {
    if (auto fine = check_texts(message); !fine) return fine;
    into.push_back({.id = message.id,
                    .stream = message.stream,
                    .body = core::Blob(body_of(message)),
                    .data_bytes = static_cast<std::uint32_t>(message.data.size() + message.metadata.size() +
                                                             message.scope.size()),
                    .is_event = message.is_event,
                    .policy = message.policy});
  }
  return {};
}

Status take(std::vector<core::FailMessage>& into, const std::vector<Failure>& failures) {
  into.reserve(failures.size());
  for (const Failure& failed : failures) {
    if (!is_utf8(failed.error)) return invalid("an error is not UTF-8");
    into.push_back({.held = failed.held,
                    .completed = failed.completed,
                    .error = core::Blob(failed.error),
                    .reason = failed.reason,
                    .policy = failed.policy});
  }
  return {};
}

core::GivenMessage given(const core::streams::Stream& of, const core::streams::Message& message) {
  core::GivenMessage made{.lane = of.lane,
                          .message = message.id,
                          .number = message.number,
                          .epoch = of.epoch,
                          .partition = of.partition,
                          .sequence = of.is_loose() ? 0 : message.seq,
                          .body = message.body,
                          .error = message.error,
                          .status = message.status,
                          .deliveries = message.deliveries + 1,
                          .failures = message.failures,
                          .reason = message.reason};
  if (!of.is_loose()) made.stream = of.id;
  return made;
}

}  // namespace

Result<core::ProcessWork> turn_of(std::string ns, const WorkBatchRequest& request) {
  if (auto fine = check(request); !fine) return std::unexpected(fine.error());
  if (auto fine = check_texts(request.instance); !fine) return std::unexpected(fine.error());
  if (auto fine = check_results(request); !fine) return std::unexpected(fine.error());
  core::ProcessWork work{.ns = std::move(ns), .instance = request.instance.id};
  work.heartbeat = request.instance;
  work.stale = request.stale;
  work.completions = {request.outbox_completions, request.inbox_completions};
  work.receptors = {request.receptor_completions, request.receptor_failures};
  work.perspectives = {request.perspective_completions, request.perspective_failures};
  work.renewals = {request.outbox_renewals, request.inbox_renewals};
  work.keep_done = has(request.flags, WorkFlags::debug_mode);
  work.partitions = request.partitions;
  work.lease = request.lease;
  work.claim = claim_of(request);
  const auto taken = [](Status status, auto next) { return status ? next() : status; };
  Status done = take(work.failures.outbox, request.outbox_failures);
  done = taken(done, [&] { return take(work.failures.inbox, request.inbox_failures); });
  done = taken(done, [&] { return take(work.messages.outbox, request.new_outbox_messages); });
  done = taken(done, [&] { return take(work.messages.inbox, request.new_inbox_messages); });
  if (!done) return std::unexpected(done.error());
  return work;
}

Result<core::ProcessWork> heartbeat_of(std::string ns, const Instance& instance, Duration stale) {
  if (auto fine = check(instance); !fine) return std::unexpected(fine.error());
  if (auto fine = check_texts(instance); !fine) return std::unexpected(fine.error());
  if (auto fine = check_seconds(stale, "the time after which an instance is stale"); !fine)
    return std::unexpected(fine.error());
  return core::ProcessWork{
      .ns = std::move(ns), .instance = instance.id, .heartbeat = instance, .stale = stale};
}

Result<core::ProcessWork> store_of(std::string ns, InstanceId instance, Lane lane,
                                   const std::vector<NewMessage>& messages, std::int32_t partitions) {
  if (auto fine = check(lane, messages, partitions); !fine) return std::unexpected(fine.error());
  core::ProcessWork work{.ns = std::move(ns), .instance = instance, .partitions = partitions};
  if (auto done = take(work.messages[lane], messages); !done) return std::unexpected(done.error());
  return work;
}

Result<core::ProcessWork> claim_of(std::string ns, InstanceId instance, const ClaimRequest& request) {
  if (auto fine = check(request); !fine) return std::unexpected(fine.error());
  return core::ProcessWork{.ns = std::move(ns), .instance = instance, .claim = request};
}

Result<core::ProcessWork> completion_of(std::string ns, InstanceId instance, Lane lane,
                                        const std::vector<Completion>& completions, WorkFlags flags) {
  if (auto fine = check(completions, flags); !fine) return std::unexpected(fine.error());
  core::ProcessWork work{
      .ns = std::move(ns), .instance = instance, .keep_done = has(flags, WorkFlags::debug_mode)};
  work.completions[lane] = completions;
  return work;
}

Result<core::ProcessWork> failure_of(std::string ns, InstanceId instance, Lane lane,
                                     const std::vector<Failure>& failures) {
  if (auto fine = check(failures); !fine) return std::unexpected(fine.error());
  core::ProcessWork work{.ns = std::move(ns), .instance = instance};
  if (auto done = take(work.failures[lane], failures); !done) return std::unexpected(done.error());
  return work;
}

Result<core::ProcessWork> renewal_of(std::string ns, InstanceId instance, Lane lane,
                                     const std::vector<Held>& held, Duration lease) {
  if (auto fine = check(held); !fine) return std::unexpected(fine.error());
  if (auto fine = check_seconds(lease, "a lease"); !fine) return std::unexpected(fine.error());
  core::ProcessWork work{.ns = std::move(ns), .instance = instance, .lease = lease};
  work.renewals[lane] = held;
  return work;
}

namespace {

Result<core::Slot> registered(const core::streams::Streams& all, const std::string& ns, InstanceId instance) {
  const core::Slot slot = core::streams::find_instance(all, ns, instance);
  if (slot == 0 && core::streams::was_evicted(all, ns, instance))
    return failure(Errc::lease_lost, "the instance was evicted: start again under a new id");
  if (slot == 0) return failure(Errc::not_found, "the instance is not registered: send a heartbeat first");
  return slot;
}

}  // namespace

Result<core::Slot> service_of(const core::State& state, const std::string& ns, InstanceId instance) {
  const auto slot = registered(state.streams, ns, instance);
  if (!slot) return slot;
  return state.streams.instances[*slot].service;
}

Result<HeldPage> held_by(const core::State& state, const std::string& ns, InstanceId instance,
                         const HeldLook& look) {
  const core::streams::Streams& all = state.streams;
  const auto slot = registered(all, ns, instance);
  if (!slot) return std::unexpected(slot.error());
  std::vector<std::pair<std::uint64_t, core::Slot>> streams;  // by number, so that it can go on
  for (core::Slot at = all.instances[*slot].held.head; at != 0; at = all.streams[at].next) {
    if (all.streams[at].number >= look.from) streams.emplace_back(all.streams[at].number, at);
  }
  std::ranges::sort(streams);
  HeldPage page;
  std::size_t bytes = 0;
  for (const auto& [number, at] : streams) {
    if (page.messages.size() >= look.messages_max || bytes >= look.bytes_max) {
      page.next = number;
      break;
    }
    const core::streams::Stream& of = all.streams[at];
    for (core::Slot next = of.messages.head; next != 0; next = all.messages[next].next) {
      const core::streams::Message& message = all.messages[next];
      if (message.seq > of.given_seq) break;
      if (!core::streams::is_out(of, message)) continue;
      page.messages.push_back(given(of, message));
      bytes += message.body.length;
    }
  }
  // Those without a stream last.
  std::ranges::sort(page.messages, {}, [](const core::GivenMessage& one) {
    return std::tuple(one.lane, !one.stream, one.stream.value_or(StreamId{}), one.sequence, one.message);
  });
  return page;
}

Result<Work> work_of(const core::GivenMessage& given, const SharedBytes& body, const ReadBlob& read) {
  Work work{.lane = given.lane,
            .message = given.message,
            .epoch = {static_cast<std::int64_t>(given.epoch)},
            .stream = given.stream,
            .partition = given.partition,
            .sequence = static_cast<std::int64_t>(given.sequence),
            .status = static_cast<MessageStatus>(given.status),
            .flags = given.flags,
            .deliveries = static_cast<std::int32_t>(given.deliveries),
            .failures = static_cast<std::int32_t>(given.failures),
            .reason = static_cast<FailureReason>(given.reason)};
  if (given.error.length > 0) {
    const auto error = read(given.error);
    work.error = error ? text_of(*error) : "what the last failure said cannot be read";
  }
  if (body != nullptr) {
    if (read_body(*body, work)) return work;
  } else {
    auto bytes = read(given.body);
    if (!bytes) return std::unexpected(bytes.error());
    if (read_body(*bytes, work)) return work;
  }
  return failure(Errc::corrupt, "the body of message " + to_text(given.message.value) + " cannot be read");
}

core::ProcessWork unreadable_of(std::string ns, InstanceId instance,
                                std::span<const core::GivenMessage> given, std::size_t which,
                                const Error& why, std::vector<bool>& is_left_out) {
  core::ProcessWork call{.ns = std::move(ns), .instance = instance};
  const core::GivenMessage& first = given[which];
  const auto held = [](const core::GivenMessage& one) {
    return Held{one.message, Epoch{static_cast<std::int64_t>(one.epoch)}};
  };
  is_left_out.resize(given.size());
  is_left_out[which] = true;
  call.failures[first.lane].push_back({.held = held(first),
                                       .error = core::Blob("its body cannot be read: " + why.message),
                                       .reason = FailureReason::event_storage_failure});
  for (std::size_t i = which + 1; i < given.size() && first.stream; ++i) {
    if (given[i].stream != first.stream || given[i].lane != first.lane || is_left_out[i]) continue;
    is_left_out[i] = true;
    call.completions[first.lane].push_back({.held = held(given[i])});
  }
  return call;
}

WorkBatch batch_of(const core::WorkProcessed& processed) {
  return {.standing = processed.standing,
          .outbox_completions = processed.completions.outbox,
          .inbox_completions = processed.completions.inbox,
          .outbox_failures = processed.failures.outbox,
          .inbox_failures = processed.failures.inbox,
          .receptor_completions = processed.receptors.completed,
          .receptor_failures = processed.receptors.failed,
          .perspective_completions = processed.perspectives.completed,
          .perspective_failures = processed.perspectives.failed,
          .outbox_renewals = processed.renewals.outbox,
          .inbox_renewals = processed.renewals.inbox,
          .new_outbox_messages = processed.messages.outbox,
          .new_inbox_messages = processed.messages.inbox,
          .work = {}};
}

}  // namespace baton::engine
