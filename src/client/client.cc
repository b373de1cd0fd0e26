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
#include "client/line_options.h"
#include "client/plan.h"

namespace baton::client {
namespace {

using wire::RespValue;

constexpr std::size_t kWordsMax = 4000;    // the coordinator takes 4096
constexpr std::size_t kCommandFrame = 64;  // bytes around the words

ExchangeOptions exchange_options(const ClientOptions& options, std::optional<Error>& complaint) {
  auto line = line_options(options);
  if (!line) complaint = std::move(line.error());
  if (options.calls_max == 0 || options.bytes_max == 0 || options.waiting_connections_max == 0)
    complaint = {Errc::invalid_request, "a limit of the client is zero"};
  return {.line = line ? std::move(*line) : LineOptions(),
          .calls_max = options.calls_max,
          .bytes_max = options.bytes_max,
          .waiting_lines_max = options.waiting_connections_max};
}

Result<RespValue> as_it_came(const RespValue& reply) {
  if (reply.type == RespValue::Type::error) return std::unexpected(error_of(reply));
  return reply;
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

// When tasks were asked for is known here, and not in the reply.
template <class T>
void note_asking(T&, std::int64_t) {}
void note_asking(std::vector<Leased>& tasks, std::int64_t asked_at) {
  for (Leased& task : tasks) task.asked_at = asked_at;
}
void note_asking(Next& next, std::int64_t asked_at) {
  if (next.tasks) note_asking(*next.tasks, asked_at);
}

}  // namespace

class Client::Calls {
 public:
  explicit Calls(const ClientOptions& options)
      : deadline_(options.deadline),
        command_bytes_max_(options.command_bytes_max - std::min(options.command_bytes_max, kCommandFrame)),
        exchange_(exchange_options(options, complaint_), [this](const RespValue& push) { pushed(push); }) {}

  template <class T>
  void start(const Plan<T>& plan, Callback<T> done, Duration deadline, std::stop_token stop = {}) {
    auto call = std::make_unique<Call>();
    call->stop = std::move(stop);
    call->words = plan.command.words();
    call->count = plan.command.count();
    call->safety = plan.safety;
    call->wait = plan.wait;
    const std::int64_t now = now_ms();
    call->wait_until = now + plan.wait.ms;
    call->deadline = call->wait_until + (deadline > Duration{} ? deadline : deadline_).ms;
    std::optional<Error> refusal = complaint_;
    if (!refusal && (call->words.size() > command_bytes_max_ || call->count > kWordsMax))
      refusal = {Errc::too_large, "the request has " + std::to_string(call->words.size()) + " bytes and " +
                                      std::to_string(call->count) + " words; at once go " +
                                      std::to_string(command_bytes_max_) + " and " +
                                      std::to_string(kWordsMax)};
    if (refusal) call->deadline = now;  // it is never sent, and still answered where all the others are
    call->done = [decode = plan.decode, done = std::move(done), refusal](Result<RespValue> reply,
                                                                         std::int64_t sent_at) {
      if (refusal) return done(std::unexpected(*refusal));
      if (!reply) return done(std::unexpected(std::move(reply.error())));
      Result<T> decoded = decode(*reply);
      if constexpr (!std::is_void_v<T>) {
        if (decoded) note_asking(*decoded, sent_at);
      }
      done(std::move(decoded));
    };
    if (plan.leases) call->orphan = [this](const RespValue& reply) { give_back(reply); };
    exchange_.start(std::move(call));
  }

  Status may_wait() const {
    if (!exchange_.is_own_thread()) return {};
    return failure(Errc::invalid_request, "a blocking call in a callback would wait for itself");
  }

  template <class T>
  Result<T> ask(const Plan<T>& plan, Duration deadline, const std::stop_token& stop = {}) {
    if (auto may = may_wait(); !may) return std::unexpected(may.error());
    if (stop.stop_requested()) return failure(Errc::closed, "stopped");
    Awaited<T> awaited;
    start<T>(plan, [&](Result<T> result) { awaited.set(std::move(result)); }, deadline, stop);
    const std::stop_callback look(stop, [this] { exchange_.look_at_stops(); });
    auto result = awaited.wait();
    if (!result && stop.stop_requested()) return failure(Errc::closed, "stopped");
    return result;
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

Result<RespValue> Client::say(const Command& command, Duration deadline) {
  return calls_->ask<RespValue>({command, Safety::repeatable, as_it_came}, deadline);
}

void Client::say(const Command& command, Duration wait, Callback<RespValue> done) {
  calls_->start<RespValue>({command, Safety::repeatable, as_it_came, wait}, std::move(done), {});
}

Result<RespValue> Client::say_once(const Command& command) {
  return calls_->ask<RespValue>({command, Safety::once, as_it_came}, {});
}

Status Client::may_wait() const { return calls_->may_wait(); }

void Client::say_once(const Command& command, Callback<RespValue> done) {
  calls_->start<RespValue>({command, Safety::once, as_it_came}, std::move(done), {});
}

Result<RespValue> Client::ask(const std::vector<std::string>& words, Duration deadline) {
  return say(Command(words), deadline);
}
void Client::ask(const std::vector<std::string>& words, Callback<RespValue> done, Duration deadline) {
  calls_->start<RespValue>({Command(words), Safety::repeatable, as_it_came}, std::move(done), deadline);
}
Result<RespValue> Client::ask_and_wait(const std::vector<std::string>& words, Duration wait,
                                       const std::stop_token& stop, Duration deadline) {
  return calls_->ask<RespValue>({Command(words), Safety::repeatable, as_it_came, wait}, deadline, stop);
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
Result<std::vector<Leased>> Client::lease(const Lease& request, std::stop_token stop, Duration deadline) {
  return calls_->ask(plan_lease(request), deadline, stop);
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
