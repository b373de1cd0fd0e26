// A run at a baton server, as the tasks that server_coordinator.h tells of: what the operations of a
// coordinator have in common there.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "pipeline/coordinator.h"
#include "pipeline/question.h"
#include "pipeline/steady_time.h"

namespace baton::pipeline {

inline constexpr Duration kServerWait = seconds(20);  // of one question that waits; then it is asked again
inline constexpr std::uint32_t kManyAttempts = 1'000'000;
inline constexpr std::string_view kRegistered = "registered-";
inline constexpr std::string_view kActive = "active-";

// Shared with calls whose caller no longer waits.
class ServerRun : public std::enable_shared_from_this<ServerRun> {
 public:
  ServerRun(const client::ClientOptions& options, std::string id, Duration ttl);
  ServerRun(const ServerRun&) = delete;
  ServerRun& operator=(const ServerRun&) = delete;

  std::string assignments() const { return "pipeline:" + run; }
  std::string own_results() const { return "pipeline:" + run + ":own"; }
  std::string workers() const { return "pipeline:" + run + ":workers"; }
  std::string said() const { return "pipeline:" + run + ":said"; }
  std::string signals() const { return "pipeline:" + run + ":signals"; }
  std::string key_of(const std::string& module) const;
  std::string cancel_key() const { return run + "!cancel"; }
  static std::string named(const std::string& key) { return "key:" + key; }

  template <class T, class Ask>
  Result<T> ask(const std::stop_token& stop, Ask ask) {
    if (stop.stop_requested()) return failure(Errc::closed, "stopped");
    Question<T> question;
    ask(question.answer());
    return question.wait(stop);
  }
  Result<client::Submitted> submit(const client::Submit& request, const std::stop_token& stop) {
    return ask<client::Submitted>(stop, [&](auto answer) { client->submit(request, std::move(answer)); });
  }
  Result<client::Task> get(const std::string& key, const std::stop_token& stop) {
    return ask<client::Task>(stop, [&](auto answer) { client->get(named(key), std::move(answer)); });
  }

  // The run as a task; the master's fingerprint is in its payload. NOT_FOUND: it has not begun, or it is over
  // and forgotten.
  Result<client::Task> run_task(const std::stop_token& stop);
  // CONFLICT: the worker's graph is not the master's.
  Status admit(const WorkerRegistration& worker, const std::stop_token& stop);
  // Waits for the end of one assignment, and again if that takes long; the result goes to the feed.
  void follow(const std::string& module);
  // Ends the task of an assignment that nobody has, with this as what became of it. One of the master's own
  // results stands as it is.
  Result<Accepted> withdraw(const SerializedModuleResult& result, const std::stop_token& stop);
  // Tasks that nobody waits for any more. Asked for together: with a server that is gone by then, each would
  // be waited for as long as all of them.
  Status cancel_all(const std::string& queue, const std::string& state, const std::stop_token& stop);
  // The run is over: the server may forget them.
  void let_go_of_own_results(const std::stop_token& stop);
  static Result<SerializedModuleResult> result_of(const client::Task& task, const std::string& module);
  Result<std::vector<client::TaskView>> list(const std::string& queue, const std::string& state,
                                             const std::stop_token& stop);
  // Whose assignment a task is. Empty: of no module, for somebody else put it there.
  Result<std::string> module_of(const client::TaskView& view, const std::stop_token& stop);
  // Those that there are, with whoever has fallen silent or left and was not replaced; whose task nobody
  // holds has fallen silent if it is so for longer than `patience`.
  Result<std::vector<RegisteredWorker>> registered(Duration patience, const std::stop_token& stop);
  // Whether somebody else has this index.
  Result<bool> is_taken(std::int32_t index, const std::string& session, const std::stop_token& stop);
  // Being there is holding the lease of one's own task.
  Status be_there(const std::string& session, std::string_view as, const std::stop_token& stop);
  Status hold(client::Held& held, const client::Lease& request, const std::stop_token& stop);
  // That this is still the master, if it ever was. CONFLICT: another has taken over. WRONG_STATE: the run was
  // ended by hand.
  Status stay_master(const std::stop_token& stop);
  bool is_due();  // that
  // How long the master has been missed, by what was last seen of the run.
  Duration master_silence(bool is_missed);

  // The master's, whatever ours would be; of a run that was begun before, the first master's.
  Duration lease() const { return {lease_ms_.load()}; }
  void heed(const RunOpening& opening) {
    if (opening.lease) lease_ms_ = opening.lease->ms;
  }

  const std::string run;
  std::optional<client::Client> client;
  std::mutex mutex;  // guards what follows, but for what one thread alone uses
  std::condition_variable_any changed;
  // The master's.
  std::mutex run_mutex;  // guards the next three, while the server is asked too
  bool is_master = false;
  client::Held run_held;
  std::int64_t extended_at = 0;
  std::vector<SerializedModuleResult> arrived;
  std::optional<Error> feed_failed;
  // A worker's.
  client::Held presence;
  bool is_active = false;
  std::map<std::string, SerializedModuleResult> published;  // by lease
  std::optional<Closed> closed;

 private:
  Status compare(const WorkerRegistration& worker) const;
  Result<WorkerRegistration> registration_of(const client::TaskView& view, const std::stop_token& stop);
  bool is_changing(const client::TaskView& view, bool is_recent, Duration patience);

  std::atomic<std::int64_t> lease_ms_;
  std::map<std::string, WorkerRegistration> registrations_;  // by task; they never change
  std::map<std::string, std::string> long_names_;            // of modules, likewise
  std::map<std::string, std::int64_t> held_by_nobody_;       // tasks of workers: when that was first seen
  std::optional<RunOpening> master_;
  std::int64_t master_missed_at_ = 0;
};

}  // namespace baton::pipeline
