// A worker at work: its threads, what they share, and what they may do to it. Three kinds of thread: the
// fetcher takes tasks for slots that have none, each slot runs handlers and asks for the next task along with
// its completion (both in worker.cc), and the keeper extends the leases of all of them (lease_keeper.cc).
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "client/worker.h"

namespace baton::client {

inline bool is_loss(Errc code) {
  return code == Errc::lease_lost || code == Errc::lease_unknown || code == Errc::not_found;
}

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
  bool may_begin(Place place);  // it is still ours; then it counts as begun
  Result<std::string> handle(const Job& job, std::stop_token stop);
  std::optional<Leased> complete(Place place, const std::string& result);
  void fail(Place place, const Failure& failed);
  Result<Verdict> insist(Place place, const std::function<Result<Verdict>()>& say);
  void settle(const Held& held, const Result<Verdict>& verdict, std::uint64_t WorkerCounts::* count);
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
  std::deque<Held> early_losses_;  // the news was here before the task was in a slot's hands; the last few
  WorkerCounts counts_;
  std::uint64_t given_ = 0;  // tasks to slots, of tasks_max
  bool drains_ = false;
  std::stop_source fetching_;  // waits for tasks
  bool ends_ = false;          // nothing runs any more

  std::uint64_t listener_ = 0;
  std::mutex calling_back_;  // held while an answer is dealt with that nobody waits for
  bool is_deaf_ = false;     // drained: such answers are dropped
  std::mutex draining_;      // by whoever joins the threads
  std::thread fetcher_;
  std::thread keeper_;
  std::vector<std::thread> slots_;
};

}  // namespace baton::client
