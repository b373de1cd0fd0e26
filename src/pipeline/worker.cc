#include "pipeline/worker.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/pause.h"
#include "base/random_name.h"
#include "pipeline/log_book.h"
#include "pipeline/packing.h"
#include "pipeline/persistently.h"
#include "pipeline/processors.h"
#include "pipeline/pulse.h"
#include "pipeline/reservation.h"
#include "pipeline/role_guard.h"
#include "pipeline/watch.h"
#include "pipeline/words.h"
#include "pipeline/worker_site.h"

namespace baton::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

Duration since(Clock::time_point then) {
  return {std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - then).count()};
}

constexpr Duration kSpoken = milliseconds(300);  // how often the master is told what modules say
constexpr std::size_t kSpokenBytes = 16 << 10;   // at a time; the rest follows, at the latest with the result

class WorkerShift {
 public:
  WorkerShift(const Graph& graph, DistributedCoordinator& coordinator, WorkerOptions options)
      : graph_(graph),
        coordinator_(coordinator, Role::worker),
        near_(near_blobs(options.site, coordinator)),
        options_(completed(std::move(options), near_, book_)),
        self_{.index = options_.index,
              .session = random_name(),
              .name = options_.site.name,
              .capabilities = options_.is_reserved ? canonical(options_.site.capabilities)
                                                   : with_unreserved(options_.site.capabilities),
              .slots = options_.slots,
              .processors = options_.processors,
              .fingerprint = graph.fingerprint(),
              .parts = graph.parts()},
        watch_(lasting(options_.site, near_)) {}

  WorkerReport run(const std::stop_token& stop) {
    const std::stop_callback on_stop(stop, [this] { end(WorkerEnd::stopped, "stopped"); });
    if (!report_for_duty()) return report();
    pulse_.start(self_);
    std::jthread voice([this] { speak(); });
    for (std::uint32_t slot = 0; slot < options_.slots; ++slot) hire();
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return slots_ == 0; });
    }
    over_.request_stop();
    voice.join();
    pulse_.stop();
    return report();
  }

 private:
  // The first reason stands.
  void end(WorkerEnd how, const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      if (is_ending_) return;
      is_ending_ = true;
      report_.end = how;
      report_.reason = why;
    }
    ending_.request_stop();
    watch_.stop(true);  // also if the run is over: nobody waits for what has not ended by then
  }

  WorkerReport report() {
    const std::lock_guard lock(mutex_);
    return report_;
  }

  void notice(const std::string& text) const {
    if (options_.notice) options_.notice(text);
  }

  template <class Call>
  auto persistently(Call call, Duration at_most, const std::stop_token& stop) -> decltype(call()) {
    return pipeline::persistently(call, at_most, stop, [this](const Error& error) {
      notice("the coordinator does not answer: " + error.message + "; trying again");
    });
  }

  bool report_for_duty() {
    if (const auto checked = check_reserved(self_.capabilities); options_.is_reserved && !checked)
      return end(WorkerEnd::refused, checked.error().message), false;
    constexpr std::int32_t kIndexMax = 10'000;
    const bool may_choose = options_.index == 0;
    if (may_choose) self_.index = 1;
    for (;;) {
      const auto done =
          persistently([this] { return coordinator_.register_worker(self_, ending_.get_token()); },
                       options_.unreachable_max, ending_.get_token());
      if (done) return true;
      const bool is_taken = done.error().code == Errc::locked;
      if (is_taken && may_choose && ++self_.index <= kIndexMax) continue;
      end(is_transient(done.error().code) ? WorkerEnd::coordination_lost : WorkerEnd::refused,
          done.error().message);
      return false;
    }
  }

  void hire(std::function<void()> first = {}) {
    {
      const std::lock_guard lock(mutex_);
      ++slots_;
    }
    std::thread([this, first = std::move(first)] {
      if (first) first();
      if (work()) leave();
    }).detach();
  }

  void leave() {
    const std::lock_guard lock(mutex_);
    --slots_;
    changed_.notify_all();
  }

  // False: this thread was left alone with a module that did not end.
  bool work() {
    while (!ending_.stop_requested()) {
      auto dequeued = persistently([this] { return coordinator_.dequeue_module(self_, ending_.get_token()); },
                                   options_.unreachable_max, ending_.get_token());
      if (!dequeued) {
        if (!ending_.stop_requested())
          end(is_transient(dequeued.error().code) ? WorkerEnd::coordination_lost : WorkerEnd::refused,
              dequeued.error().message);
        break;
      }
      if (const auto* closed = std::get_if<Closed>(&*dequeued)) end(WorkerEnd::closed, closed->reason);
      if (auto* assigned = std::get_if<Assigned>(&*dequeued)) {
        if (!take_on(std::move(*assigned))) return false;
      } else if (std::holds_alternative<Empty>(*dequeued)) {
        pause(milliseconds(50), ending_.get_token());
      }
    }
    return true;
  }

  bool take_on(Assigned assigned) {
    const std::string module = assigned.assignment.module;
    if (!pulse_.keep(assigned)) {
      notice(module + " is not begun: that it is ours was heard only when its lease had ended");
      return true;
    }
    // Whoever had it before is lost: what was said since then we may not have heard yet.
    if (assigned.attempt > 1) {
      const auto signal = coordinator_.is_cancellation_requested(ending_.get_token());
      if (signal && *signal) cancel((*signal)->reason);
    }
    {
      const std::lock_guard lock(mutex_);
      if (is_cancelled_ && !assigned.assignment.always_run) watch_.stop();
    }
    SerializedModuleResult result{
        .module = module, .attempt = assigned.attempt, .lease = assigned.lease, .worker_index = self_.index};
    const NodeIndex* node = graph_.find(module);
    ModuleOrder order{.node = node ? &graph_[*node] : nullptr,
                      .artifacts = assigned.assignment.artifacts,
                      .attempt = assigned.attempt,
                      .is_carried = true};
    std::optional<ModuleFailure> trouble;
    if (!node)
      trouble =
          ModuleFailure{.kind = FailureKind::unknown_module,
                        .message = "worker " + std::to_string(self_.index) + " does not know " + module};
    else
      trouble = unpack(graph_, assigned.assignment, order);
    if (trouble) {
      result.status = ModuleStatus::failed;
      result.failure = std::move(trouble);
      publish(std::move(result));
      return true;
    }
    const ModuleSpec& spec = *order.node->spec;
    const bool is_busy = spec.hint == Hint::cpu;
    if (is_busy && !processors_.take(ending_.get_token(), spec.queue_timeout)) {
      result.failure =
          ModuleFailure{.kind = FailureKind::timeout,
                        .message = "it has waited for longer than " + in_words(spec.queue_timeout) +
                                   " for a processor of worker " + std::to_string(self_.index)};
      result.status = status_of_failure(*order.node, *result.failure);
      publish(std::move(result));
      return true;
    }
    const auto began = Clock::now();
    // By value: this thread may have gone by then, or be lost for good. Another takes its place, and has to
    // begin with what this one leaves.
    const auto replace = [this, result, began, is_busy](const ModuleResult& instead) {
      if (is_busy) processors_.give_back();
      hire([this, given_up = packed(result, instead, since(began))] { publish(given_up); });
      leave();
    };
    // It may have waited for a processor for longer than its lease lasted.
    auto ended = watch_.run(std::move(order), replace, [&] { return pulse_.has(result.lease); });
    if (!ended) return false;
    if (is_busy) processors_.give_back();
    publish(packed(std::move(result), *ended, since(began)));
    return true;
  }

  // For whoever watches. What does not get through comes with the result.
  void speak() {
    while (!pause(kSpoken, over_.get_token())) {
      if (const auto said = book_->take(kSpokenBytes); !said.empty())
        (void)coordinator_.say(said, over_.get_token());
    }
  }

  void publish(SerializedModuleResult result) {
    attach_log(result, book_->close(result.module, result.attempt), options_.site.blobs);
    publish_as_it_is(std::move(result));
  }

  void publish_as_it_is(SerializedModuleResult result) {
    if (result.status == ModuleStatus::cancelled && !was_cancelled()) return let_go(result);
    const auto accepted = persistently([&] { return coordinator_.publish_result(result, {}); },
                                       options_.publish_max, over_.get_token());
    if (!accepted && accepted.error().code == Errc::too_large && !result.value.empty()) {
      // Without this nobody would hear of it, and the module would be run again for nothing.
      result.failure = ModuleFailure{.kind = FailureKind::encode,
                                     .message = "its result of " + std::to_string(result.value.size()) +
                                                " bytes is too large: " + accepted.error().message +
                                                "; with --blobs there is a place for it"};
      result.status = ModuleStatus::failed;
      result.value.clear();
      return publish_as_it_is(std::move(result));
    }
    pulse_.let_go(result.lease);
    const std::lock_guard lock(mutex_);
    if (!accepted) {
      notice("the result of " + result.module + " could not be published: " + accepted.error().message);
    } else if (*accepted == Accepted::stale) {
      ++report_.stale;
      notice("the result of " + result.module + " came too late: its lease had ended");
    } else {
      ++report_.modules;
    }
  }

  bool was_cancelled() {
    const std::lock_guard lock(mutex_);
    return is_cancelled_;
  }
  // It was stopped because of us, and not of the run: when its lease has ended, somebody else takes it.
  void let_go(const SerializedModuleResult& result) {
    pulse_.let_go(result.lease);
    const bool is_over = report().end == WorkerEnd::closed && ending_.stop_requested();
    notice(result.module + " was stopped here" +
           (is_over ? ": the run is over" : "; another worker takes it when its lease has ended"));
  }

  void stop_lost(const Pulse::Begun& one) {
    notice("the lease of " + one.module + " was lost; it is stopped");
    watch_.stop(one.module, one.attempt);
  }

  void cancel(const std::string& reason) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(is_cancelled_, true)) return;
    }
    notice("the run is cancelled: " + reason);
    watch_.stop();
  }

  const Graph& graph_;
  RoleGuard coordinator_;
  // Shared with modules that do not end: they may still say something when we are gone.
  const std::shared_ptr<LogBook> book_ = std::make_shared<LogBook>();
  const std::shared_ptr<NearBlobs> near_;  // likewise
  const WorkerOptions options_;
  WorkerRegistration self_;  // does not change once it is registered
  std::mutex mutex_;
  std::condition_variable changed_;
  WorkerReport report_;
  bool is_ending_ = false;
  bool is_cancelled_ = false;
  std::size_t slots_ = 0;    // threads that take modules
  std::stop_source ending_;  // nothing more is taken
  std::stop_source over_;    // and everything has ended
  Watch watch_;
  Processors processors_{options_.processors};
  Pulse pulse_{coordinator_,
               options_,
               {.cancelled = [this](const std::string& reason) { cancel(reason); },
                .lost = [this](const Pulse::Begun& one) { stop_lost(one); },
                .ended = [this](WorkerEnd how, const std::string& why) { end(how, why); }}};
};

}  // namespace

int exit_code(WorkerEnd end) {
  switch (end) {
    case WorkerEnd::closed: return 0;
    case WorkerEnd::stopped: return 3;
    case WorkerEnd::refused: return 2;
    case WorkerEnd::master_lost:
    case WorkerEnd::coordination_lost: return 4;
  }
  return 5;
}

WorkerReport run_worker(const Graph& graph, DistributedCoordinator& coordinator, WorkerOptions options,
                        std::stop_token stop) {
  return WorkerShift(graph, coordinator, std::move(options)).run(stop);
}

}  // namespace baton::pipeline
