// Streams: the whole turn of an instance, and its parts.
#include <algorithm>
#include <utility>

#include "server/limits.h"
#include "server/stream_json.h"
#include "server/stream_letters.h"
#include "server/stream_operation.h"
#include "server/verb.h"

namespace baton::server {
namespace {

using stream::Lane;

constexpr Parameter kInstance{"instance", Kind::text, Place::position, "Id of the instance, a UUID"};
constexpr Parameter kService{"service", Kind::text, Place::position, "Service whose work it shares"};
constexpr Parameter kLane{"lane", Kind::text, Place::position, "outbox or inbox"};
constexpr Parameter kLease{"lease_ms", Kind::number, Place::option, "Lease time, whole seconds; 300000"};
constexpr Parameter kWait{"wait_ms", Kind::number, Place::option, "How long to wait if there is no work"};
constexpr Parameter kPartitions{"partitions", Kind::number, Place::option, "Number of partitions; 10000"};
constexpr Parameter kKeep{"debug_mode", Kind::flag, Place::option,
                          "Keep what is done, for people to look at"};

constexpr Parameter kIdentity[] = {
    {"host", Kind::text, Place::option, "Where it runs"},
    {"process", Kind::number, Place::option, "Its process id"},
    {"about", Kind::json, Place::option, "What else is to be known of it"},
    {"stale_ms", Kind::number, Place::option, "Instances silent for longer are evicted; 600000"}};
constexpr Parameter kLimits[] = {
    kLease,
    kWait,
    {"max_partitions", Kind::number, Place::option, "Partitions it holds streams of at most"},
    {"max_streams", Kind::number, Place::option, "Of each lane, in one claim; 300"},
    {"max_messages", Kind::number, Place::option, "Likewise; 300"},
    {"max_per_stream", Kind::number, Place::option, "Messages of one stream; 100"},
    {"max_bytes", Kind::number, Place::option, "Bytes of data; 8388608"}};
constexpr auto kBatchLists = joined<16>(
    {kInstance,
     kService,
     {"outbox_completions", Kind::json, Place::option, "What is done: message, status, perhaps epoch"},
     {"inbox_completions", Kind::json, Place::option, "Likewise"},
     {"outbox_failures", Kind::json, Place::option,
      "What failed: message, error, perhaps reason, completed, policy, epoch"},
     {"inbox_failures", Kind::json, Place::option, "Likewise"},
     {"receptor_completions", Kind::json, Place::option, "event, receptor, perhaps status, error, attempt"},
     {"receptor_failures", Kind::json, Place::option, "Likewise"},
     {"perspective_completions", Kind::json, Place::option,
      "stream, perspective, last_event, perhaps processed, status, error"},
     {"perspective_failures", Kind::json, Place::option, "Likewise"},
     {"outbox_renewals", Kind::json, Place::option, "What is still worked on: message, perhaps epoch"},
     {"inbox_renewals", Kind::json, Place::option, "Likewise"},
     {"new_outbox_messages", Kind::json, Place::option,
      "message, type, data, perhaps stream, target, envelope_type, metadata, scope, is_event, policy"},
     {"new_inbox_messages", Kind::json, Place::option, "Likewise"},
     {"flags", Kind::number, Place::option,
      "4: keep what is done; 64: claim nothing from the inbox; 128: nothing from the outbox"},
     kPartitions},
    kIdentity);
template <std::size_t kA, std::size_t kB>
constexpr std::array<Parameter, kA + kB> both(const std::array<Parameter, kA>& a, const Parameter (&b)[kB]) {
  std::array<Parameter, kA + kB> all;
  std::ranges::copy(b, std::ranges::copy(a, all.begin()).out);
  return all;
}
constexpr auto kBatch = both(kBatchLists, kLimits);
constexpr auto kHeartbeat = joined<2>({kInstance, kService}, kIdentity);
constexpr auto kClaim =
    joined<3>({kInstance,
               {"lane", Kind::text, Place::option, "outbox or inbox; both if not given"},
               {"stale_ms", Kind::number, Place::option, "Who is silent for longer has no rank; 600000"}},
              kLimits);
constexpr Parameter kStore[] = {
    kInstance, kLane, {"messages", Kind::json, Place::position, "List of new messages"}, kPartitions};
constexpr Parameter kComplete[] = {
    kInstance, kLane, {"completions", Kind::json, Place::position, "List of what is done"}, kKeep};
constexpr Parameter kFail[] = {
    kInstance, kLane, {"failures", Kind::json, Place::position, "List of what failed"}};
constexpr Parameter kHeld[] = {
    kInstance, kLane, {"held", Kind::json, Place::position, "List of messages, perhaps with epochs"}};
constexpr Parameter kRenew[] = {kHeld[0], kHeld[1], kHeld[2], kLease};
constexpr Parameter kWho[] = {kInstance};
constexpr Parameter kResume[] = {
    kInstance, {"cursor", Kind::number, Place::option, "Where to go on, as the page before said"}};
constexpr Parameter kWaitForWork[] = {
    kInstance, {"since_ms", Kind::number, Place::option, "How long ago it looked for work; 0"}, kWait};
constexpr Parameter kLetters[] = {
    {"letter", Kind::number, Place::repeated, "Only this one"},
    {"last_letter", Kind::number, Place::option, "None that came after this one"}};
constexpr Parameter kPurge[] = {
    kLetters[0],
    kLetters[1],
    {"older_than_ms", Kind::number, Place::option, "Only those dead for this long"}};

constexpr std::uint64_t kSmall = 1'000'000'000;

stream::InstanceId instance_of(Arguments& arguments) {
  const auto id = stream::parse_uuid(arguments.text("instance"));
  if (!id)
    arguments.complain(Errc::invalid_request,
                       "instance must be an id such as 01890a5d-ac96-774b-bcce-b302099a8057");
  return {id.value_or(stream::Uuid{})};
}

Lane lane_of(Arguments& arguments) {
  const std::string_view lane = arguments.text("lane");
  if (lane != "outbox" && lane != "inbox")
    arguments.complain(Errc::invalid_request, "lane must be outbox or inbox");
  return lane == "inbox" ? Lane::inbox : Lane::outbox;
}

std::int32_t small(Arguments& arguments, std::string_view name, std::int32_t otherwise) {
  return static_cast<std::int32_t>(arguments.number(name, static_cast<std::uint64_t>(otherwise), kSmall));
}

template <class Item>
void read(Arguments& arguments, std::string_view name, std::vector<Item>& into) {
  if (!arguments.has(name)) return;
  if (auto fine = read_json(arguments.text(name), into); !fine)
    arguments.complain(fine.error().code, std::string(name) + ": " + fine.error().message);
}

stream::Instance identity(Arguments& arguments) {
  return {.id = instance_of(arguments),
          .service = std::string(arguments.text("service")),
          .host = std::string(arguments.text("host")),
          .process = small(arguments, "process", 0),
          .metadata = std::string(arguments.text("about"))};
}

stream::ClaimLimits limits(Arguments& arguments) {
  const stream::ClaimLimits usual;
  return {.streams = small(arguments, "max_streams", usual.streams),
          .messages = small(arguments, "max_messages", usual.messages),
          .messages_per_stream = small(arguments, "max_per_stream", usual.messages_per_stream),
          .bytes = small(arguments, "max_bytes", static_cast<std::int32_t>(usual.bytes))};
}

std::optional<std::int32_t> partitions_max(Arguments& arguments) {
  if (!arguments.has("max_partitions")) return {};
  return small(arguments, "max_partitions", 0);
}

std::unique_ptr<Operation> operation(Arguments& arguments, Result<core::ProcessWork> call) {
  if (!call) arguments.complain(call.error().code, call.error().message);
  const std::uint64_t wait = arguments.number("wait_ms", 0, kWaitMsMax);
  return std::make_unique<StreamOperation>(call ? std::move(*call) : core::ProcessWork{},
                                           milliseconds(static_cast<std::int64_t>(wait)));
}

std::unique_ptr<Operation> process(const std::string& ns, Arguments& arguments) {
  stream::WorkBatchRequest request{.instance = identity(arguments)};
  read(arguments, "outbox_completions", request.outbox_completions);
  read(arguments, "inbox_completions", request.inbox_completions);
  read(arguments, "outbox_failures", request.outbox_failures);
  read(arguments, "inbox_failures", request.inbox_failures);
  read(arguments, "receptor_completions", request.receptor_completions);
  read(arguments, "receptor_failures", request.receptor_failures);
  read(arguments, "perspective_completions", request.perspective_completions);
  read(arguments, "perspective_failures", request.perspective_failures);
  read(arguments, "outbox_renewals", request.outbox_renewals);
  read(arguments, "inbox_renewals", request.inbox_renewals);
  read(arguments, "new_outbox_messages", request.new_outbox_messages);
  read(arguments, "new_inbox_messages", request.new_inbox_messages);
  request.flags = static_cast<stream::WorkFlags>(small(arguments, "flags", 0));
  request.partitions = small(arguments, "partitions", stream::kPartitions);
  request.partitions_max = partitions_max(arguments);
  request.lease = arguments.duration("lease_ms", stream::kLease);
  request.stale = arguments.duration("stale_ms", stream::kStale);
  request.limits = limits(arguments);
  return operation(arguments, engine::turn_of(ns, request));
}

std::unique_ptr<Operation> heartbeat(const std::string& ns, Arguments& arguments) {
  return operation(arguments, engine::heartbeat_of(ns, identity(arguments),
                                                   arguments.duration("stale_ms", stream::kStale)));
}

std::unique_ptr<Operation> store(const std::string& ns, Arguments& arguments) {
  std::vector<stream::NewMessage> messages;
  read(arguments, "messages", messages);
  return operation(arguments, engine::store_of(ns, instance_of(arguments), lane_of(arguments), messages,
                                               small(arguments, "partitions", stream::kPartitions)));
}

std::unique_ptr<Operation> claim(const std::string& ns, Arguments& arguments) {
  const bool one = arguments.has("lane");
  const Lane lane = one ? lane_of(arguments) : Lane::outbox;
  return operation(arguments, engine::claim_of(ns, instance_of(arguments),
                                               {.outbox = !one || lane == Lane::outbox,
                                                .inbox = !one || lane == Lane::inbox,
                                                .lease = arguments.duration("lease_ms", stream::kLease),
                                                .stale = arguments.duration("stale_ms", stream::kStale),
                                                .partitions_max = partitions_max(arguments),
                                                .limits = limits(arguments)}));
}

std::unique_ptr<Operation> complete(const std::string& ns, Arguments& arguments) {
  std::vector<stream::Completion> completions;
  read(arguments, "completions", completions);
  const bool keep = arguments.text("debug_mode") == "true";
  return operation(arguments,
                   engine::completion_of(ns, instance_of(arguments), lane_of(arguments), completions,
                                         keep ? stream::WorkFlags::debug_mode : stream::WorkFlags::none));
}

std::unique_ptr<Operation> fail(const std::string& ns, Arguments& arguments) {
  std::vector<stream::Failure> failures;
  read(arguments, "failures", failures);
  return operation(arguments, engine::failure_of(ns, instance_of(arguments), lane_of(arguments), failures));
}

std::unique_ptr<Operation> renew(const std::string& ns, Arguments& arguments) {
  std::vector<stream::Held> held;
  read(arguments, "held", held);
  return operation(arguments, engine::renewal_of(ns, instance_of(arguments), lane_of(arguments), held,
                                                 arguments.duration("lease_ms", stream::kLease)));
}

std::unique_ptr<Operation> release(const std::string& ns, Arguments& arguments) {
  std::vector<stream::Held> held;
  read(arguments, "held", held);
  std::vector<stream::Completion> given_back;
  for (const stream::Held& item : held) given_back.push_back({.held = item});
  return operation(arguments, engine::completion_of(ns, instance_of(arguments), lane_of(arguments),
                                                    given_back, stream::WorkFlags::none));
}

std::unique_ptr<Operation> resume(const std::string& ns, Arguments& arguments) {
  return std::make_unique<ResumeOperation>(ns, instance_of(arguments),
                                           arguments.number("cursor", 0, INT64_MAX));
}

std::unique_ptr<Operation> wait(const std::string& ns, Arguments& arguments) {
  return std::make_unique<StreamWaitOperation>(
      ns, instance_of(arguments), arguments.duration("since_ms", {}),
      milliseconds(static_cast<std::int64_t>(arguments.number("wait_ms", 0, kWaitMsMax))));
}

core::Request leave(const std::string& ns, Arguments& arguments) {
  return core::LeaveWork{.ns = ns, .instance = instance_of(arguments)};
}

std::uint64_t last_letter_of(Arguments& arguments) {
  return arguments.number("last_letter", core::kAnyLetter, core::kAnyLetter);
}

core::Request replay(const std::string& ns, Arguments& arguments) {
  return core::ReplayLetters{.ns = ns, .letters = letters_of(arguments), .last = last_letter_of(arguments)};
}

core::Request purge(const std::string& ns, Arguments& arguments) {
  return core::PurgeLetters{.ns = ns,
                            .letters = letters_of(arguments),
                            .older_than = arguments.duration("older_than_ms", {}),
                            .last = last_letter_of(arguments)};
}

constexpr Verb kVerbs[] = {
    {"process_work_batch", Permission::work, kBatch, process,
     "The whole turn of an instance in one call: it is alive, this is done, this failed, this is new, what "
     "is next?",
     "WorkBatch"},
    {"stream_heartbeat", Permission::work, kHeartbeat, heartbeat, "The instance is alive", "WorkBatch"},
    {"stream_store", Permission::work, kStore, store, "Stores messages", "WorkBatch"},
    {"stream_claim", Permission::work, kClaim, claim, "Takes work, for a limited time", "WorkBatch"},
    {"stream_complete", Permission::work, kComplete, complete, "Messages are done, or done in part",
     "WorkBatch"},
    {"stream_fail", Permission::work, kFail, fail, "Messages could not be handled", "WorkBatch"},
    {"stream_renew", Permission::work, kRenew, renew, "Holds messages and their streams for longer",
     "WorkBatch"},
    {"stream_release", Permission::work, kHeld, release, "Gives messages back unharmed", "WorkBatch"},
    {"stream_resume", Permission::work, kResume, resume, "What an instance holds, to be taken up again",
     "HeldWork"},
    {"stream_wait", Permission::work, kWaitForWork, wait,
     "Waits until there is something to claim that was not there before", "WorkAwaited"},
    {"stream_leave", Permission::work, kWho, leave, "The instance goes, and gives back what it holds",
     "Committed"},
    {"stream_replay", Permission::admin, kLetters, replay, "Puts dead letters back into their streams",
     "Purged"},
    {"stream_purge", Permission::admin, kPurge, purge, "Forgets dead letters for good", "Purged"},
};

}  // namespace

std::span<const Verb> stream_verbs() { return kVerbs; }

}  // namespace baton::server
