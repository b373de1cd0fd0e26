#include "client/client.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "client/command.h"
#include "client/decode.h"
#include "client/exchange.h"

namespace baton::client {
namespace {

using wire::RespValue;

constexpr std::size_t kWordsMax = 4000;    // the coordinator takes 4096
constexpr std::size_t kCommandFrame = 64;  // bytes around the words

// What a call is, before anybody makes it.
template <class T>
struct Plan {
  Command command;
  Safety safety;
  Result<T> (*decode)(const RespValue&);
  Duration wait{};
  bool leases = false;  // its reply may bring tasks
};

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

ExchangeOptions exchange_options(const ClientOptions& options, std::optional<Error>& complaint) {
  ExchangeOptions made{.calls_max = options.calls_max,
                       .bytes_max = options.bytes_max,
                       .waiting_lines_max = options.waiting_connections_max};
  LineOptions& line = made.line;
  line.connect_timeout = options.connect_timeout;
  line.silence_max = options.silence_max;
  line.backoff_min = options.backoff_min;
  line.backoff_max = options.backoff_max;
  line.reply.bytes_max = options.reply_bytes_max;
  for (const std::string& text : options.addresses) {
    auto address = parse_address(text);
    if (address) {
      line.addresses.push_back(std::move(*address));
    } else if (!complaint) {
      complaint = std::move(address.error());
    }
  }
  if (options.tls) {
    auto loaded = TlsContext::load(*options.tls);
    if (loaded) {
      line.tls = std::move(*loaded);
    } else {
      complaint = std::move(loaded.error());
    }
  }
  if (options.addresses.empty()) complaint = {Errc::invalid_request, "the client was given no address"};
  if (options.calls_max == 0 || options.bytes_max == 0 || options.waiting_connections_max == 0)
    complaint = {Errc::invalid_request, "a limit of the client is zero"};

  const auto greet = [&](const Command& command) {
    line.greeting += command.whole();
    ++line.greetings;
  };
  // First, so that nobody has to answer a stranger's HELLO.
  if (!options.token.empty()) {
    Command command("AUTH");
    if (!options.user.empty()) command.add(options.user);
    greet(command.add(options.token));
  }
  greet(Command("HELLO").add("3"));
  if (!options.ns.empty()) greet(Command("USE").add(options.ns));
  return made;
}

// What a thread waits with for its own call.
template <class T>
class Awaited {
 public:
  void set(Result<T> result) {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
    comes_.notify_one();  // under the lock: the waiting thread takes all this away
  }
  Result<T> wait() {
    std::unique_lock lock(mutex_);
    comes_.wait(lock, [&] { return result_.has_value(); });
    return std::move(*result_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable comes_;
  std::optional<Result<T>> result_;
};

}  // namespace

class Client::Calls {
 public:
  explicit Calls(const ClientOptions& options)
      : deadline_(options.deadline),
        command_bytes_max_(options.command_bytes_max - std::min(options.command_bytes_max, kCommandFrame)),
        exchange_(exchange_options(options, complaint_), [this](const RespValue& push) { pushed(push); }) {}

  template <class T>
  void start(const Plan<T>& plan, Callback<T> done, Duration deadline) {
    auto call = std::make_unique<Call>();
    call->words = plan.command.words();
    call->count = plan.command.count();
    call->safety = plan.safety;
    call->wait = plan.wait;
    const std::int64_t now = now_ms();
    call->wait_until = now + plan.wait.ms;
    call->deadline = call->wait_until + (deadline > Duration{} ? deadline : deadline_).ms;
    std::optional<Error> refusal = complaint_;
    if (!refusal && (call->words.size() > command_bytes_max_ || call->count > kWordsMax))
      refusal = {Errc::too_large, "the request is over the limit of what is sent at once"};
    if (refusal) call->deadline = now;  // it is never sent, and still answered where all the others are
    call->done = [decode = plan.decode, done = std::move(done), refusal](Result<RespValue> reply) {
      if (refusal) return done(std::unexpected(*refusal));
      if (!reply) return done(std::unexpected(std::move(reply.error())));
      done(decode(*reply));
    };
    if (plan.leases) call->orphan = [this](const RespValue& reply) { give_back(reply); };
    exchange_.start(std::move(call));
  }

  template <class T>
  Result<T> ask(const Plan<T>& plan, Duration deadline) {
    if (exchange_.is_own_thread())
      return failure(Errc::invalid_request, "a blocking call in a callback would wait for itself");
    Awaited<T> awaited;
    start<T>(plan, [&](Result<T> result) { awaited.set(std::move(result)); }, deadline);
    return awaited.wait();
  }

  std::uint64_t listen(std::function<void(const Held&)> lost) {
    const std::lock_guard lock(mutex_);
    listeners_.emplace(++last_listener_, std::move(lost));
    return last_listener_;
  }
  void stop_listening(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    listeners_.erase(id);
  }

 private:
  void pushed(const RespValue& push) {
    const auto held = decode_lost(push);
    if (!held) return;
    const std::lock_guard lock(mutex_);
    for (const auto& [id, lost] : listeners_) lost(*held);
  }

  // Tasks whose caller was told that he would not hear of them. Others need not wait for the lease to expire.
  void give_back(const RespValue& reply) {
    const auto leased = decode_leased(reply);
    if (!leased) return;
    for (const Leased& task : *leased)
      start<Verdict>(plan_release(task.held()), [](const Result<Verdict>&) {}, {});
  }

  const Duration deadline_;
  const std::size_t command_bytes_max_;
  std::optional<Error> complaint_;  // about the options
  std::mutex mutex_;
  std::map<std::uint64_t, std::function<void(const Held&)>> listeners_;
  std::uint64_t last_listener_ = 0;
  Exchange exchange_;
};

Client::Client(const ClientOptions& options) : calls_(std::make_unique<Calls>(options)) {}
Client::~Client() = default;

std::uint64_t Client::listen(std::function<void(const Held&)> lost) {
  return calls_->listen(std::move(lost));
}
void Client::stop_listening(std::uint64_t id) { calls_->stop_listening(id); }

Result<RespValue> Client::say(const Command& command) {
  const auto as_it_came = [](const RespValue& reply) -> Result<RespValue> {
    if (reply.type == RespValue::Type::error) return std::unexpected(error_of(reply));
    return reply;
  };
  return calls_->ask<RespValue>({command, Safety::repeatable, as_it_came}, {});
}

Result<Submitted> Client::submit(const Submit& request, Duration deadline) {
  return calls_->ask(plan_submit(request), deadline);
}
Result<std::vector<Result<Submitted>>> Client::submit_many(const SubmitMany& request, Duration deadline) {
  return calls_->ask(plan_submit_many(request), deadline);
}
Result<std::vector<Leased>> Client::lease(const Lease& request, Duration deadline) {
  return calls_->ask(plan_lease(request), deadline);
}
Result<Duration> Client::extend(const Held& held, Duration ttl, Duration deadline) {
  return calls_->ask(plan_extend(held, ttl), deadline);
}
Result<std::vector<Result<Duration>>> Client::extend_many(const std::vector<Held>& held, Duration ttl,
                                                          Duration deadline) {
  return calls_->ask(plan_extend_many(held, ttl), deadline);
}
Result<Verdict> Client::complete(const Held& held, const std::string& result, Duration deadline) {
  return calls_->ask(plan_complete(held, result), deadline);
}
Result<Next> Client::complete_and_lease(const Held& held, const std::string& result, const Lease& lease,
                                        Duration deadline) {
  return calls_->ask(plan_next(held, result, lease), deadline);
}
Result<Verdict> Client::fail(const Held& held, const Failure& failed, Duration deadline) {
  return calls_->ask(plan_fail(held, failed), deadline);
}
Result<Verdict> Client::release(const Held& held, Duration deadline) {
  return calls_->ask(plan_release(held), deadline);
}
Status Client::cancel(const std::string& task, const std::string& actor, const std::string& note,
                      Duration deadline) {
  return calls_->ask(plan_cancel(task, actor, note), deadline);
}
Result<Submitted> Client::requeue(const std::string& task, const std::string& key, Duration deadline) {
  return calls_->ask(plan_requeue(task, key), deadline);
}
Result<Task> Client::get(const std::string& task, Duration deadline) {
  return calls_->ask(plan_get(task), deadline);
}
Result<Task> Client::wait(const std::string& task, Duration wait, Duration deadline) {
  return calls_->ask(plan_wait(task, wait), deadline);
}
Result<TaskPage> Client::tasks(const TaskQuery& query, Duration deadline) {
  return calls_->ask(plan_tasks(query), deadline);
}
Result<QueuePage> Client::queues(const QueueQuery& query, Duration deadline) {
  return calls_->ask(plan_queues(query), deadline);
}
Result<WorkerPage> Client::workers(const WorkerQuery& query, Duration deadline) {
  return calls_->ask(plan_workers(query), deadline);
}
Result<Stats> Client::stats(Duration deadline) { return calls_->ask(plan_stats(), deadline); }
Result<std::uint64_t> Client::heartbeat(const Heartbeat& heartbeat, Duration deadline) {
  return calls_->ask(plan_heartbeat(heartbeat), deadline);
}
Status Client::pause(const std::string& queue, Duration deadline) {
  return calls_->ask(plan_queue_verb("PAUSE", queue), deadline);
}
Status Client::resume(const std::string& queue, Duration deadline) {
  return calls_->ask(plan_queue_verb("RESUME", queue), deadline);
}
Result<std::uint64_t> Client::purge(const std::string& queue, std::uint32_t count, Duration deadline) {
  return calls_->ask(plan_purge(queue, count), deadline);
}

void Client::submit(const Submit& request, Callback<Submitted> done, Duration deadline) {
  calls_->start(plan_submit(request), std::move(done), deadline);
}
void Client::submit_many(const SubmitMany& request, Callback<std::vector<Result<Submitted>>> done,
                         Duration deadline) {
  calls_->start(plan_submit_many(request), std::move(done), deadline);
}
void Client::lease(const Lease& request, Callback<std::vector<Leased>> done, Duration deadline) {
  calls_->start(plan_lease(request), std::move(done), deadline);
}
void Client::extend(const Held& held, Duration ttl, Callback<Duration> done, Duration deadline) {
  calls_->start(plan_extend(held, ttl), std::move(done), deadline);
}
void Client::extend_many(const std::vector<Held>& held, Duration ttl,
                         Callback<std::vector<Result<Duration>>> done, Duration deadline) {
  calls_->start(plan_extend_many(held, ttl), std::move(done), deadline);
}
void Client::complete(const Held& held, const std::string& result, Callback<Verdict> done,
                      Duration deadline) {
  calls_->start(plan_complete(held, result), std::move(done), deadline);
}
void Client::complete_and_lease(const Held& held, const std::string& result, const Lease& lease,
                                Callback<Next> done, Duration deadline) {
  calls_->start(plan_next(held, result, lease), std::move(done), deadline);
}
void Client::fail(const Held& held, const Failure& failed, Callback<Verdict> done, Duration deadline) {
  calls_->start(plan_fail(held, failed), std::move(done), deadline);
}
void Client::release(const Held& held, Callback<Verdict> done, Duration deadline) {
  calls_->start(plan_release(held), std::move(done), deadline);
}
void Client::cancel(const std::string& task, const std::string& actor, const std::string& note,
                    Callback<void> done, Duration deadline) {
  calls_->start(plan_cancel(task, actor, note), std::move(done), deadline);
}
void Client::requeue(const std::string& task, const std::string& key, Callback<Submitted> done,
                     Duration deadline) {
  calls_->start(plan_requeue(task, key), std::move(done), deadline);
}
void Client::get(const std::string& task, Callback<Task> done, Duration deadline) {
  calls_->start(plan_get(task), std::move(done), deadline);
}
void Client::wait(const std::string& task, Duration wait, Callback<Task> done, Duration deadline) {
  calls_->start(plan_wait(task, wait), std::move(done), deadline);
}
void Client::tasks(const TaskQuery& query, Callback<TaskPage> done, Duration deadline) {
  calls_->start(plan_tasks(query), std::move(done), deadline);
}
void Client::queues(const QueueQuery& query, Callback<QueuePage> done, Duration deadline) {
  calls_->start(plan_queues(query), std::move(done), deadline);
}
void Client::workers(const WorkerQuery& query, Callback<WorkerPage> done, Duration deadline) {
  calls_->start(plan_workers(query), std::move(done), deadline);
}
void Client::stats(Callback<Stats> done, Duration deadline) {
  calls_->start(plan_stats(), std::move(done), deadline);
}
void Client::heartbeat(const Heartbeat& heartbeat, Callback<std::uint64_t> done, Duration deadline) {
  calls_->start(plan_heartbeat(heartbeat), std::move(done), deadline);
}
void Client::pause(const std::string& queue, Callback<void> done, Duration deadline) {
  calls_->start(plan_queue_verb("PAUSE", queue), std::move(done), deadline);
}
void Client::resume(const std::string& queue, Callback<void> done, Duration deadline) {
  calls_->start(plan_queue_verb("RESUME", queue), std::move(done), deadline);
}
void Client::purge(const std::string& queue, std::uint32_t count, Callback<std::uint64_t> done,
                   Duration deadline) {
  calls_->start(plan_purge(queue, count), std::move(done), deadline);
}

}  // namespace baton::client
