#include "client/worker.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <iterator>
#include <system_error>
#include <utility>

#include "client/call.h"
#include "client/shift.h"

namespace baton::client {
namespace {

constexpr std::size_t kReasonBytesMax = 4096;  // of a failure
constexpr std::size_t kQueuesMax = 16;         // in one LEASE
constexpr Duration kPause = seconds(1);        // after an error that may come back at once

// No repetition makes a task good that fails like this.
bool is_final(Errc code) {
  return code == Errc::invalid_request || code == Errc::too_large || code == Errc::unsupported_version;
}

bool is_passing(Errc code) {
  return code == Errc::outcome_unknown || code == Errc::unavailable || code == Errc::deadline_exceeded ||
         code == Errc::exhausted || code == Errc::no_space || code == Errc::closed;
}

Failure failed_with(const Error& error) {
  std::string reason = error.message;
  if (reason.size() > kReasonBytesMax) reason.resize(kReasonBytesMax);
  return {.reason = std::move(reason), .final = is_final(error.code)};
}

}  // namespace

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
  fetching_.request_stop();  // what was granted all the same is given back
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
    // A lease counts from when it was asked for, so most of it should be left when it comes.
    auto leased = client_.lease(order(count, std::min(options_.wait, milliseconds(options_.ttl.ms / 3))),
                                fetching_.get_token());
    if (!leased && !fetching_.stop_requested()) report(leased.error());
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
      if (taken_.empty()) return;
      task = std::move(taken_.front());
      taken_.pop_front();
    }
    if (drains_) {
      // Nobody else's is begun either.
      std::vector<Leased> unbegun(std::make_move_iterator(taken_.begin()),
                                  std::make_move_iterator(taken_.end()));
      taken_.clear();
      unbegun.push_back(*std::exchange(task, {}));
      lock.unlock();
      release(unbegun);
      lock.lock();
      continue;
    }
    if (++given_ == options_.tasks_max) {
      drains_ = true;
      changed_.notify_all();
    }
    lock.unlock();
    task = work(*std::exchange(task, {}));
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
    place = running_.insert(running_.end(), {.held = held, .held_until = task.asked_at + task.ttl.ms});
    place->is_lost = std::erase(early_losses_, held) > 0;
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
    const auto result = may_begin(place) ? handle(job, stop) : Result<std::string>();
    bool is_lost = false;
    {
      const std::lock_guard lock(mutex_);
      is_lost = place->is_lost;
      if (is_lost) ++counts_.lost;
    }
    if (is_lost) {
      report({Errc::lease_lost,
              held.task + ": the lease was lost or the task cancelled; the handler was stopped"});
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

bool Worker::Shift::may_begin(Place place) {
  const std::lock_guard lock(mutex_);
  if (!place->is_lost) ++counts_.begun;
  return !place->is_lost;
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
  bool takes_more = false;
  {
    // Of so many tasks each is asked for by the fetcher, lest one too many has to be given back.
    const std::lock_guard lock(mutex_);
    takes_more = !drains_ && options_.tasks_max == 0;
  }
  const Held held = place->held;
  std::optional<Leased> next;
  const Result<Verdict> verdict = insist(place, [&]() -> Result<Verdict> {
    // A completion may be repeated, a lease may not; so it is tried along with the completion only once.
    if (!std::exchange(takes_more, false)) return client_.complete(held, result);
    auto both = client_.complete_and_lease(held, result, order(1, {}));
    if (!both) return std::unexpected(std::move(both.error()));
    if (both->tasks && !both->tasks->empty()) next = std::move(both->tasks->front());
    return std::move(both->completed);
  });
  if (!verdict && is_final(verdict.error().code)) {
    report(verdict.error());
    fail(place, failed_with(verdict.error()));  // the result itself was refused
  } else {
    settle(held, verdict, &WorkerCounts::completed);
  }
  return next;
}

void Worker::Shift::fail(Place place, const Failure& failed) {
  const Held held = place->held;
  const auto verdict = insist(place, [&] { return client_.fail(held, failed); });
  settle(held, verdict, &WorkerCounts::failed);
  if (verdict && !verdict->cancelled && options_.failed) options_.failed(held.task, *verdict);
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

void Worker::Shift::settle(const Held& held, const Result<Verdict>& verdict,
                           std::uint64_t WorkerCounts::* count) {
  if (!verdict && is_passing(verdict.error().code)) {
    report({Errc::lease_lost,
            held.task + ": the lease ran out before the outcome could be told: " + verdict.error().message});
  } else if (!verdict && !is_loss(verdict.error().code)) {
    report({verdict.error().code, held.task + ": " + verdict.error().message});
  } else if (!verdict || verdict->cancelled) {
    report({Errc::lease_lost,
            held.task + ": the lease was lost before the outcome was told; it does not count"});
  }
  const std::lock_guard lock(mutex_);
  ++(counts_.*(verdict && !verdict->cancelled ? count : &WorkerCounts::lost));
}

// All of it is said before the first answer is waited for: the coordinator settles it in one turn.
void Worker::Shift::release(const std::vector<Leased>& tasks) {
  std::vector<std::future<Result<Verdict>>> verdicts;
  for (const Leased& task : tasks) {
    // Shared, for a callback can be copied, and a promise cannot.
    const auto promise = std::make_shared<std::promise<Result<Verdict>>>();
    verdicts.push_back(promise->get_future());
    client_.release(task.held(),
                    [promise](Result<Verdict> verdict) { promise->set_value(std::move(verdict)); });
  }
  for (std::size_t at = 0; at < tasks.size(); ++at)
    settle(tasks[at].held(), verdicts[at].get(), &WorkerCounts::released);
}

Result<std::unique_ptr<Worker>> Worker::start(Client& client, WorkerOptions options) {
  if (options.handlers.empty() || options.handlers.size() > kQueuesMax)
    return failure(Errc::invalid_request, "a worker needs handlers for 1 to 16 queues");
  if (options.slots == 0 || options.slots > kSlotsMax)
    return failure(Errc::invalid_request, "a worker has 1 to 1024 slots");
  if (options.name.empty() || options.ttl <= Duration{})
    return failure(Errc::invalid_request, "a worker needs a name, and a ttl above zero");
  auto shift = std::make_shared<Shift>(client, std::move(options));
  try {
    shift->begin();
  } catch (const std::system_error& refused) {
    shift->drain();
    return failure(Errc::exhausted,
                   "the system has not enough threads for a worker: " + std::string(refused.what()) +
                       "; give it fewer slots, or raise the limit");
  }
  return std::unique_ptr<Worker>(new Worker(std::move(shift)));
}

Worker::Worker(std::shared_ptr<Shift> shift) : shift_(std::move(shift)) {}
Worker::~Worker() { shift_->drain(); }
void Worker::drain() { shift_->drain(); }
bool Worker::is_draining() const { return shift_->is_draining(); }
WorkerCounts Worker::counts() const { return shift_->counts(); }

}  // namespace baton::client
