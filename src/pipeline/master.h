// One run, from the side of whoever decides. See run.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/cache_clerk.h"
#include "pipeline/crew.h"
#include "pipeline/fleet.h"
#include "pipeline/folder_blobs.h"
#include "pipeline/inbox.h"
#include "pipeline/own_results.h"
#include "pipeline/result_shelf.h"
#include "pipeline/role_guard.h"
#include "pipeline/run.h"
#include "pipeline/schedule.h"

namespace baton::pipeline {

class Master {
 public:
  Master(const Graph& graph, RunOptions options);
  ~Master();
  Master(const Master&) = delete;
  Master& operator=(const Master&) = delete;

  RunReport run();

 private:
  // From any thread: to be done by the one that decides.
  void post(std::function<void()> what) { inbox_->post(std::move(what)); }
  void take_in();
  void wait();
  void watch();

  Status open();
  Status open_at_coordinator();
  Status open_when_free(const RunOpening& opening);
  void heed_lease();
  Status check_places() const;
  void begin_listening();
  std::vector<WorkerTimes> times() const;
  void restore_own();
  void restore();
  struct Lost {
    bool value = false;
    std::set<std::string> artifacts;
  };
  Lost lost_of(const Restored& restored, bool& is_answered) const;
  std::optional<NodeIndex> asked_for_in_vain(const std::map<NodeIndex, Lost>& known) const;
  void make_again(NodeIndex node, std::map<NodeIndex, Lost>& known);
  void restore_failures();
  void heed_cancellation();
  void take_over();
  void skip_what_cannot_run_here();
  void dispatch();
  void dispatch_here();
  std::vector<ModuleAssignment> assign(std::size_t per_place);
  void hand_out_each(const std::vector<ModuleAssignment>& all);
  bool could_run_here(const Lane& lane) const;
  bool fits_here(const Lane& lane) const;
  bool is_anothers() const;
  bool has_place_here(const Lane& lane) const;
  bool have_time_who_are_preferred(const Lane& lane) const;
  bool waits_for_preferred(const Lane& lane);
  void forget_preferences();
  void begin_here(NodeIndex node);
  void keep_here(NodeIndex node);
  bool note_that_it_begins(NodeIndex node, ModuleStatus as);
  bool note_that_it_begins_here(NodeIndex node);
  bool looks_up(NodeIndex node);
  void looked_up(NodeIndex node, CacheAnswer answer);
  void keep_for_next_time(NodeIndex node);

  void ended_here(NodeIndex node, ModuleResult result, Duration took);
  void ended_there(const SerializedModuleResult& result);
  void hear(const Said& said);
  void show(const std::string& module, std::uint32_t attempt, const std::string& line);
  void hear_rest(NodeIndex node, const SerializedModuleResult& result);
  void fetch_log(SerializedModuleResult& result);
  void fetch_logs(const std::vector<SerializedModuleResult>& results);
  void finish(NodeIndex node, ModuleStatus status, const std::string& reason, const ModuleFailure& failure);
  void tell_what_ended();
  void tell(NodeIndex node);
  void stop(const std::string& reason, bool by_user);
  void cancel();
  RunReport refuse(const Error& error);
  void miss_coordinator();
  void note_what_is_ready();
  void watch_capabilities();
  void ask_for_a_worker_here();
  bool nobody_can_run(const Lane& lane) const;
  std::string what_lacks(NodeIndex node) const;
  void say_that_they_wait(const std::vector<NodeIndex>& nodes, const std::string& what);
  void give_up_what_lacks();
  void give_up(NodeIndex node, const ModuleFailure& failed);
  bool take_back(NodeIndex node, ModuleStatus status, const std::string& reason, const ModuleFailure& failed);
  bool withdraw(NodeIndex node, ModuleStatus status, const std::string& reason, const ModuleFailure& failed);
  bool may_be_taken_back(NodeIndex node, const Lane& there) const;
  void take_back_what_is_only_preferred();
  bool was_taken_back(const SerializedModuleResult& result) const;
  void withdraw_what_waits();
  ModuleFailure left_with_a_worker(NodeIndex node, const std::string& why) const;
  void give_up_what_is_silent();
  void give_up_what_needs_others();
  void watch_clock();
  void watch_queues();
  void lose_coordination(const Error& error);
  void saw_workers(std::vector<RegisteredWorker> workers);
  void saw_at_work(const std::string& worker, const std::string& module);
  void begun_there(NodeIndex node);
  void receive(const std::stop_token& end);
  void wait_aside(std::function<void()> what);
  void wait_for(const std::string& module);
  void poll_workers(const std::stop_token& end);
  void publish(NodeIndex node);
  RunReport close();

  Duration now() const;
  NodeIndex index_of(const GraphNode& node) const {
    return static_cast<NodeIndex>(&node - graph_.nodes().data());
  }

  const Graph& graph_;
  RunOptions options_;
  RunObserver nobody_;
  RunObserver& observer_;
  std::optional<RoleGuard> coordinator_;
  // Where nobody gave us a place for artifacts. Shared with modules that do not end.
  std::shared_ptr<TemporaryBlobs> own_blobs_;
  const std::int64_t began_;
  const std::string session_;
  RunReport report_;

  Schedule schedule_;
  ResultShelf results_;
  Fleet fleet_;
  std::size_t here_ = 0;      // modules that run here
  std::size_t here_cpu_ = 0;  // of them, those that keep a processor busy
  std::map<NodeIndex, Lane> there_;
  std::vector<std::string> enqueued_before_;            // by an earlier master of this run
  std::vector<SerializedModuleResult> own_before_;      // likewise, of what it ran itself
  std::map<std::string, std::size_t> noted_before_;     // likewise, that they begin: how often
  std::optional<CancellationSignal> cancelled_before_;  // likewise
  struct Heard {
    std::uint32_t attempt = 0;
    std::uint64_t lines = 0;
  };
  std::map<NodeIndex, Heard> heard_;           // of modules elsewhere
  std::map<Lane, Duration> preferring_since_;  // those for whom a preferred place was not free
  std::map<NodeIndex, Duration> lacking_;      // nobody can run them since then
  bool asked_for_a_worker_ = false;            // here, for what others left behind
  bool fleet_has_changed_ = false;             // since it was last said what they lack
  bool has_queue_timeouts_ = false;
  bool by_user_ = false;
  bool told_workers_to_stop_ = false;
  std::optional<Duration> give_up_at_;  // on workers that do not end what they have after a stop
  std::optional<Error> lost_;

  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();  // likewise
  Duration watched_at_;                                             // what only time brings
  Duration heard_at_;                                               // of the coordinator
  bool is_missed_ = false;

  std::unique_ptr<Crew> crew_;
  std::optional<CacheClerk> clerk_;
  std::stop_source closing_;
  std::vector<std::jthread> threads_;
  std::optional<OwnResults> own_results_;
  // One thread for each long log that is fetched; and for each module that is out, where there is no feed of
  // results.
  struct Waiting {
    std::atomic<bool> is_over = false;
    std::jthread thread;
  };
  bool has_feed_ = true;
  std::list<Waiting> waiting_;
};

}  // namespace baton::pipeline
