#include "postgres/work_calls.h"

#include <algorithm>

namespace baton::postgres {
namespace {

using namespace stream;

// Verdicts that are "ok" are not sent.
constexpr Statement kHeartbeat{"heartbeat", "select rank, active from wh_heartbeat($1, $2, $3, $4, $5, $6)"};
constexpr Statement kBegin{"begin",
                           "select rank, active from wh_begin_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, "
                           "$10, $11, $12, $13, $14)"};
constexpr Statement kLock{"lock", "select from wh_lock_batch($1, '{}', $2, $3, $4, $5, $6, $7, $8, $9)"};
constexpr Statement kStore{"store",
                           "select nth::integer, verdict from unnest(wh_store_all($1, $2, $3, $4, $5, $6, "
                           "$7, $8, $9, $10, $11, $12, $13)) "
                           "with ordinality as v(verdict, nth) where verdict <> 'ok'"};
constexpr Statement kComplete{
    "complete",
    "select nth::integer, verdict from unnest(wh_complete_all($1, $2, $3, $4, $5, $6)) "
    "with ordinality as v(verdict, nth) where verdict <> 'ok'"};
constexpr Statement kFail{"fail", "select nth, verdict from wh_fail($1, $2, $3, $4, $5, $6, $7, $8)"};
constexpr Statement kRenew{"renew", "select nth, verdict from wh_renew($1, $2, $3, $4, $5)"};
constexpr Statement kRelease{"release", "select nth, verdict from wh_release($1, $2, $3, $4)"};
constexpr Statement kReceptors{"receptors",
                               "select nth, verdict from wh_record_receptors($1, $2, $3, $4, $5, $6)"};
constexpr Statement kPerspectives{"perspectives",
                                  "select nth, verdict from wh_record_perspectives($1, $2, $3)"};
constexpr Statement kLockResults{"lock_results", "select from wh_lock_results($1, $2, $3, $4, $5)"};
constexpr Statement kLease{"lease", "select wh_lease($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"};
constexpr Statement kGiven{"given", "select * from wh_given($1, wh_last_claim())"};
constexpr Statement kResume{"resume", "select * from wh_resume($1)"};
constexpr Statement kLeave{"leave", "select from wh_leave($1)"};

std::int32_t seconds_of(Duration duration) { return static_cast<std::int32_t>(duration.ms / 1000); }

// One list, with `put` adding what each item has for it.
template <class Items, class Put>
List list(ElementType type, const Items& items, Put put) {
  List made(type, items.size());
  for (const auto& item : items) put(made, item);
  return made;
}

template <class Items, class Get>
List texts(const Items& items, Get get) {
  return list(ElementType::text, items,
              [&](List& to, const auto& item) { to.add(std::string_view(get(item))); });
}
template <class Items, class Get>
List jsons(const Items& items, Get get) {
  return list(ElementType::json, items, [&](List& to, const auto& item) {
    const std::string& text = get(item);
    text.empty() ? to.add_null() : to.add(std::string_view(text));
  });
}
template <class Items, class Get>
List ids(const Items& items, Get get) {
  return list(ElementType::uuid, items, [&](List& to, const auto& item) { to.add(get(item).value); });
}
template <class Items, class Get>
List epochs(const Items& items, Get get) {
  return list(ElementType::int8, items, [&](List& to, const auto& item) {
    const std::optional<Epoch>& epoch = get(item);
    epoch ? to.add(epoch->value) : to.add_null();
  });
}

Call about_held(Statement statement, InstanceId instance, Lane lane, const std::vector<Held>& held) {
  Arguments arguments;
  arguments.add(instance.value)
      .add(static_cast<std::int16_t>(lane))
      .add(ids(held, [](const Held& item) { return item.message; }))
      .add(epochs(held, [](const Held& item) { return item.epoch; }));
  return {statement, std::move(arguments)};
}

std::size_t index_of(Lane lane) { return lane == Lane::outbox ? 0 : 1; }

Arguments about_instance(const Instance& instance, Duration stale) {
  Arguments arguments;
  arguments.add(instance.id.value)
      .add(std::string_view(instance.service))
      .add(std::string_view(instance.host))
      .add(instance.process);
  instance.metadata.empty() ? arguments.add_null() : arguments.add_json(instance.metadata);
  arguments.add(seconds_of(stale));
  return arguments;
}

void add(Arguments& arguments, const Touched& touched, std::int32_t partitions) {
  for (const auto& held : touched.reported)
    arguments.add(ids(held, [](const Held& item) { return item.message; }))
        .add(epochs(held, [](const Held& item) { return item.epoch; }));
  for (const auto& streams : {touched.stored[0], touched.stored[1], touched.of_events})
    arguments.add(ids(streams, [](StreamId stream) { return stream; }));
  arguments.add(partitions);
}

// Text as JSON has it between quotes.
std::string quoted(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\', out += c;
    } else if (code < 0x20) {
      out += "\\u00", out += kDigits[code >> 4], out += kDigits[code & 15];
    } else {
      out += c;
    }
  }
  return out += '"';
}

std::string json_of(const PerspectiveResult& result) {
  std::string processed;
  for (const MessageId& event : result.processed)
    processed += (processed.empty() ? "" : ",") + quoted(to_text(event.value));
  return "{\"StreamId\":" + quoted(to_text(result.stream.value)) +
         ",\"PerspectiveName\":" + quoted(result.perspective) +
         ",\"LastEventId\":" + quoted(to_text(result.last_event.value)) + ",\"ProcessedEventIds\":[" +
         processed + "],\"Status\":" + std::to_string(static_cast<int>(result.status)) +
         ",\"Error\":" + quoted(result.error) + "}";
}

}  // namespace

bool Touched::is_nothing() const {
  return reported[0].empty() && reported[1].empty() && stored[0].empty() && stored[1].empty();
}

void Touched::store(Lane lane, const std::vector<NewMessage>& messages) {
  for (const NewMessage& message : messages) {
    if (!message.stream) continue;
    stored[index_of(lane)].push_back(*message.stream);
    if (message.is_event) of_events.push_back(*message.stream);
  }
}

Call heartbeat_call(const Instance& instance, Duration stale) {
  return {kHeartbeat, about_instance(instance, stale)};
}

Call begin_call(const Instance& instance, Duration stale, const Touched& touched, std::int32_t partitions) {
  Arguments arguments = about_instance(instance, stale);
  add(arguments, touched, partitions);
  return {kBegin, std::move(arguments)};
}

Call lock_call(InstanceId instance, const Touched& touched, std::int32_t partitions) {
  Arguments arguments;
  add(arguments.add(instance.value), touched, partitions);
  return {kLock, std::move(arguments)};
}

Call store_call(InstanceId instance, Lane lane, const std::vector<NewMessage>& messages,
                std::int32_t partitions) {
  Arguments arguments;
  arguments.add(instance.value)
      .add(static_cast<std::int16_t>(lane))
      .add(ids(messages, [](const NewMessage& message) { return message.id; }))
      .add(list(ElementType::uuid, messages,
                [](List& to, const NewMessage& message) {
                  message.stream ? to.add(message.stream->value) : to.add_null();
                }))
      .add(texts(messages, [](const NewMessage& message) -> const std::string& { return message.target; }))
      .add(texts(messages, [](const NewMessage& message) -> const std::string& { return message.type; }))
      .add(texts(messages,
                 [](const NewMessage& message) -> const std::string& { return message.envelope_type; }))
      .add(jsons(messages, [](const NewMessage& message) -> const std::string& { return message.data; }))
      .add(jsons(messages, [](const NewMessage& message) -> const std::string& { return message.metadata; }))
      .add(jsons(messages, [](const NewMessage& message) -> const std::string& { return message.scope; }))
      .add(list(ElementType::boolean, messages,
                [](List& to, const NewMessage& message) { to.add(message.is_event); }))
      .add(list(
          ElementType::int2, messages,
          [](List& to, const NewMessage& message) { to.add(static_cast<std::int16_t>(message.policy)); }))
      .add(partitions);
  return {kStore, std::move(arguments)};
}

Call complete_call(InstanceId instance, Lane lane, const std::vector<Completion>& completions, bool keep) {
  Arguments arguments;
  arguments.add(instance.value)
      .add(static_cast<std::int16_t>(lane))
      .add(ids(completions, [](const Completion& item) { return item.held.message; }))
      .add(list(ElementType::int4, completions,
                [](List& to, const Completion& item) { to.add(static_cast<std::int32_t>(item.status)); }))
      .add(epochs(completions, [](const Completion& item) { return item.held.epoch; }))
      .add(keep);
  return {kComplete, std::move(arguments)};
}

Call fail_call(InstanceId instance, Lane lane, const std::vector<Failure>& failures) {
  Arguments arguments;
  arguments.add(instance.value)
      .add(static_cast<std::int16_t>(lane))
      .add(ids(failures, [](const Failure& item) { return item.held.message; }))
      .add(list(ElementType::int4, failures,
                [](List& to, const Failure& item) { to.add(static_cast<std::int32_t>(item.completed)); }))
      .add(epochs(failures, [](const Failure& item) { return item.held.epoch; }))
      .add(texts(failures, [](const Failure& item) -> const std::string& { return item.error; }))
      .add(list(ElementType::int4, failures,
                [](List& to, const Failure& item) { to.add(static_cast<std::int32_t>(item.reason)); }))
      .add(list(ElementType::int2, failures, [](List& to, const Failure& item) {
        item.policy ? to.add(static_cast<std::int16_t>(*item.policy)) : to.add_null();
      }));
  return {kFail, std::move(arguments)};
}

Call renew_call(InstanceId instance, Lane lane, const std::vector<Held>& held, Duration lease) {
  Call call = about_held(kRenew, instance, lane, held);
  call.arguments.add(seconds_of(lease));
  return call;
}

Call release_call(InstanceId instance, Lane lane, const std::vector<Held>& held) {
  return about_held(kRelease, instance, lane, held);
}

Call lock_results_call(const WorkBatchRequest& request) {
  std::vector<ReceptorResult> receptors = request.receptor_completions;
  receptors.insert(receptors.end(), request.receptor_failures.begin(), request.receptor_failures.end());
  std::vector<PerspectiveResult> perspectives = request.perspective_completions;
  perspectives.insert(perspectives.end(), request.perspective_failures.begin(),
                      request.perspective_failures.end());
  Arguments arguments;
  arguments.add(ids(receptors, [](const ReceptorResult& result) { return result.event; }))
      .add(texts(receptors,
                 [](const ReceptorResult& result) -> const std::string& { return result.receptor; }))
      .add(ids(perspectives, [](const PerspectiveResult& result) { return result.stream; }))
      .add(texts(perspectives,
                 [](const PerspectiveResult& result) -> const std::string& { return result.perspective; }))
      .add(ids(perspectives, [](const PerspectiveResult& result) { return result.last_event; }));
  return {kLockResults, std::move(arguments)};
}

Call receptor_call(InstanceId instance, const std::vector<ReceptorResult>& results, bool failed) {
  Arguments arguments;
  arguments.add(instance.value)
      .add(ids(results, [](const ReceptorResult& result) { return result.event; }))
      .add(texts(results, [](const ReceptorResult& result) -> const std::string& { return result.receptor; }))
      .add(list(ElementType::int2, results,
                [&](List& to, const ReceptorResult& result) {
                  to.add(static_cast<std::int16_t>(failed ? ReceptorStatus::failed : result.status));
                }))
      .add(texts(results, [](const ReceptorResult& result) -> const std::string& { return result.error; }))
      .add(list(ElementType::int4, results,
                [](List& to, const ReceptorResult& result) { to.add(result.attempt); }));
  return {kReceptors, std::move(arguments)};
}

Call perspective_call(InstanceId instance, const std::vector<PerspectiveResult>& results, bool failed) {
  std::string items;
  for (const PerspectiveResult& result : results) items += (items.empty() ? "" : ",") + json_of(result);
  Arguments arguments;
  arguments.add(instance.value).add_json("[" + items + "]").add(failed);
  return {kPerspectives, std::move(arguments)};
}

Call lease_call(InstanceId instance, const ClaimRequest& request, const std::vector<NewMessage>& stored) {
  std::vector<Lane> lanes;
  if (request.outbox) lanes.push_back(Lane::outbox);
  if (request.inbox) lanes.push_back(Lane::inbox);
  std::vector<StreamId> streams;
  for (const NewMessage& message : stored) {
    if (message.stream) streams.push_back(*message.stream);
  }
  std::ranges::sort(streams);
  streams.erase(std::ranges::unique(streams).begin(), streams.end());
  Arguments arguments;
  arguments.add(instance.value)
      .add(list(ElementType::int2, lanes,
                [](List& to, Lane lane) { to.add(static_cast<std::int16_t>(lane)); }))
      .add(seconds_of(request.lease))
      .add(seconds_of(request.stale))
      .add(request.limits.streams)
      .add(request.limits.messages)
      .add(request.limits.messages_per_stream)
      .add(request.limits.bytes);
  request.partitions_max ? arguments.add(*request.partitions_max) : arguments.add_null();
  arguments.add(ids(streams, [](StreamId stream) { return stream; }));
  return {kLease, std::move(arguments)};
}

Call given_call(InstanceId instance) { return {kGiven, std::move(Arguments().add(instance.value))}; }
Call resume_call(InstanceId instance) { return {kResume, std::move(Arguments().add(instance.value))}; }
Call leave_call(InstanceId instance) { return {kLeave, std::move(Arguments().add(instance.value))}; }

}  // namespace baton::postgres
