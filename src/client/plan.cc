#include "client/plan.h"

#include <utility>

#include "client/decode.h"

namespace baton::client {
namespace {

void add_options(Command& command, const TaskOptions& options) {
  command.option_if(options.priority > 0, "PRIORITY", options.priority)
      .option_if(options.delay > Duration{}, "DELAY_MS", options.delay)
      .each("CAPABILITY", options.capabilities);
  const auto given = [&](std::string_view name, const auto& value) {
    if (value) command.option(name, *value);
  };
  given("MAX_FAILURES", options.max_failures);
  given("BACKOFF_MS", options.backoff);
  given("BACKOFF_FACTOR_PERCENT", options.backoff_factor_percent);
  given("BACKOFF_MAX_MS", options.backoff_max);
  given("JITTER_PERCENT", options.jitter_percent);
  given("MAX_ATTEMPTS", options.max_attempts);
  given("MAX_HOLD_MS", options.max_hold);
}

void add_lease_options(Command& command, const Lease& lease) {
  command.option("TTL_MS", lease.ttl);
  for (std::size_t at = 1; at < lease.queues.size(); ++at)
    command.option("ALSO", std::string_view(lease.queues[at]));
  command.each("CAPABILITY", lease.capabilities);
}

std::string_view first_queue(const Lease& lease) {
  return lease.queues.empty() ? std::string_view() : std::string_view(lease.queues[0]);
}

}  // namespace

Plan<Submitted> plan_submit(const Submit& request) {
  Command command("SUBMIT");
  command.add(request.queue).add(request.payload).option_if(!request.key.empty(), "KEY", request.key);
  add_options(command, request.options);
  return {std::move(command), request.key.empty() ? Safety::once : Safety::repeatable, decode_submitted};
}

Plan<std::vector<Result<Submitted>>> plan_submit_many(const SubmitMany& request) {
  Command command("SUBMITMANY");
  command.add(request.queue).add(request.payloads.size());
  for (const std::string& payload : request.payloads) command.add(payload);
  command.each("KEY", request.keys);
  add_options(command, request.options);
  return {std::move(command), request.keys.empty() ? Safety::once : Safety::repeatable,
          decode_submitted_many};
}

Plan<std::vector<Leased>> plan_lease(const Lease& request) {
  Command command("LEASE");
  command.add(request.worker).add(first_queue(request)).option("COUNT", request.count);
  add_lease_options(command, request);
  return {std::move(command), Safety::once, decode_leased, request.wait, true};
}

Plan<Duration> plan_extend(const Held& held, Duration ttl) {
  Command command("EXTEND");
  command.add(held.task).add(held.lease).option("TTL_MS", ttl);
  return {std::move(command), Safety::repeatable, decode_extended};
}

Plan<std::vector<Result<Duration>>> plan_extend_many(const std::vector<Held>& held, Duration ttl) {
  Command command("EXTENDMANY");
  command.add(held.size());
  for (const Held& one : held) command.add(one.task + " " + one.lease);
  command.option("TTL_MS", ttl);
  return {std::move(command), Safety::repeatable, decode_extended_many};
}

Plan<Verdict> plan_complete(const Held& held, const std::string& result) {
  Command command("COMPLETE");
  command.add(held.task).add(held.lease).option_if(!result.empty(), "RESULT", result);
  return {std::move(command), Safety::repeatable, decode_verdict};
}

Plan<Next> plan_next(const Held& held, const std::string& result, const Lease& lease) {
  Command command("NEXT");
  command.add(held.task).add(held.lease).add(lease.worker).add(first_queue(lease));
  command.option_if(!result.empty(), "RESULT", result);
  add_lease_options(command, lease);
  return {std::move(command), Safety::once, decode_next, lease.wait, true};
}

Plan<Verdict> plan_fail(const Held& held, const Failure& failed) {
  Command command("FAIL");
  command.add(held.task).add(held.lease).option_if(!failed.reason.empty(), "REASON", failed.reason);
  if (failed.final) command.add("FINAL");
  command.option_if(failed.delay > Duration{}, "DELAY_MS", failed.delay);
  return {std::move(command), Safety::repeatable, decode_verdict};
}

Plan<Verdict> plan_release(const Held& held) {
  Command command("RELEASE");
  command.add(held.task).add(held.lease);
  return {std::move(command), Safety::repeatable, decode_verdict};
}

Plan<void> plan_cancel(const std::string& task, const std::string& actor, const std::string& note) {
  Command command("CANCEL");
  command.add(task).option_if(!actor.empty(), "ACTOR", actor).option_if(!note.empty(), "NOTE", note);
  return {std::move(command), Safety::repeatable, decode_accepted};
}

Plan<Submitted> plan_requeue(const std::string& task, const std::string& key) {
  Command command("REQUEUE");
  command.add(task).option_if(!key.empty(), "KEY", key);
  return {std::move(command), key.empty() ? Safety::once : Safety::repeatable, decode_submitted};
}

Plan<Task> plan_get(const std::string& task) {
  Command command("GET");
  command.add(task);
  return {std::move(command), Safety::query, decode_task};
}

Plan<Task> plan_wait(const std::string& task, Duration wait) {
  if (wait <= Duration{}) return plan_get(task);
  Command command("WAIT");
  command.add(task);
  return {std::move(command), Safety::query, decode_task, wait};
}

Plan<TaskPage> plan_tasks(const TaskQuery& query) {
  Command command("TASKS");
  command.option_if(!query.queue.empty(), "QUEUE", query.queue)
      .option_if(!query.state.empty(), "STATE", query.state)
      .option_if(!query.worker.empty(), "WORKER", query.worker)
      .option_if(query.older_than > Duration{}, "OLDER_THAN_MS", query.older_than)
      .option("COUNT", query.count)
      .option("CURSOR", query.cursor);
  return {std::move(command), Safety::query, decode_page};
}

Plan<QueuePage> plan_queues(const QueueQuery& query) {
  Command command("QUEUES");
  command.option("COUNT", query.count).option_if(!query.cursor.empty(), "CURSOR", query.cursor);
  return {std::move(command), Safety::query, decode_queues};
}

Plan<WorkerPage> plan_workers(const WorkerQuery& query) {
  Command command("WORKERS");
  command.option("COUNT", query.count).option("CURSOR", query.cursor);
  return {std::move(command), Safety::query, decode_workers};
}

Plan<Stats> plan_stats() { return {Command("STATS"), Safety::query, decode_stats}; }

Plan<std::uint64_t> plan_heartbeat(const Heartbeat& heartbeat) {
  Command command("HEARTBEAT");
  command.add(heartbeat.worker).option_if(heartbeat.capacity > 0, "CAPACITY", heartbeat.capacity);
  command.each("CAPABILITY", heartbeat.capabilities);
  return {std::move(command), Safety::query, decode_leases};  // nothing that is recorded changes
}

Plan<void> plan_queue_verb(std::string_view verb, const std::string& queue) {
  Command command(verb);
  command.add(queue);
  return {std::move(command), Safety::repeatable, decode_accepted};
}

Plan<std::uint64_t> plan_purge(const std::string& queue, std::uint32_t count) {
  Command command("PURGE");
  command.add(queue).option("COUNT", count);
  return {std::move(command), Safety::once, decode_purged};
}

}  // namespace baton::client
