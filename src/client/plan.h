// What each call says, before anybody makes it: its words, whether it may be said twice, and how its reply is
// read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/call.h"
#include "client/command.h"
#include "client/types.h"
#include "wire/resp_value.h"

namespace baton::client {

template <class T>
struct Plan {
  Command command;
  Safety safety;
  Result<T> (*decode)(const wire::RespValue&);
  Duration wait{};
  bool leases = false;  // its reply may bring tasks
};

Plan<Submitted> plan_submit(const Submit& request);
Plan<std::vector<Result<Submitted>>> plan_submit_many(const SubmitMany& request);
Plan<std::vector<Leased>> plan_lease(const Lease& request);
Plan<Duration> plan_extend(const Held& held, Duration ttl);
Plan<std::vector<Result<Duration>>> plan_extend_many(const std::vector<Held>& held, Duration ttl);
Plan<Verdict> plan_complete(const Held& held, const std::string& result);
Plan<Next> plan_next(const Held& held, const std::string& result, const Lease& lease);
Plan<Verdict> plan_fail(const Held& held, const Failure& failed);
Plan<Verdict> plan_release(const Held& held);
Plan<void> plan_cancel(const std::string& task, const std::string& actor, const std::string& note);
Plan<Submitted> plan_requeue(const std::string& task, const std::string& key);
Plan<Task> plan_get(const std::string& task);
Plan<Task> plan_wait(const std::string& task, Duration wait);
Plan<TaskPage> plan_tasks(const TaskQuery& query);
Plan<QueuePage> plan_queues(const QueueQuery& query);
Plan<WorkerPage> plan_workers(const WorkerQuery& query);
Plan<Stats> plan_stats();
Plan<std::uint64_t> plan_heartbeat(const Heartbeat& heartbeat);
Plan<void> plan_queue_verb(std::string_view verb, const std::string& queue);
Plan<std::uint64_t> plan_purge(const std::string& queue, std::uint32_t count);

}  // namespace baton::client
