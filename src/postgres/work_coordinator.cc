#include "postgres/work_coordinator.h"

#include <algorithm>
#include <chrono>

#include "base/pause.h"
#include "postgres/batch_calls.h"
#include "postgres/errors.h"
#include "postgres/maintenance.h"
#include "postgres/migrations.h"
#include "postgres/work_calls.h"
#include "postgres/work_rows.h"
#include "stream/checks.h"

namespace baton::postgres {
namespace {

using namespace stream;
using Clock = std::chrono::steady_clock;

// As in the functions: a plan that was good while the tables were empty must be so when a million messages
// wait.
constexpr const char* kPlainPlans =
    "set plan_cache_mode = force_generic_plan; set jit = off; set enable_seqscan = off; set enable_hashjoin "
    "= off; set enable_mergejoin = off";

// The functions lock a row and go by what it has become meanwhile, however others use the database.
constexpr const char* kReadCommitted = "set default_transaction_isolation = 'read committed'; ";

// The next of a series of waits that grow: between half of it and all of it, so that two that met do not meet
// again.
Duration jittered(Duration longest, std::minstd_rand& dice) {
  return milliseconds(std::uniform_int_distribution<std::int64_t>(longest.ms / 2, longest.ms)(dice));
}

Duration steady_now() {
  return {std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count()};
}

// Messages come faster than they are forgotten if much of each minute is spent waiting; but others are to
// come to the database too.
constexpr Duration kBetweenMaintenance = milliseconds(5);

std::unexpected<Error> stopped() { return failure(Errc::closed, "stopped; nothing has happened"); }

}  // namespace

WorkCoordinator::WorkCoordinator(DatabaseOptions options)
    : options_(std::move(options)), maintained_(steady_now()) {}

// The line is this thread's until it goes; or not at all, if it was stopped before that, or time was up.
class WorkCoordinator::Turn {
 public:
  Turn(Line& line, const std::stop_token& stop) : line_(line) {
    std::unique_lock lock(line_.mutex);
    take(line_.freed.wait(lock, stop, [&] { return !line_.is_taken; }));
  }
  Turn(Line& line, const std::stop_token& stop, Duration at_most) : line_(line) {
    std::unique_lock lock(line_.mutex);
    take(line_.freed.wait_for(lock, stop, std::chrono::milliseconds(at_most.ms),
                              [&] { return !line_.is_taken; }));
  }
  ~Turn() {
    if (!has_come_) return;
    const std::scoped_lock lock(line_.mutex);
    line_.is_taken = false;
    line_.freed.notify_one();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool has_come() const { return has_come_; }

 private:
  void take(bool is_free) {
    has_come_ = is_free;
    if (is_free) line_.is_taken = true;
  }

  Line& line_;
  bool has_come_ = false;
};

Status WorkCoordinator::connect(Line& line, const char* greeting, std::stop_token stop) {
  if (line.connection && line.connection->is_alive()) return {};
  line.connection.reset();
  const auto give_up = Clock::now() + std::chrono::milliseconds(options_.give_up_after.ms);
  for (Duration backoff = options_.backoff_min;;
       backoff = std::min(milliseconds(backoff.ms * 2), options_.backoff_max)) {
    auto opened = Connection::open(options_.url, options_.connect_timeout, options_.call_max);
    if (opened) {
      if (auto fits = check_version(**opened); !fits) return fits;
      if (auto greeted = (*opened)->execute(std::string(kReadCommitted) + greeting); !greeted)
        return std::unexpected(error_of(greeted.error()));
      line.connection = std::move(*opened);
      return {};
    }
    if (Clock::now() + std::chrono::milliseconds(backoff.ms) > give_up)
      return std::unexpected(error_of(opened.error()));
    if (pause(jittered(backoff, line.dice), stop)) return stopped();
  }
}

Result<std::vector<Rows>> WorkCoordinator::run(std::span<const Call> calls, std::stop_token stop) {
  const Turn turn(calls_, stop);
  if (!turn.has_come()) return stopped();
  Duration backoff = options_.backoff_min;
  for (int tries = 1;; ++tries) {
    if (stop.stop_requested()) return stopped();
    if (auto connected = connect(calls_, kPlainPlans, stop); !connected)
      return std::unexpected(connected.error());
    auto rows = calls_.connection->run(calls, stop);
    if (rows) return std::move(*rows);
    if (rows.error().sqlstate.empty()) calls_.connection.reset();
    if (is_cancelled(rows.error()) && stop.stop_requested()) return stopped();
    if (!is_passing(rows.error()) || tries >= options_.tries) return std::unexpected(error_of(rows.error()));
    if (pause(jittered(backoff, calls_.dice), stop)) return stopped();
    backoff = std::min(milliseconds(backoff.ms * 2), options_.backoff_max);
  }
}

Result<std::vector<Verdict>> WorkCoordinator::verdicts(const Call& call, std::size_t count,
                                                       std::stop_token stop) {
  auto rows = run(std::span(&call, 1), stop);
  if (!rows) return std::unexpected(rows.error());
  return verdicts_of(rows->front(), count);
}

Result<WorkBatch> WorkCoordinator::do_process_work_batch(const WorkBatchRequest& request,
                                                         std::stop_token stop) {
  if (auto fits = check(request); !fits) return std::unexpected(fits.error());
  speaks_for(request.instance.service);
  const BatchCalls batch(request);
  auto rows = run(batch.calls(), stop);
  if (!rows) return std::unexpected(rows.error());
  return batch.batch_of(*rows);
}

Result<Standing> WorkCoordinator::do_heartbeat(const Instance& instance, Duration stale,
                                               std::stop_token stop) {
  if (auto fits = check(instance); !fits) return std::unexpected(fits.error());
  if (auto fits = check_seconds(stale, "the time after which an instance is stale"); !fits)
    return std::unexpected(fits.error());
  speaks_for(instance.service);
  auto rows = run(std::vector{heartbeat_call(instance, stale)}, stop);
  if (!rows) return std::unexpected(rows.error());
  return standing_of(rows->front());
}

Result<std::vector<Verdict>> WorkCoordinator::do_store(InstanceId instance, Lane lane,
                                                       const std::vector<NewMessage>& messages,
                                                       std::int32_t partitions, std::stop_token stop) {
  if (auto fits = check(lane, messages, partitions); !fits) return std::unexpected(fits.error());
  return verdicts(store_call(instance, lane, messages, partitions), messages.size(), stop);
}

Result<std::vector<Work>> WorkCoordinator::do_claim(InstanceId instance, const ClaimRequest& request,
                                                    std::stop_token stop) {
  if (auto fits = check(request); !fits) return std::unexpected(fits.error());
  auto rows = run(std::vector{lease_call(instance, request), given_call(instance)}, stop);
  if (!rows) return std::unexpected(rows.error());
  return work_of(rows->back());
}

Result<std::vector<Verdict>> WorkCoordinator::do_complete(InstanceId instance, Lane lane,
                                                          const std::vector<Completion>& completions,
                                                          WorkFlags flags, std::stop_token stop) {
  if (auto fits = check(completions, flags); !fits) return std::unexpected(fits.error());
  return verdicts(complete_call(instance, lane, completions, has(flags, WorkFlags::debug_mode)),
                  completions.size(), stop);
}

Result<std::vector<Verdict>> WorkCoordinator::do_fail(InstanceId instance, Lane lane,
                                                      const std::vector<Failure>& failures,
                                                      std::stop_token stop) {
  if (auto fits = check(failures); !fits) return std::unexpected(fits.error());
  return verdicts(fail_call(instance, lane, failures), failures.size(), stop);
}

Result<std::vector<Verdict>> WorkCoordinator::do_renew(InstanceId instance, Lane lane,
                                                       const std::vector<Held>& held, Duration lease,
                                                       std::stop_token stop) {
  if (auto fits = check(held); !fits) return std::unexpected(fits.error());
  if (auto fits = check_seconds(lease, "a lease"); !fits) return std::unexpected(fits.error());
  return verdicts(renew_call(instance, lane, held, lease), held.size(), stop);
}

Result<std::vector<Verdict>> WorkCoordinator::do_release(InstanceId instance, Lane lane,
                                                         const std::vector<Held>& held,
                                                         std::stop_token stop) {
  if (auto fits = check(held); !fits) return std::unexpected(fits.error());
  return verdicts(release_call(instance, lane, held), held.size(), stop);
}

Result<std::vector<Work>> WorkCoordinator::do_resume(InstanceId instance, std::stop_token stop) {
  auto rows = run(std::vector{resume_call(instance)}, stop);
  if (!rows) return std::unexpected(rows.error());
  return work_of(rows->front());
}

void WorkCoordinator::speaks_for(const std::string& service) {
  const std::scoped_lock lock(services_mutex_);
  services_.insert(service);
}

Result<bool> WorkCoordinator::do_wait_for_work(Duration at_most, std::stop_token stop) {
  const Duration until = steady_now() + at_most;
  const Turn turn(news_, stop, at_most);
  if (!turn.has_come()) return false;
  // One that is gone goes before the next is made, which may well lie in the same place.
  if (news_.connection && !news_.connection->is_alive()) news_.connection.reset();
  const bool listened = news_.connection != nullptr;
  if (auto connected = connect(news_, "listen wh_work", stop); !connected)
    return std::unexpected(connected.error());
  if (!listened) return true;  // nobody told us what came meanwhile
  const auto is_ours = [&](std::string_view service) {
    const std::scoped_lock lock(services_mutex_);
    return service.empty() || services_.empty() || services_.contains(service);
  };
  for (;;) {
    if (!maintain_if_due(stop)) return true;  // as above
    const Duration left = std::max(until - steady_now(), Duration{});
    auto woken = news_.connection->wait_for_notification(
        has_more_to_forget_ ? std::min(left, kBetweenMaintenance) : left, stop, is_ours);
    if (!woken) {
      news_.connection.reset();
      return std::unexpected(error_of(woken.error()));
    }
    if (*woken || stop.stop_requested() || steady_now() >= until) return *woken;
  }
}

// Whoever waits came for something else: a bounded amount each time, and if this fails, it is tried again
// when it is due again. False: the connection is gone.
bool WorkCoordinator::maintain_if_due(const std::stop_token& stop) {
  const bool is_due = has_more_to_forget_ || steady_now() - maintained_ >= options_.maintain_every;
  if (options_.maintain_every <= Duration{} || !is_due) return true;
  const Duration unless_within =
      has_more_to_forget_ ? Duration{} : milliseconds(options_.maintain_every.ms / 2);
  maintained_ = steady_now();
  const auto done = maintain(*news_.connection, unless_within, stop);
  has_more_to_forget_ = done && done->has_more;
  if (news_.connection->is_alive()) return true;
  news_.connection.reset();
  return false;
}

Status WorkCoordinator::do_leave(InstanceId instance, std::stop_token stop) {
  auto rows = run(std::vector{leave_call(instance)}, stop);
  if (!rows) return std::unexpected(rows.error());
  return {};
}

}  // namespace baton::postgres
