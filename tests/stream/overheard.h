// A coordinator with somebody in between, who counts, holds calls up and loses answers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "stream/work_coordinator.h"

namespace baton::stream {

class Overheard final : public WorkCoordinator {
 public:
  explicit Overheard(WorkCoordinator& to) : to_(to) {}

  std::atomic<int> waits = 0, turns = 0, renewals = 0;
  std::string host;  // of whoever made itself known last
  // The next answer that brings work gets lost on its way.
  void lose_next_work() { loses_ = true; }
  bool has_lost_work() const { return lost_; }
  // Turns of which this is true are refused. To be set before the first.
  std::function<bool(const WorkBatchRequest&)> refuses;
  // From the next turn on calls do not get through, until this is over.
  void hold_up() { set_held_up(true); }
  void let_through() { set_held_up(false); }
  // Nothing that was said before is under way any more.
  void wait_until_one_is_held_up() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_; });
  }

 private:
  void set_held_up(bool value) {
    const std::scoped_lock lock(mutex_);
    held_up_ = value;
    changed_.notify_all();
  }

  Result<WorkBatch> do_process_work_batch(const WorkBatchRequest& request, std::stop_token stop) override {
    {
      std::unique_lock lock(mutex_);
      waiting_ = held_up_;
      changed_.notify_all();
      changed_.wait(lock, stop, [&] { return !held_up_; });
      waiting_ = false;
    }
    ++turns;
    renewals += static_cast<int>(request.outbox_renewals.size() + request.inbox_renewals.size());
    if (refuses && refuses(request)) return failure(Errc::invalid_request, "this cannot be said");
    auto batch = to_.process_work_batch(request, stop);
    if (batch && !batch->work.empty() && loses_.exchange(false)) {
      lost_ = true;
      return failure(Errc::outcome_unknown, "the answer was lost");
    }
    return batch;
  }
  Result<Standing> do_heartbeat(const Instance& instance, Duration stale, std::stop_token stop) override {
    host = instance.host;
    return to_.heartbeat(instance, stale, stop);
  }
  Result<std::vector<Verdict>> do_store(InstanceId instance, Lane lane,
                                        const std::vector<NewMessage>& messages, std::int32_t partitions,
                                        std::stop_token stop) override {
    return to_.store(instance, lane, messages, partitions, stop);
  }
  Result<std::vector<Work>> do_claim(InstanceId instance, const ClaimRequest& request,
                                     std::stop_token stop) override {
    return to_.claim(instance, request, stop);
  }
  Result<std::vector<Verdict>> do_complete(InstanceId instance, Lane lane,
                                           const std::vector<Completion>& completions, WorkFlags flags,
                                           std::stop_token stop) override {
    return to_.complete(instance, lane, completions, flags, stop);
  }
  Result<std::vector<Verdict>> do_fail(InstanceId instance, Lane lane, const std::vector<Failure>& failures,
                                       std::stop_token stop) override {
    return to_.fail(instance, lane, failures, stop);
  }
  Result<std::vector<Verdict>> do_renew(InstanceId instance, Lane lane, const std::vector<Held>& held,
                                        Duration lease, std::stop_token stop) override {
    return to_.renew(instance, lane, held, lease, stop);
  }
  Result<std::vector<Verdict>> do_release(InstanceId instance, Lane lane, const std::vector<Held>& held,
                                          std::stop_token stop) override {
    return to_.release(instance, lane, held, stop);
  }
  Result<std::vector<Work>> do_resume(InstanceId instance, std::stop_token stop) override {
    return to_.resume(instance, stop);
  }
  Result<bool> do_wait_for_work(Duration at_most, std::stop_token stop) override {
    ++waits;
    return to_.wait_for_work(at_most, stop);
  }
  Status do_leave(InstanceId instance, std::stop_token stop) override { return to_.leave(instance, stop); }

  WorkCoordinator& to_;
  std::atomic<bool> loses_ = false, lost_ = false;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool held_up_ = false;
  bool waiting_ = false;
};

}  // namespace baton::stream
