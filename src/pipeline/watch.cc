#include "pipeline/watch.h"

#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/words.h"

namespace baton::pipeline {
namespace {

using Clock = std::chrono::steady_clock;
// Between the end of its grace, when a command is killed, and giving the module up.
constexpr std::chrono::milliseconds kMargin{2000};

Clock::duration as_clock(Duration duration) { return std::chrono::milliseconds(duration.ms); }

}  // namespace

struct Watch::Job {
  ModuleOrder order;
  std::function<void(ModuleResult)> abandoned;
  std::uint32_t tries = 0;   // that were begun
  std::stop_source stop;     // of this try
  bool is_late = false;      // this try is
  bool is_unwanted = false;  // the module is: there is no other try
  bool is_abandoned = false;
  std::multimap<Clock::time_point, std::shared_ptr<Job>>::iterator alarm;
  bool has_alarm = false;
};

struct Watch::State {
  explicit State(std::shared_ptr<const Site> where) : site(std::move(where)) {}

  const std::shared_ptr<const Site> site;
  std::mutex mutex;
  std::condition_variable_any changed;
  std::multimap<Clock::time_point, std::shared_ptr<Job>> alarms;
  std::list<std::shared_ptr<Job>> running;
  bool stops = false;
  bool stops_all = false;
  std::jthread clock;

  void set_alarm(const std::shared_ptr<Job>& job, Clock::time_point at) {
    clear_alarm(*job);
    job->alarm = alarms.emplace(at, job);
    job->has_alarm = true;
    if (job->alarm == alarms.begin()) changed.notify_all();
  }
  void clear_alarm(Job& job) {
    if (std::exchange(job.has_alarm, false)) alarms.erase(job.alarm);
  }
  void do_without(const std::shared_ptr<Job>& job, std::vector<std::stop_source>& sources) {
    job->is_unwanted = true;
    ask_to_stop(job, sources);
  }
  void ask_to_stop(const std::shared_ptr<Job>& job, std::vector<std::stop_source>& sources) {
    if (job->stop.stop_requested()) return;
    set_alarm(job, Clock::now() + as_clock(job->order.node->spec->stop_grace) + kMargin);
    sources.push_back(job->stop);
  }
  // Callbacks of tokens may do anything, so they are called without the lock.
  static void trigger(std::vector<std::stop_source>& sources) {
    for (std::stop_source& source : sources) source.request_stop();
  }

  void keep_time(const std::stop_token& end) {
    std::unique_lock lock(mutex);
    while (!end.stop_requested()) {
      if (alarms.empty()) {
        changed.wait(lock, end, [this] { return !alarms.empty(); });
        continue;
      }
      const auto next = alarms.begin()->first;
      if (Clock::now() < next) {
        changed.wait_until(lock, end, next, [&] { return alarms.empty() || alarms.begin()->first < next; });
        continue;
      }
      const std::shared_ptr<Job> job = alarms.begin()->second;
      clear_alarm(*job);
      ring(lock, job);
    }
  }

  void ring(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Job>& job) {
    if (!job->stop.stop_requested()) {
      job->is_late = true;
      std::vector<std::stop_source> sources;
      ask_to_stop(job, sources);
      lock.unlock();
      trigger(sources);
      lock.lock();
      return;
    }
    job->is_abandoned = true;
    running.remove(job);
    const GraphNode& node = *job->order.node;
    ModuleResult result;
    result.failure = {.kind = job->is_late ? FailureKind::timeout : FailureKind::cancelled,
                      .message = (job->is_late ? "it took longer than " + in_words(node.spec->timeout)
                                               : std::string("the run was stopped")) +
                                 " and did not react to being asked to stop"};
    result.status = job->is_late ? status_of_failure(node, result.failure) : ModuleStatus::cancelled;
    result.tries = job->tries;  // or it would count as never begun
    lock.unlock();
    job->abandoned(std::move(result));
    lock.lock();
  }
};

// A module in hand, as it sees us.
class Watch::Supervision : public Supervisor {
 public:
  Supervision(State& state, std::shared_ptr<Job> job) : state_(state), job_(std::move(job)) {}

  std::stop_token next_try(Duration delay) override {
    const std::lock_guard lock(state_.mutex);
    const ModuleSpec& spec = *job_->order.node->spec;
    job_->stop = {};
    job_->is_late = false;
    if (job_->is_abandoned) {
      job_->stop.request_stop();
    } else if (job_->is_unwanted || state_.stops_all || (state_.stops && !spec.always_run)) {
      std::vector<std::stop_source> sources;
      state_.do_without(job_, sources);
      State::trigger(sources);  // nobody listens yet
    } else {
      ++job_->tries;
      state_.clear_alarm(*job_);
      if (spec.timeout > Duration{}) state_.set_alarm(job_, Clock::now() + as_clock(delay + spec.timeout));
    }
    return job_->stop.get_token();
  }

  bool is_late() override {
    const std::lock_guard lock(state_.mutex);
    return job_->is_late;
  }

 private:
  State& state_;
  const std::shared_ptr<Job> job_;
};

Watch::Watch(std::shared_ptr<const Site> site) : state_(std::make_shared<State>(std::move(site))) {
  state_->clock = std::jthread([state = state_.get()](const std::stop_token& end) { state->keep_time(end); });
}

Watch::~Watch() {
  state_->clock.request_stop();
  state_->clock.join();
}

std::optional<ModuleResult> Watch::run(ModuleOrder order, const std::function<void(ModuleResult)>& abandoned,
                                       const std::function<bool()>& is_wanted) {
  const std::shared_ptr<State> state = state_;
  const auto job = std::make_shared<Job>();
  job->order = std::move(order);
  job->abandoned = abandoned;
  {
    const std::lock_guard lock(state->mutex);
    state->running.push_front(job);
  }
  if (is_wanted && !is_wanted()) {
    const std::lock_guard lock(state->mutex);
    job->is_unwanted = true;
  }
  Supervision supervision(*state, job);
  ModuleResult result = execute(*state->site, job->order, supervision);
  const std::lock_guard lock(state->mutex);
  if (job->is_abandoned) return std::nullopt;
  state->clear_alarm(*job);
  state->running.remove(job);
  return result;
}

void Watch::stop(bool all) {
  std::vector<std::stop_source> sources;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stops = true;
    state_->stops_all |= all;
    for (const auto& job : state_->running) {
      if (all || !job->order.node->spec->always_run) state_->do_without(job, sources);
    }
  }
  State::trigger(sources);
}

void Watch::stop(const std::string& module, std::uint32_t attempt) {
  std::vector<std::stop_source> sources;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& job : state_->running) {
      if (job->order.node->id == module && job->order.attempt == attempt) state_->do_without(job, sources);
    }
  }
  State::trigger(sources);
}

}  // namespace baton::pipeline
