// What ranks say that meet here, and what people ask about them.
#include <utility>

#include "server/group_operation.h"
#include "server/limits.h"
#include "server/verb.h"

namespace baton::server {
namespace {

using group::Group;

constexpr Parameter kGroup{"group", Kind::text, Place::position, "Name of the group"};
constexpr Parameter kRank{"rank", Kind::number, Place::position, "Number of the rank, from 0 on"};
constexpr Parameter kWorld{"world_size", Kind::number, Place::position, "How many ranks there are"};
constexpr Parameter kIncarnation{"incarnation", Kind::text, Place::position,
                                 "A name that the rank makes up anew each time it joins"};
constexpr Parameter kGeneration{"generation", Kind::number, Place::position, "As GROUP_JOIN gave it"};
constexpr Parameter kNumber{"number", Kind::number, Place::position,
                            "Of the operation in its stream, from 0 on"};
constexpr Parameter kStream{"stream", Kind::text, Place::option, "Name of a stream of operations of its own"};
constexpr Parameter kRoot{"root", Kind::number, Place::option, "Of broadcast and gather; 0 if not given"};
constexpr Parameter kWhere{"where", Kind::text, Place::option, "Host and process, for people to read"};
constexpr Parameter kTtl{"ttl_ms", Kind::number, Place::option,
                         "After how much silence a rank is given up; 10000 if not given"};
constexpr Parameter kErrorCode{"error_code", Kind::text, Place::option,
                               "In place of a contribution: the word of an error"};
constexpr Parameter kError{"error", Kind::text, Place::option, "What it says"};

constexpr Parameter kJoin[] = {kGroup, kRank, kWorld, kIncarnation, kWhere, kTtl};
constexpr Parameter kResume[] = {
    kGroup,
    kRank,
    kWorld,
    kIncarnation,
    kGeneration,
    kWhere,
    kTtl,
    kStream,
    {"number", Kind::number, Place::option, "Of the last operation whose end the rank has heard"},
    {"kind", Kind::text, Place::option, "Its kind"},
    {"name", Kind::text, Place::option, "Its name"},
    kRoot,
    {"contribution", Kind::bytes, Place::option, "What the rank brought to it"},
    {"share", Kind::bytes, Place::repeated, "What it got of it"},
    kErrorCode,
    kError};
constexpr std::string_view kKinds = "barrier, vote, broadcast, gather, all_gather or all_reduce";
constexpr Parameter kMeet[] = {
    kGroup,
    kRank,
    kIncarnation,
    kGeneration,
    kNumber,
    {"kind", Kind::text, Place::position, kKinds},
    {"name", Kind::text, Place::position, "Name of the operation, the same at all ranks"},
    kRoot,
    kStream,
    {"wait_ms", Kind::number, Place::option, "How long this rank waits for the others; 600000 if not given"},
    {"contribution", Kind::bytes, Place::option, "What it brings"},
    kErrorCode,
    kError};
constexpr Parameter kStop[] = {kGroup, kRank, kIncarnation, kGeneration, kNumber, kStream};
constexpr Parameter kWatch[] = {
    kGroup,
    kRank,
    kIncarnation,
    kGeneration,
    {"doing", Kind::text, Place::option, "Told to others who wait for this rank"},
    {"wait_ms", Kind::number, Place::option, "How long to watch; at once if not given"}};
constexpr Parameter kLeave[] = {kGroup, kRank, kIncarnation, kGeneration};
constexpr Parameter kMembers[] = {kGroup};

constexpr std::uint64_t kWorldMax = 65'536;
constexpr std::uint64_t kNumberMax = std::uint64_t{1} << 62;
constexpr std::uint64_t kResumedMax = kNumberMax / 2;  // so that there are generations behind it
constexpr std::uint64_t kDeadlineMax = std::uint64_t{24} * 60 * 60 * 1000;
constexpr std::size_t kTextMax = 200;
constexpr Duration kPatience = seconds(10);  // processes of a job do not start at the same time

Groups::Name name_of(const std::string& ns, Arguments& arguments) { return {ns, arguments.name("group")}; }

std::string short_text(Arguments& arguments, std::string_view name) {
  const std::string_view text = arguments.text(name);
  if (text.size() > kTextMax)
    arguments.complain(Errc::too_large, std::string(name) + " has 200 bytes at most");
  return std::string(text);
}

group::Seat seat_of(Arguments& arguments) {
  return {.rank = static_cast<group::Rank>(arguments.number("rank", 0, kWorldMax)),
          .incarnation = arguments.name("incarnation"),
          .generation = arguments.number("generation", 0, kNumberMax)};
}

group::Joining joining_of(Arguments& arguments) {
  group::Joining joining{.rank = static_cast<group::Rank>(arguments.number("rank", 0, kWorldMax)),
                         .world_size = static_cast<group::Rank>(arguments.number("world_size", 0, kWorldMax)),
                         .incarnation = arguments.name("incarnation"),
                         .where = short_text(arguments, "where"),
                         .time_to_live = milliseconds(static_cast<std::int64_t>(arguments.number(
                             "ttl_ms", static_cast<std::uint64_t>(group::kTimeToLive.ms), kWaitMsMax))),
                         .patience = kPatience};
  if (joining.rank >= joining.world_size)
    arguments.complain(Errc::invalid_request, "rank must be below world_size");
  if (joining.time_to_live < milliseconds(100))
    arguments.complain(Errc::invalid_request, "ttl_ms must be at least 100");
  return joining;
}

group::Operation operation_of(Arguments& arguments) {
  const auto kind = group::kind_of(arguments.text("kind"));
  if (!kind) arguments.complain(Errc::invalid_request, "kind must be " + std::string(kKinds));
  group::Operation operation{.kind = kind.value_or(group::OperationKind::barrier),
                             .name = short_text(arguments, "name"),
                             .root = static_cast<group::Rank>(arguments.number("root", 0, kWorldMax))};
  if (operation.name.empty()) arguments.complain(Errc::invalid_request, "an operation has a name");
  return operation;
}

std::optional<Error> error_of(Arguments& arguments) {
  if (!arguments.has("error_code")) return std::nullopt;
  const auto code = code_of(arguments.text("error_code"));
  if (!code) arguments.complain(Errc::invalid_request, "error_code must be one of the words of errors");
  return Error{code.value_or(Errc::io_failed), std::string(arguments.text("error")), {}};
}

Bytes bytes_in(std::string_view text) {
  const ByteView view = bytes_of(text);
  return {view.begin(), view.end()};
}

std::unique_ptr<Operation> join(const std::string& ns, Arguments& arguments) {
  const group::Joining joining = joining_of(arguments);
  return std::make_unique<GroupOperation>(
      [name = name_of(ns, arguments), joining](Groups& groups, Instant now) -> Result<GroupOperation::Said> {
        const auto generation = groups.join(name, joining, now);
        if (!generation) return std::unexpected(generation.error());
        return GroupOperation::Said{
            1, [generation](ReplyWriter& reply) { reply.member("generation", *generation); }};
      },
      joining.world_size);
}

std::vector<group::Kept> kept_of(Arguments& arguments) {
  if (!arguments.has("number")) return {};
  group::Kept kept{.stream = short_text(arguments, "stream"),
                   .number = arguments.number("number", 0, kNumberMax),
                   .operation = operation_of(arguments),
                   .outcome = {},
                   .contribution = bytes_in(arguments.text("contribution"))};
  if (auto error = error_of(arguments)) {
    kept.outcome = std::unexpected(std::move(*error));
  } else {
    std::vector<Bytes> share;
    for (const std::string_view each : arguments.all("share")) share.push_back(bytes_in(each));
    kept.outcome = std::make_shared<const std::vector<Bytes>>(std::move(share));
  }
  return {std::move(kept)};
}

std::unique_ptr<Operation> resume(const std::string& ns, Arguments& arguments) {
  const group::Joining joining = joining_of(arguments);
  return std::make_unique<GroupOperation>(
      [name = name_of(ns, arguments), joining, generation = arguments.number("generation", 0, kResumedMax),
       kept = kept_of(arguments)](Groups& groups, Instant now) -> Result<GroupOperation::Said> {
        if (auto done = groups.resume(name, joining, generation, kept, now); !done)
          return std::unexpected(done.error());
        return GroupOperation::Said{};
      },
      joining.world_size);
}

std::unique_ptr<Operation> meet(const std::string& ns, Arguments& arguments) {
  group::Arrival arrival{.stream = short_text(arguments, "stream"),
                         .number = arguments.number("number", 0, kNumberMax),
                         .operation = operation_of(arguments),
                         .mine = bytes_in(arguments.text("contribution")),
                         .deadline = milliseconds(
                             static_cast<std::int64_t>(arguments.number("wait_ms", 600'000, kDeadlineMax)))};
  if (auto error = error_of(arguments)) arrival.mine = std::unexpected(std::move(*error));
  return std::make_unique<MeetOperation>(name_of(ns, arguments), seat_of(arguments), std::move(arrival));
}

std::unique_ptr<Operation> stop(const std::string& ns, Arguments& arguments) {
  return std::make_unique<GroupOperation>(
      [name = name_of(ns, arguments), seat = seat_of(arguments), stream = short_text(arguments, "stream"),
       number = arguments.number("number", 0, kNumberMax)](Groups& groups, Instant now) {
        groups.stop(name, seat, stream, number, now);
        return GroupOperation::Said{};
      });
}

std::unique_ptr<Operation> watch(const std::string& ns, Arguments& arguments) {
  std::optional<std::string> doing;
  if (arguments.has("doing")) doing = short_text(arguments, "doing");
  return std::make_unique<WatchOperation>(
      name_of(ns, arguments), seat_of(arguments), std::move(doing),
      milliseconds(static_cast<std::int64_t>(arguments.number("wait_ms", 0, kWaitMsMax))));
}

std::unique_ptr<Operation> leave(const std::string& ns, Arguments& arguments) {
  return std::make_unique<GroupOperation>(
      [name = name_of(ns, arguments), seat = seat_of(arguments)](Groups& groups, Instant now) {
        groups.leave(name, seat, now);
        return GroupOperation::Said{};
      });
}

std::unique_ptr<Operation> members(const std::string& ns, Arguments& arguments) {
  return std::make_unique<GroupQuestion>(
      [name = name_of(ns, arguments)](Groups& groups, Instant now) -> Result<GroupOperation::Said> {
        const Group* found = groups.find(name);
        if (found == nullptr) return failure(Errc::not_found, "no group '" + name.second + "' is known here");
        return GroupOperation::Said{
            2, [generation = found->generation(), all = found->members(now)](ReplyWriter& reply) {
              reply.member("generation", generation);
              reply.name("members");
              reply.list(all.size());
              for (const Group::Whereabouts& each : all) {
                reply.map(6);
                reply.member("rank", each.rank);
                reply.member("state", each.state);
                reply.member("where", each.where);
                reply.member("at", each.at);
                reply.member("doing", each.doing);
                reply.member("silent_ms", static_cast<std::uint64_t>(each.silent.ms));
              }
            }};
      });
}

std::unique_ptr<Operation> groups_here(const std::string& ns, Arguments&) {
  return std::make_unique<GroupQuestion>([ns](Groups& groups, Instant) {
    std::vector<std::pair<std::string, std::pair<group::Generation, group::Rank>>> all;
    for (const auto& [name, found] : groups.all(ns))
      all.push_back({name, {found->generation(), found->world_size()}});
    return GroupOperation::Said{1, [all](ReplyWriter& reply) {
                                  reply.name("groups");
                                  reply.list(all.size());
                                  for (const auto& [name, about] : all) {
                                    reply.map(3);
                                    reply.member("group", name);
                                    reply.member("generation", about.first);
                                    reply.member("world_size", about.second);
                                  }
                                }};
  });
}

constexpr Verb kVerbs[] = {
    {"group_join", Permission::work, kJoin, join, "A process takes its place as a rank of a group", "Joined"},
    {"group_resume", Permission::work, kResume, resume,
     "A rank comes back, and says what it knows of the last operation", "Noted"},
    {"group_meet", Permission::work, kMeet, meet,
     "A rank comes to an operation, and waits for the others or the deadline", "Met"},
    {"group_stop", Permission::work, kStop, stop, "A rank does not want to wait any longer", "Noted"},
    {"group_watch", Permission::work, kWatch, watch,
     "A rank is alive, and wants to hear if its generation ends", "Watched"},
    {"group_leave", Permission::work, kLeave, leave, "A rank goes", "Noted"},
    {"group_members", Permission::query, kMembers, members, "Who is there, and where", "Members"},
    {"groups", Permission::query, {}, groups_here, "Which groups there are", "Groups"},
};

}  // namespace

std::span<const Verb> group_verbs() { return kVerbs; }

}  // namespace baton::server
