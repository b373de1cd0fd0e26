// A worker's heartbeats: that it is there, and which leases it wants to keep. What it hears in return is for
// whoever runs the worker.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "pipeline/coordinator.h"
#include "pipeline/worker.h"

namespace baton::pipeline {

// Errors that may pass by themselves.
bool is_transient(Errc code);

class Pulse {
 public:
  struct Begun {
    std::string module;
    std::uint32_t attempt = 1;
  };
  // Called on threads of ours.
  struct Listener {
    std::function<void(const std::string& reason)> cancelled;
    std::function<void(const Begun&)> lost;
    std::function<void(WorkerEnd how, const std::string& why)> ended;
  };

  Pulse(DistributedCoordinator& coordinator, const WorkerOptions& options, Listener listener)
      : coordinator_(coordinator), options_(options), listener_(std::move(listener)) {}
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  // Leases last as long as the run's opening says; it may be that the master comes later than its workers.
  void start(const WorkerRegistration& self);
  // The last one says that the worker leaves.
  void stop();

  // False: its time is over already, counted from when it was asked for; another may have it. Else the next
  // heartbeat comes soon: until then nobody knows that it is here.
  bool keep(const Assigned& assigned);
  // Whether it is still ours. If not, whoever listens is told so sooner or later.
  bool has(const std::string& lease);
  void let_go(const std::string& lease);

 private:
  struct Kept {
    Begun begun;
    std::int64_t until_ms = 0;  // by our clock; another may have it then
    bool is_lost = false;
  };

  void beat(const std::stop_token& end);
  bool send(const std::stop_token& end);
  void learn_lease(const std::stop_token& end);
  Duration lease();
  Duration heartbeat();
  // True: it is over. Shorter if the lease becomes known meanwhile.
  bool rest(Duration time, const std::stop_token& end, bool until_news = false);
  bool has_news();
  void guard(const std::stop_token& end);
  void lose(const std::string& lease);

  DistributedCoordinator& coordinator_;
  const WorkerOptions& options_;
  const Listener listener_;
  std::int32_t index_ = 0;
  std::string session_;
  std::int64_t heard_at_ms_ = 0;  // of the coordinator, by the thread that beats
  std::mutex mutex_;
  Duration lease_ = options_.lease;
  bool is_lease_known_ = false;
  bool has_news_ = false;  // something was taken on since the last heartbeat
  std::condition_variable_any learned_;
  // By lease: one that was silent for too long may be given the same module again while it still has it.
  std::map<std::string, Kept> held_;
  std::jthread thread_;
  std::jthread guard_;  // for the other may wait for an answer
};

}  // namespace baton::pipeline
