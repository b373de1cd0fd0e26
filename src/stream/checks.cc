#include "stream/checks.h"

#include <algorithm>
#include <initializer_list>

namespace baton::stream {
namespace {

constexpr std::size_t kNameBytesMax = 200;
constexpr std::size_t kTypeBytesMax = 500;
constexpr std::size_t kErrorBytesMax = std::size_t{64} << 10;
constexpr std::size_t kMetadataBytesMax = std::size_t{64} << 10;  // and of a scope as much
constexpr std::size_t kCallBytesMax = std::size_t{256} << 20;     // of the messages of one list
constexpr std::int32_t kClaimMax = 10'000;
constexpr std::int64_t kClaimBytesMax = std::int64_t{256} << 20;
constexpr MessageStatus kReportable =
    MessageStatus::stored | MessageStatus::event_stored | MessageStatus::published;
constexpr ReceptorStatus kReceptorStatuses[] = {ReceptorStatus::none, ReceptorStatus::processing,
                                                ReceptorStatus::completed, ReceptorStatus::failed};
constexpr PerspectiveStatus kPerspectiveStatuses[] = {PerspectiveStatus::none, PerspectiveStatus::processing,
                                                      PerspectiveStatus::completed, PerspectiveStatus::failed,
                                                      PerspectiveStatus::catching_up};
constexpr WorkFlags kInputFlags =
    WorkFlags::debug_mode | WorkFlags::skip_inbox_claiming | WorkFlags::skip_outbox_claiming;

Status invalid(std::string message) { return failure(Errc::invalid_request, std::move(message)); }

template <FlagSet E>
bool is_within(E flags, E allowed) {
  return (flags | allowed) == allowed;
}

// The first complaint, if there is one.
Status all(std::initializer_list<Status> checked) {
  for (const Status& status : checked) {
    if (!status) return status;
  }
  return {};
}

Status check_count(std::size_t items) {
  if (items > kItemsMax) return failure(Errc::too_large, "a list has at most 10000 items");
  return {};
}

Status check_flags(WorkFlags flags) {
  if (!is_within(flags, kInputFlags))
    return invalid(
        "flags are debug mode (4), skip inbox claiming (64) and skip outbox claiming (128); the others "
        "are reserved");
  return {};
}

Status check_id(MessageId id) {
  if (id.value.is_nil()) return invalid("a message needs an id that is not nil");
  return {};
}

Status check_text(std::string_view text, std::size_t bytes_max, std::string_view what) {
  if (text.size() > bytes_max)
    return failure(Errc::too_large,
                   std::string(what) + " has at most " + std::to_string(bytes_max) + " bytes");
  if (text.find('\0') != std::string_view::npos) return invalid(std::string(what) + " holds a zero byte");
  return {};
}

Status check_policy(FailurePolicy policy) {
  if (policy >= FailurePolicy::block && policy <= FailurePolicy::park_stream) return {};
  return invalid("a failure policy is 0, 1 or 2");
}

Status check(Lane lane, const NewMessage& message) {
  if (auto id = check_id(message.id); !id) return id;
  if (auto known = check_policy(message.policy); !known) return known;
  if (message.stream && message.stream->value.is_nil())
    return invalid("a stream needs an id that is not nil; leave it out for no stream");
  if (message.type.empty()) return invalid("a message needs a type");
  // An event has its place in the event store; anything else would be published nowhere, and be gone.
  if (lane == Lane::outbox && message.target.empty() && !(message.is_event && message.stream))
    return invalid(
        "a message of the outbox needs a destination; only an event of a stream, which the event store "
        "keeps, may do without");
  if (message.data.empty()) return invalid("a message needs data");
  if (message.data.size() > kMessageBytesMax)
    return failure(Errc::too_large, "the data of a message has at most 1 MiB");
  for (const std::string* text : {&message.type, &message.target, &message.envelope_type}) {
    if (auto fits = check_text(*text, kTypeBytesMax, "a type, target or envelope type"); !fits) return fits;
  }
  return all({check_text(message.metadata, kMetadataBytesMax, "the metadata of a message"),
              check_text(message.scope, kMetadataBytesMax, "the scope of a message")});
}

Status check(const std::vector<ReceptorResult>& results) {
  if (auto count = check_count(results.size()); !count) return count;
  for (const ReceptorResult& result : results) {
    if (auto id = check_id(result.event); !id) return id;
    if (result.receptor.empty()) return invalid("a receptor needs a name");
    if (auto fits = check_text(result.receptor, kNameBytesMax, "a receptor's name"); !fits) return fits;
    if (auto fits = check_text(result.error, kErrorBytesMax, "an error"); !fits) return fits;
    if (result.attempt < 1) return invalid("an attempt is at least 1");
    if (std::ranges::find(kReceptorStatuses, result.status) == std::end(kReceptorStatuses))
      return invalid("the status of a receptor is 0, 1, 2 or 4");
  }
  return {};
}

Status check(const std::vector<PerspectiveResult>& results) {
  if (auto count = check_count(results.size()); !count) return count;
  for (const PerspectiveResult& result : results) {
    if (auto id = check_id(result.last_event); !id) return id;
    if (result.stream.value.is_nil()) return invalid("a perspective reports on a stream");
    if (result.perspective.empty()) return invalid("a perspective needs a name");
    if (auto fits = check_text(result.perspective, kNameBytesMax, "a perspective's name"); !fits) return fits;
    if (auto fits = check_text(result.error, kErrorBytesMax, "an error"); !fits) return fits;
    if (std::ranges::find(kPerspectiveStatuses, result.status) == std::end(kPerspectiveStatuses))
      return invalid("the status of a perspective is 0, 1, 2, 4 or 8");
  }
  return {};
}

}  // namespace

Status check_seconds(Duration duration, std::string_view what) {
  if (duration.ms % 1000 == 0 && duration >= seconds(1) && duration <= days(7)) return {};
  return invalid(std::string(what) + " is between one second and seven days, in whole seconds");
}

Status check(const Instance& instance) {
  if (instance.id.value.is_nil()) return invalid("an instance needs an id that is not nil");
  if (instance.service.empty()) return invalid("an instance belongs to a service: name it");
  return all({check_text(instance.service, kNameBytesMax, "the service's name"),
              check_text(instance.host, kNameBytesMax, "the host's name"),
              check_text(instance.metadata, kMetadataBytesMax, "the metadata of an instance")});
}

Status check(const ClaimRequest& request) {
  const ClaimLimits& limits = request.limits;
  for (const std::int32_t limit : {limits.streams, limits.messages, limits.messages_per_stream}) {
    if (limit < 1 || limit > kClaimMax)
      return invalid("a claim takes between 1 and 10000 streams, messages and messages per stream");
  }
  if (limits.bytes < 1 || limits.bytes > kClaimBytesMax)
    return invalid("a claim takes between one byte and 256 MiB");
  if (request.partitions_max && *request.partitions_max < 1)
    return invalid("the most partitions an instance holds are at least 1");
  return all({check_seconds(request.lease, "a lease"),
              check_seconds(request.stale, "the time after which an instance is stale")});
}

Status check(Lane lane, const std::vector<NewMessage>& messages, std::int32_t partitions) {
  if (partitions < 1) return invalid("the number of partitions is at least 1");
  if (auto count = check_count(messages.size()); !count) return count;
  std::size_t bytes = 0;
  for (const NewMessage& message : messages) {
    if (auto fits = check(lane, message); !fits) return fits;
    bytes += message.data.size() + message.metadata.size() + message.scope.size();
  }
  if (bytes > kCallBytesMax) return failure(Errc::too_large, "a call stores at most 256 MiB");
  return {};
}

Status check(const std::vector<Completion>& completions, WorkFlags flags) {
  for (const Completion& completion : completions) {
    if (auto id = check_id(completion.held.message); !id) return id;
    if (!is_within(completion.status, kReportable))
      return invalid("a status is made of stored (1), event stored (2) and published (4)");
  }
  return all({check_count(completions.size()), check_flags(flags)});
}

Status check(const std::vector<Failure>& failures) {
  for (const Failure& failed : failures) {
    if (auto id = check_id(failed.held.message); !id) return id;
    if (!is_within(failed.completed, kReportable))
      return invalid("a status is made of stored (1), event stored (2) and published (4)");
    if (auto fits = check_text(failed.error, kErrorBytesMax, "an error"); !fits) return fits;
    if (failed.policy) {
      if (auto known = check_policy(*failed.policy); !known) return known;
    }
  }
  return check_count(failures.size());
}

Status check(const std::vector<Held>& held) {
  for (const Held& item : held) {
    if (auto id = check_id(item.message); !id) return id;
  }
  return check_count(held.size());
}

Status check(const WorkBatchRequest& request) {
  const ClaimRequest claim{.lease = request.lease,
                           .stale = request.stale,
                           .partitions_max = request.partitions_max,
                           .limits = request.limits};
  return all(
      {check(request.instance), check(claim), check_flags(request.flags),
       check(request.outbox_completions, request.flags), check(request.inbox_completions, request.flags),
       check(request.outbox_failures), check(request.inbox_failures), check(request.receptor_completions),
       check(request.receptor_failures), check(request.perspective_completions),
       check(request.perspective_failures), check(request.outbox_renewals), check(request.inbox_renewals),
       check(Lane::outbox, request.new_outbox_messages, request.partitions),
       check(Lane::inbox, request.new_inbox_messages, request.partitions)});
}

}  // namespace baton::stream
