#include "tests/pipeline/broken_coordinator.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "pipeline/memory_coordinator.h"

namespace baton::pipeline {
namespace {

constexpr std::pair<std::string_view, Fault> kFaults[] = {
    {"WakesWhoeverWaits", Fault::wakes_nobody},
    {"CarriesAllOfAnAssignment", Fault::forgets_dependencies},
    {"HandsEachToOne", Fault::hands_out_twice},
    {"KeepsTheirOrder", Fault::newest_first},
    {"HandsOutTheUrgentFirst", Fault::ignores_priority},
    {"HeedsCapabilities", Fault::ignores_capabilities},
    {"TellsNothingFromClosed", Fault::closed_is_empty},
    {"ReturnsResults", Fault::forgets_early_results},
    {"LetsWaitersGo", Fault::stops_all_waiters},
    {"AcceptsAResultOnce", Fault::accepts_anything},
    {"LeasesAgainWhatWasLost", Fault::never_expires},
    {"IsNotMisledByAResultOfNobody", Fault::keeps_results_of_nobody},
    {"RefusesALateResult", Fault::accepts_late_results},
    {"KeepsLeasesAlive", Fault::ignores_heartbeats},
    {"TellsOfLostLeases", Fault::tells_of_no_lost_lease},
    {"GivesUpAfterTheLastAttempt", Fault::one_attempt_too_many},
    {"ListsWorkers", Fault::lists_nobody},
    {"RefusesASecondWorkerWithOneIndex", Fault::admits_a_second_worker},
    {"RefusesAnotherPipeline", Fault::admits_any_pipeline},
    {"HasOneMaster", Fault::admits_a_second_master},
    {"HasOneMasterOfManyThatComeAtOnce", Fault::looks_before_it_admits},
    {"HeedsOneMasterAlone", Fault::heeds_a_former_master},
    {"RefusesARunThatIsOver", Fault::opens_what_is_over},
    {"TellsHowLongLeasesLast", Fault::tells_another_lease},
    {"GoesOnAfterARestartOfTheMaster", Fault::forgets_at_a_restart},
    {"HandsOverToTheNextMaster", Fault::hands_nothing_over},
    {"BroadcastsCancellation", Fault::last_reason_stands},
    {"TakesTheMastersOwnResults", Fault::drops_own_results},
    {"LetsTheMasterWithdraw", Fault::hands_out_what_was_withdrawn},
    {"FeedsEachResultOnce", Fault::feeds_twice},
    {"WaitsWithoutWork", Fault::spins},
};

// What the parties to a broken run share, besides the run.
struct Scene {
  explicit Scene(Fault which) : fault(which) {}

  const Fault fault;
  std::atomic<std::int64_t> now_ms = 1;
  MemoryExchange exchange{{.now = [this] { return Instant{now_ms}; }}};
  std::mutex mutex;
  std::vector<ModuleAssignment> enqueued;
  std::optional<Assigned> last;
  std::map<std::string, SerializedModuleResult> results;
  std::optional<CancellationSignal> signal;
  std::stop_source waiters;
  int feeds = 0;
  int lookers = 0;
  bool has_master = false;
  std::condition_variable looked;
};

// In order, and one fault at a time. What it does not break it leaves to the one in memory.
class BrokenCoordinator : public MemoryCoordinator {
 public:
  explicit BrokenCoordinator(Scene& scene) : MemoryCoordinator(scene.exchange), scene_(scene) {}

  Status open_run(const RunOpening& opening, std::stop_token stop) override {
    RunOpening changed = opening;
    if (is(Fault::admits_a_second_master)) changed.session = "anybody";
    if (is(Fault::looks_before_it_admits)) {
      std::unique_lock lock(scene_.mutex);
      if (scene_.has_master) return failure(Errc::locked, "there is one");
      ++scene_.lookers;
      scene_.looked.notify_all();
      scene_.looked.wait_for(lock, std::chrono::seconds(5), [&] { return scene_.lookers > 1; });
      scene_.has_master = true;
      return {};
    }
    auto opened = MemoryCoordinator::open_run(changed, stop);
    return is(Fault::opens_what_is_over) ? Status{} : opened;
  }
  Result<RunOpening> run_opening(std::stop_token stop) override {
    auto told = MemoryCoordinator::run_opening(stop);
    if (is(Fault::tells_another_lease) && told) told->lease = milliseconds(1);
    return told;
  }

  Result<std::vector<std::string>> enqueued_modules(std::stop_token stop) override {
    if (is(Fault::hands_nothing_over)) return std::vector<std::string>();
    return MemoryCoordinator::enqueued_modules(stop);
  }
  Status enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) override {
    return enqueue_modules({assignment}, stop);
  }
  Status enqueue_modules(const std::vector<ModuleAssignment>& assignments, std::stop_token stop) override {
    std::vector<ModuleAssignment> changed = assignments;
    for (ModuleAssignment& one : changed) {
      if (is(Fault::wakes_nobody)) return {};
      if (is(Fault::forgets_dependencies)) one.dependencies.clear();
      if (is(Fault::newest_first)) one.priority = priority_++;
      if (is(Fault::ignores_priority)) one.priority = 0;
      if (is(Fault::ignores_capabilities)) one.required_capabilities.clear();
      if (is(Fault::one_attempt_too_many)) ++one.attempts_max;
      if (is(Fault::forgets_at_a_restart)) one.module += std::to_string(++scene_.feeds);
    }
    return MemoryCoordinator::enqueue_modules(changed, stop);
  }

  Result<Dequeued> dequeue_module(const WorkerRegistration& worker, std::stop_token stop) override {
    WorkerRegistration changed = worker;
    if (is(Fault::admits_any_pipeline)) changed.fingerprint = 7;
    if (is(Fault::spins)) {
      while (!stop.stop_requested()) {
      }
    }
    auto answer = MemoryCoordinator::dequeue_module(changed, stop);
    if (!answer) return answer;
    if (is(Fault::closed_is_empty) && std::holds_alternative<Closed>(*answer)) return Empty{};
    auto* assigned = std::get_if<Assigned>(&*answer);
    if (!assigned) return answer;
    const std::lock_guard lock(scene_.mutex);
    if (is(Fault::hands_out_twice) && scene_.last) return Assigned(*std::exchange(scene_.last, *assigned));
    scene_.last = *assigned;
    if (is(Fault::never_expires)) assigned->attempt = 1;
    return answer;
  }

  Result<Accepted> publish_result(const SerializedModuleResult& result, std::stop_token stop) override {
    if (is(Fault::drops_own_results) && result.lease.empty()) return Accepted::stale;
    if (is(Fault::hands_out_what_was_withdrawn) && result.module == "waits") return acknowledged(result);
    SerializedModuleResult changed = result;
    if (is(Fault::keeps_results_of_nobody)) changed.lease.clear();
    auto accepted = MemoryCoordinator::publish_result(changed, stop);
    if (is(Fault::accepts_anything) || is(Fault::accepts_late_results)) return Accepted::first;
    return accepted;
  }

  Result<SerializedModuleResult> wait_for_result(const std::string& module, std::stop_token stop) override {
    if (is(Fault::forgets_early_results)) return failure(Errc::not_found, "it came before you did");
    if (!is(Fault::stops_all_waiters)) return MemoryCoordinator::wait_for_result(module, stop);
    const std::stop_callback together(stop, [this] { scene_.waiters.request_stop(); });
    auto result = MemoryCoordinator::wait_for_result(module, scene_.waiters.get_token());
    // Whoever comes, or wakes, after the others were stopped hears so too, whatever there is by then.
    if (scene_.waiters.stop_requested()) return failure(Errc::closed, "all were stopped");
    return result;
  }

  Result<std::vector<SerializedModuleResult>> next_results(std::stop_token stop) override {
    auto results = MemoryCoordinator::next_results(stop);
    if (is(Fault::feeds_twice) && results) results->push_back(results->front());
    return results;
  }

  Result<std::vector<RegisteredWorker>> get_registered_workers(std::stop_token stop) override {
    if (is(Fault::lists_nobody)) return std::vector<RegisteredWorker>();
    return MemoryCoordinator::get_registered_workers(stop);
  }

  Status broadcast_cancellation(const std::string& reason, std::stop_token stop) override {
    scene_.signal = CancellationSignal{reason};
    return MemoryCoordinator::broadcast_cancellation(reason, stop);
  }
  Result<std::optional<CancellationSignal>> is_cancellation_requested(std::stop_token stop) override {
    if (is(Fault::last_reason_stands)) return scene_.signal;
    return MemoryCoordinator::is_cancellation_requested(stop);
  }

  Status close_run(const std::string& reason, std::stop_token stop) override {
    // As if anybody had said so.
    if (is(Fault::heeds_a_former_master)) return MemoryCoordinator(scene_.exchange).close_run(reason, stop);
    return MemoryCoordinator::close_run(reason, stop);
  }

  Status register_worker(const WorkerRegistration& registration, std::stop_token stop) override {
    WorkerRegistration changed = registration;
    if (is(Fault::admits_a_second_worker)) changed.session = "anybody";
    if (is(Fault::admits_any_pipeline)) changed.fingerprint = 7;
    return MemoryCoordinator::register_worker(changed, stop);
  }

  Result<HeartbeatReply> send_heartbeat(const WorkerHeartbeat& heartbeat, std::stop_token stop) override {
    WorkerHeartbeat changed = heartbeat;
    if (is(Fault::ignores_heartbeats)) changed.leases.clear();
    if (is(Fault::admits_a_second_worker)) changed.session = "anybody";
    auto reply = MemoryCoordinator::send_heartbeat(changed, stop);
    if (is(Fault::tells_of_no_lost_lease) && reply) reply->lost.clear();
    return reply;
  }

 private:
  bool is(Fault fault) const { return scene_.fault == fault; }
  // And that is all that is done.
  Accepted acknowledged(const SerializedModuleResult& result) {
    const std::lock_guard lock(scene_.mutex);
    return scene_.results.emplace(result.module, result).second ? Accepted::first : Accepted::duplicate;
  }

  Scene& scene_;
  std::uint32_t priority_ = 0;
};

class BrokenSubject : public contract::Subject {
 public:
  explicit BrokenSubject(Fault fault) : scene_(fault) {}
  std::unique_ptr<DistributedCoordinator> connect() override {
    return std::make_unique<BrokenCoordinator>(scene_);
  }
  Duration lease() const override { return kLostAfter; }
  Duration patience() const override { return milliseconds(300); }
  void let_pass(Duration time) override {
    if (scene_.fault != Fault::never_expires) scene_.now_ms += time.ms;
    scene_.exchange.time_has_passed();
  }

 private:
  Scene scene_;
};

}  // namespace

std::optional<Fault> fault_against(std::string_view check) {
  for (const auto& [name, fault] : kFaults) {
    if (name == check) return fault;
  }
  return std::nullopt;
}

std::unique_ptr<contract::Subject> broken_subject(Fault fault) {
  return std::make_unique<BrokenSubject>(fault);
}

}  // namespace baton::pipeline
