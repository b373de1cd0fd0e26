#include "client/worker.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "client/call.h"

namespace baton::client {
namespace {

constexpr std::size_t kExtendItemsMax = 512;   // in one request
constexpr std::size_t kReasonBytesMax = 4096;  // of a failure
constexpr std::size_t kQueuesMax = 16;         // in one LEASE
constexpr Duration kPause = seconds(1);        // after an error that may come back at once

// No repetition makes a task good that fails like this.
bool is_final(Errc code) {
  return code == Errc::invalid_request || code == Errc::too_large || code == Errc::unsupported_version;
}

bool is_passing(Errc code) {
  return code == Errc::outcome_unknown || code == Errc::unavailable || code == Errc::deadline_exceeded ||
         code == Errc::exhausted || code == Errc::no_space;
}

bool is_loss(Errc code) {
  return code == Errc::lease_lost || code == Errc::lease_unknown || code == Errc::not_found;
}

Failure failed_with(const Error& error) {
  std::string reason = error.message;
  if (reason.size() > kReasonBytesMax) reason.resize(kReasonBytesMax);
  return {.reason = std::move(reason), .final = is_final(error.code)};
}

}  // namespace

// Three kinds of thread: the fetcher takes tasks for slots that have none, each slot runs handlers and asks
// for the next task along with its completion, and the keeper extends the leases of all of them.
class Worker::Shift : public std::enable_shared_from_this<Worker::Shift> {
 public:
  Shift(Client& client, WorkerOptions options) : client_(client), options_(std::move(options)) {}

  void begin();
  void drain();
  bool is_draining() const {
    const std::lock_guard lock(mutex_);
    return drains_;
  }
  WorkerCounts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  // A task that a handler works on.
  struct Running {
    Held held;
    std::stop_source stop;
    bool is_lost = false;         // the coordinator said so
    std::int64_t held_until = 0;  // at least; afterwards nobody knows
  };
  using Place = std::list<Running>::iterator;
  using Lock = std::unique_lock<std::mutex>;

  void fetch();
  void serve();
  void keep();
  // Works on a task to its end; the next one, if there was one at once.
  std::optional<Leased> work(Leased task);
  std::string queue_of(const Leased& task);
  Result<std::string> handle(const Job& job, std::stop_token stop);
  std::optional<Leased> complete(Place place, const std::string& result);
  void fail(Place place, const Failure& failed);
  Result<Verdict> insist(Place place, const std::function<Result<Verdict>()>& say);
  void settle(const Result<Verdict>& verdict, std::uint64_t WorkerCounts::* count);
  void release(const std::vector<Leased>& tasks);
  void extend(const std::vector<Held>& batch);
  void lost(const std::vector<Held>& held);
  // Deals with an answer when it comes, if that is before the end.
  template <class Answer, class Deal>
  std::function<void(Answer)> later(Deal deal) {
    return [shift = weak_from_this(), deal = std::move(deal)](const Answer& answer) {
      const auto alive = shift.lock();
      if (!alive) return;
      const std::lock_guard lock(alive->calling_back_);
      if (!alive->is_deaf_) deal(answer);
    };
  }
  void beat();
  void report(const Error& error) const {
    if (options_.trouble) options_.trouble(error);
  }
  Lease order(std::size_t count, Duration wait) const;
  // Tasks to ask for: one for each idle slot, and none beyond tasks_max.
  std::size_t wanted() const {
    if (options_.tasks_max == 0) return idle_;
    const std::uint64_t spoken_for = given_ + taken_.size();
    return std::min<std::size_t>(idle_, options_.tasks_max - std::min(spoken_for, options_.tasks_max));
  }

  Client& client_;
  const WorkerOptions options_;
  std::vector<std::string> queues_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Leased> taken_;  // for slots that have none
  std::size_t idle_ = 0;      // slots that have none, less those that taken_ is for
  std::list<Running> running_;
  WorkerCounts counts_;
  std::uint64_t given_ = 0;  // tasks to slots, of tasks_max
  bool drains_ = false;
  bool ends_ = false;  // nothing runs any more

  std::uint64_t listener_ = 0;
  std::mutex calling_back_;  // held while an answer is dealt with that nobody waits for
  bool is_deaf_ = false;     // drained: such answers are dropped
  std::mutex draining_;      // by whoever joins the threads
  std::thread fetcher_;
  std::thread keeper_;
  std::vector<std::thread> slots_;
};

void Worker::Shift::begin() {
  for (const auto& [queue, handler] : options_.handlers) queues_.push_back(queue);
  listener_ = client_.listen([this](const Held& held) { lost({held}); });
  for (std::size_t slot = 0; slot < options_.slots; ++slot) slots_.emplace_back([this] { serve(); });
  keeper_ = std::thread([this] { keep(); });
  fetcher_ = std::thread([this] { fetch(); });
}

void Worker::Shift::drain() {
  const std::lock_guard one_at_a_time(draining_);
  {
    const std::lock_guard lock(mutex_);
    drains_ = true;
  }
  changed_.notify_all();
  if (fetcher_.joinable()) fetcher_.join();
  for (std::thread& slot : slots_) {
    if (slot.joinable()) slot.join();
  }
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (keeper_.joinable()) keeper_.join();
  if (listener_ != 0) client_.stop_listening(std::exchange(listener_, 0));
  const std::lock_guard none_is_running(calling_back_);
  is_deaf_ = true;
}

Lease Worker::Shift::order(std::size_t count, Duration wait) const {
  return {.worker = options_.name,
          .queues = queues_,
          .count = static_cast<std::uint32_t>(count),
          .ttl = options_.ttl,
          .wait = wait,
          .capabilities = options_.capabilities};
}

void Worker::Shift::fetch() {
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return drains_ || wanted() > 0; });
    if (drains_) return;
    const std::size_t count = wanted();
    lock.unlock();
    auto leased = client_.lease(order(count, options_.wait));
    if (!leased) report(leased.error());
    lock.lock();
    if (!leased && leased.error().code != Errc::outcome_unknown) {
      changed_.wait_for(lock, std::chrono::milliseconds(kPause.ms), [&] { return drains_; });
    } else if (leased) {
      const bool has_nothing = leased->empty() && idle_ == options_.slots;
      std::vector<Leased> unwanted;  // because we drain, or because it is more than we asked for
      for (Leased& task : *leased) {
        if (drains_ || idle_ == 0) {
          unwanted.push_back(std::move(task));
        } else {
          taken_.push_back(std::move(task));
          --idle_;
        }
      }
      changed_.notify_all();
      lock.unlock();
      release(unwanted);
      if (has_nothing && options_.idle) options_.idle();
      lock.lock();
    }
  }
}

void Worker::Shift::serve() {
  Lock lock(mutex_);
  std::optional<Leased> task;
  for (;;) {
    if (!task) {
      ++idle_;
      changed_.notify_all();
      changed_.wait(lock, [&] { return drains_ || !taken_.empty(); });
      if (!taken_.empty()) {
        task = std::move(taken_.front());
        taken_.pop_front();
      } else {
        return;
      }
    }
    const bool gives_back = drains_;
    if (!gives_back && ++given_ == options_.tasks_max) {
      drains_ = true;
      changed_.notify_all();
    }
    lock.unlock();
    if (gives_back) {
      release({*std::exchange(task, {})});
    } else {
      task = work(*std::exchange(task, {}));
    }
    lock.lock();
  }
}

std::string Worker::Shift::queue_of(const Leased& task) {
  if (!task.queue.empty()) return task.queue;
  if (queues_.size() == 1) return queues_[0];
  auto seen = client_.get(task.task);
  if (!seen) report(seen.error());
  return seen ? seen->view.queue : std::string();
}

std::optional<Leased> Worker::Shift::work(Leased task) {
  const Held held = task.held();
  std::stop_token stop;
  Place place;
  {
    const std::lock_guard lock(mutex_);
    place = running_.insert(running_.end(), {.held = held, .held_until = now_ms() + task.ttl.ms});
    stop = place->stop.get_token();
  }
  const Job job{.task = task.task,
                .fence = std::move(task.fence),
                .queue = queue_of(task),
                .payload = std::move(task.payload),
                .attempt = task.attempt};
  std::optional<Leased> next;
  if (!options_.handlers.contains(job.queue)) {
    release({task});
  } else {
    {
      const std::lock_guard lock(mutex_);
      ++counts_.begun;
    }
    const auto result = handle(job, stop);
    bool is_lost = false;
    {
      const std::lock_guard lock(mutex_);
      is_lost = place->is_lost;
      if (is_lost) ++counts_.lost;
    }
    if (is_lost) {
      // Nobody wants it.
    } else if (result) {
      next = complete(place, *result);
    } else if (result.error().code == Errc::closed) {
      release({task});
    } else {
      fail(place, failed_with(result.error()));
    }
  }
  bool was_last = false;
  {
    const std::lock_guard lock(mutex_);
    running_.erase(place);
    was_last = running_.empty() && given_ > 0 && given_ == options_.tasks_max;
  }
  if (was_last && options_.idle) options_.idle();
  return next;
}

Result<std::string> Worker::Shift::handle(const Job& job, std::stop_token stop) {
  try {
    return options_.handlers.at(job.queue)(job, std::move(stop));
  } catch (const std::exception& thrown) {
    return failure(Errc::io_failed, std::string("the handler threw: ") + thrown.what());
  } catch (...) {
    return failure(Errc::io_failed, "the handler threw something that is no exception");
  }
}

std::optional<Leased> Worker::Shift::complete(Place place, const std::string& result) {
  bool drains = false;
  {
    const std::lock_guard lock(mutex_);
    drains = drains_;
  }
  const Held held = place->held;
  std::optional<Leased> next;
  const Result<Verdict> verdict = insist(place, [&]() -> Result<Verdict> {
    // A completion may be repeated, a lease may not; so it is tried along with the completion only once.
    if (std::exchange(drains, true)) return client_.complete(held, result);
    auto both = client_.complete_and_lease(held, result, order(1, {}));
    if (!both) return std::unexpected(std::move(both.error()));
    if (both->tasks && !both->tasks->empty()) next = std::move(both->tasks->front());
    return std::move(both->completed);
  });
  if (!verdict && is_final(verdict.error().code)) {
    report(verdict.error());
    fail(place, failed_with(verdict.error()));  // the result itself was refused
  } else {
    settle(verdict, &WorkerCounts::completed);
  }
  return next;
}

void Worker::Shift::fail(Place place, const Failure& failed) {
  const Held held = place->held;
  settle(insist(place, [&] { return client_.fail(held, failed); }), &WorkerCounts::failed);
}

// Says it again for as long as the lease is held, if that may help.
Result<Verdict> Worker::Shift::insist(Place place, const std::function<Result<Verdict>()>& say) {
  for (;;) {
    Result<Verdict> verdict = say();
    if (verdict || !is_passing(verdict.error().code)) return verdict;
    Lock lock(mutex_);
    if (place->is_lost || now_ms() >= place->held_until) return verdict;
    if (verdict.error().code != Errc::outcome_unknown)
      changed_.wait_for(lock, std::chrono::milliseconds(kPause.ms), [&] { return place->is_lost; });
  }
}

void Worker::Shift::settle(const Result<Verdict>& verdict, std::uint64_t WorkerCounts::* count) {
  if (!verdict && !is_loss(verdict.error().code)) report(verdict.error());
  const std::lock_guard lock(mutex_);
  ++(counts_.*(verdict && !verdict->cancelled ? count : &WorkerCounts::lost));
}

void Worker::Shift::release(const std::vector<Leased>& tasks) {
  for (const Leased& task : tasks) settle(client_.release(task.held()), &WorkerCounts::released);
}

void Worker::Shift::keep() {
  const std::int64_t every = std::max<std::int64_t>(options_.ttl.ms / 3, 1);
  std::int64_t extend_at = now_ms() + every;
  std::int64_t beat_at = now_ms();
  Lock lock(mutex_);
  while (!ends_) {
    const std::int64_t now = now_ms();
    const bool extends = now >= extend_at;
    const bool beats = now >= beat_at;
    if (extends) extend_at = now + every;
    if (beats) beat_at = now + std::max<std::int64_t>(options_.heartbeat.ms, 1);
    std::int64_t until = std::min(extend_at, beat_at);
    std::vector<Held> all;
    std::vector<std::stop_source> overdue;
    for (Running& one : running_) {
      if (extends && !one.is_lost) all.push_back(one.held);
      if (one.stop.stop_requested()) continue;
      // No extension came through in time, so somebody else may have the task. Whether its result still
      // counts is for the coordinator to say.
      if (now >= one.held_until) overdue.push_back(one.stop);
      until = std::min(until, one.held_until);
    }
    lock.unlock();
    for (std::stop_source& stop : overdue) stop.request_stop();
    for (auto begin = all.begin(); begin != all.end();) {
      const auto end = begin + std::min<std::ptrdiff_t>(all.end() - begin, kExtendItemsMax);
      extend({begin, end});
      begin = end;
    }
    if (beats) beat();
    lock.lock();
    const auto wait = std::chrono::milliseconds(std::max<std::int64_t>(until - now_ms(), 1));
    changed_.wait_for(lock, wait, [&] { return ends_; });
  }
}

// The keeper does not wait for answers: one that is slow to come must not keep the others from being sent.
void Worker::Shift::extend(const std::vector<Held>& batch) {
  using Answer = Result<std::vector<Result<Duration>>>;
  const auto deal = [this, batch, asked_at = now_ms()](const Answer& extended) {
    if (!extended) return report(extended.error());
    std::vector<Held> gone;
    {
      const std::lock_guard lock(mutex_);
      for (std::size_t at = 0; at < std::min(batch.size(), extended->size()); ++at) {
        const Result<Duration>& item = (*extended)[at];
        const auto one = std::ranges::find(running_, batch[at], &Running::held);
        if (one == running_.end()) continue;
        if (item) one->held_until = std::max(one->held_until, asked_at + item->ms);
        if (!item && is_loss(item.error().code)) gone.push_back(batch[at]);
      }
    }
    lost(gone);
  };
  client_.extend_many(batch, options_.ttl, later<Answer>(deal), options_.ttl);
}

void Worker::Shift::lost(const std::vector<Held>& held) {
  std::vector<std::stop_source> stops;
  {
    const std::lock_guard lock(mutex_);
    for (Running& one : running_) {
      if (std::ranges::find(held, one.held) == held.end()) continue;
      one.is_lost = true;
      stops.push_back(one.stop);
    }
  }
  changed_.notify_all();
  for (std::stop_source& stop : stops)
    stop.request_stop();  // not under the lock: it calls whoever asked for it
}

void Worker::Shift::beat() {
  const auto deal = [this](const Result<std::uint64_t>& leases) {
    if (!leases) report(leases.error());
  };
  client_.heartbeat({.worker = options_.name,
                     .capacity = static_cast<std::uint32_t>(options_.slots),
                     .capabilities = options_.capabilities},
                    later<Result<std::uint64_t>>(deal), options_.heartbeat);
}

Result<std::unique_ptr<Worker>> Worker::start(Client& client, WorkerOptions options) {
  if (options.handlers.empty() || options.handlers.size() > kQueuesMax)
    return failure(Errc::invalid_request, "a worker needs handlers for 1 to 16 queues");
  if (options.slots == 0 || options.slots > kSlotsMax)
    return failure(Errc::invalid_request, "a worker has 1 to 1024 slots");
  if (options.name.empty() || options.ttl <= Duration{})
    return failure(Errc::invalid_request, "a worker needs a name, and a ttl above zero");
  auto shift = std::make_shared<Shift>(client, std::move(options));
  shift->begin();
  return std::unique_ptr<Worker>(new Worker(std::move(shift)));
}

Worker::Worker(std::shared_ptr<Shift> shift) : shift_(std::move(shift)) {}
Worker::~Worker() { shift_->drain(); }
void Worker::drain() { shift_->drain(); }
bool Worker::is_draining() const { return shift_->is_draining(); }
WorkerCounts Worker::counts() const { return shift_->counts(); }

}  // namespace baton::client
