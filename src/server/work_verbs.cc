// What a worker does: lease, extend, complete, fail, release, and the fused form of complete and lease.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/limits.h"
#include "core/names.h"
#include "server/extend_operation.h"
#include "server/lease_operation.h"
#include "server/limits.h"
#include "server/verb.h"

namespace baton::server {
namespace {

constexpr Parameter kTask{"task", Kind::text, Place::position, "Task id, or key: and its key"};
constexpr Parameter kLease{"lease", Kind::text, Place::position, "Lease id, as LEASE gave it"};
constexpr Parameter kWorker{"worker", Kind::text, Place::position, "Name of the worker"};
constexpr Parameter kQueue{"queue", Kind::text, Place::position, "Queue to take a task from"};
constexpr Parameter kTtl{"ttl_ms", Kind::number, Place::option, "Lease time; 30000 if not given"};
constexpr Parameter kResult{"result", Kind::bytes, Place::option, "What came of it"};

constexpr Parameter kLeaseOptions[] = {
    kTtl,
    {"also", Kind::text, Place::repeated, "Another queue to take a task from"},
    {"capability", Kind::text, Place::repeated, "What this worker can do"},
    {"wait_ms", Kind::number, Place::option, "How long to wait if there is no task"},
};
constexpr auto kLeaseVerb = joined<3>(
    {kWorker, kQueue, {"count", Kind::number, Place::option, "Tasks to take at most; 1 if not given"}},
    kLeaseOptions);
constexpr auto kNext = joined<5>({kTask, kLease, kWorker, kQueue, kResult}, kLeaseOptions);
constexpr Parameter kExtend[] = {kTask, kLease, kTtl};
constexpr Parameter kExtendMany[] = {
    {"leases", Kind::text, Place::counted, "Task id, a space, and its lease id, for each"}, kTtl};
constexpr Parameter kComplete[] = {kTask, kLease, kResult};
constexpr Parameter kFail[] = {
    kTask,
    kLease,
    {"reason", Kind::bytes, Place::option, "What went wrong"},
    {"final", Kind::flag, Place::option, "Do not try again, whatever the retry policy says"},
    {"delay_ms", Kind::number, Place::option, "Try again after this long, instead of what the policy says"}};
constexpr Parameter kRelease[] = {kTask, kLease};

constexpr Duration kDefaultTtl = seconds(30);
constexpr std::uint64_t kLeaseCountMax = 1024;

LeaseOrder read_order(const std::string& ns, Arguments& arguments) {
  LeaseOrder order;
  order.request = {.ns = ns, .worker = arguments.name("worker")};
  order.request.queues.push_back(arguments.name("queue"));
  // Before anything is made of them: what is asked for several times is copied as often. Who names a queue
  // twice has it looked through once.
  const auto also = arguments.all("also");
  if (also.size() >= core::kQueuesPerLeaseMax) {
    arguments.complain(Errc::too_large, fmt::format("more than {} queues", core::kQueuesPerLeaseMax));
  } else {
    for (const std::string_view queue : also) {
      if (!core::is_name(queue))
        arguments.complain(Errc::invalid_request, "a queue must be 1 to 128 graphic ASCII characters");
      std::vector<std::string>& queues = order.request.queues;
      if (std::ranges::find(queues, queue) == queues.end()) queues.emplace_back(queue);
    }
  }
  order.request.capabilities = arguments.capabilities("capability");
  order.request.ttl = arguments.duration("ttl_ms", kDefaultTtl);
  order.count = arguments.number("count", 1, UINT64_MAX);
  if (order.count == 0) arguments.complain(Errc::invalid_request, "count must be at least 1");
  if (order.count > kLeaseCountMax)
    arguments.complain(Errc::too_large, fmt::format("lease at most {} tasks at once", kLeaseCountMax));
  order.wait = milliseconds(static_cast<std::int64_t>(arguments.number("wait_ms", 0, kWaitMsMax)));
  return order;
}

std::unique_ptr<Operation> lease(const std::string& ns, Arguments& arguments) {
  return std::make_unique<LeaseOperation>(read_order(ns, arguments));
}

core::CompleteTask read_complete(const std::string& ns, Arguments& arguments) {
  return {.ns = ns,
          .task = arguments.task("task"),
          .lease = arguments.lease("lease"),
          .result = arguments.blob("result")};
}

std::unique_ptr<Operation> next(const std::string& ns, Arguments& arguments) {
  return std::make_unique<LeaseOperation>(read_order(ns, arguments), read_complete(ns, arguments));
}

std::unique_ptr<Operation> extend(const std::string& ns, Arguments& arguments) {
  core::ExtendLease request{.ns = ns,
                            .task = arguments.task("task"),
                            .lease = arguments.lease("lease"),
                            .ttl = arguments.duration("ttl_ms", kDefaultTtl)};
  return std::make_unique<ExtendOperation>(ns, std::vector{std::move(request)}, false);
}

std::unique_ptr<Operation> extend_many(const std::string& ns, Arguments& arguments) {
  std::vector<core::ExtendLease> items;
  const Duration ttl = arguments.duration("ttl_ms", kDefaultTtl);
  for (const std::string_view text : arguments.all("leases")) {
    const std::size_t space = std::min(text.find(' '), text.size());
    auto task = parse_task_ref(text.substr(0, space));
    auto lease = core::parse_lease_id(text.substr(std::min(space + 1, text.size())));
    if (!task || !lease) {
      arguments.complain(Errc::invalid_request, "each of leases is a task id, a space, and a lease id");
      break;
    }
    items.push_back({.task = std::move(*task), .lease = *lease, .ttl = ttl});
  }
  return std::make_unique<ExtendOperation>(ns, std::move(items), true);
}

core::Request complete(const std::string& ns, Arguments& arguments) { return read_complete(ns, arguments); }

core::Request fail(const std::string& ns, Arguments& arguments) {
  return core::FailTask{.ns = ns,
                        .task = arguments.task("task"),
                        .lease = arguments.lease("lease"),
                        .reason = arguments.blob("reason"),
                        .final = arguments.text("final") == "true",
                        .delay = arguments.duration("delay_ms", {})};
}

core::Request release(const std::string& ns, Arguments& arguments) {
  return core::ReleaseTask{.ns = ns, .task = arguments.task("task"), .lease = arguments.lease("lease")};
}

constexpr Verb kVerbs[] = {
    {"lease", Permission::work, kLeaseVerb, lease, "Takes tasks, for a limited time", "Leased"},
    {"extend", Permission::work, kExtend, extend, "Keeps a task for longer", "Extended"},
    {"extendmany", Permission::work, kExtendMany, extend_many,
     "Keeps many tasks for longer; each has an outcome of its own", "ManyExtended"},
    {"complete", Permission::work, kComplete, complete, "The work is done", "Committed"},
    {"next", Permission::work, kNext, next,
     "The work is done, and another task is wanted: complete and lease in one. A refused completion does not "
     "stop the lease",
     "Leased"},
    {"fail", Permission::work, kFail, fail, "The work could not be done", "Committed"},
    {"release", Permission::work, kRelease, release, "Gives a task back unharmed", "Committed"},
};

}  // namespace

std::span<const Verb> work_verbs() { return kVerbs; }

}  // namespace baton::server
