// A run in memory: what the operations of a coordinator have in common there. Whoever uses it holds the
// mutex.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "pipeline/folder_blobs.h"
#include "pipeline/memory_coordinator.h"

namespace baton::pipeline {

struct Rank {
  std::uint32_t priority;
  std::uint64_t number;  // in the order of enqueueing
  std::string module;
  friend bool operator<(const Rank& a, const Rank& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.number < b.number;
  }
};

enum class Phase : std::uint8_t { waiting, leased, done };

struct Entry {
  ModuleAssignment assignment;
  std::uint64_t number = 0;
  Phase phase = Phase::waiting;
  std::uint32_t attempt = 0;
  std::string lease;
  std::int32_t worker = 0;
  Instant expires;
  SerializedModuleResult result;
};

struct Registered {
  WorkerRegistration registration;
  Instant heard_of;
  bool was_active = false;
  bool has_left = false;
  std::vector<std::string> current_modules;
};

// Somebody who waits for work; woken alone, so that one assignment does not wake them all.
struct Waiter {
  const std::vector<std::string>* capabilities;
  std::condition_variable_any wake;
  bool is_called = false;
};

struct MemoryRun {
  explicit MemoryRun(MemoryExchangeOptions given) : options(std::move(given)) {}

  const MemoryExchangeOptions options;
  std::mutex mutex;
  std::condition_variable_any results_changed;
  TemporaryBlobs blobs;
  std::vector<Said> said;
  std::map<std::string, Entry> entries;
  std::map<std::vector<std::string>, std::set<Rank>> waiting;  // by the capabilities they need
  std::multimap<Instant, std::string> expiries;                // of leases, by module
  std::list<Waiter*> waiters;
  std::map<std::int32_t, Registered> workers;
  std::vector<SerializedModuleResult> untold;  // to next_results
  std::optional<RunOpening> master;
  Instant master_heard_of;
  std::optional<CancellationSignal> cancelled;
  std::optional<Closed> closed;
  std::uint64_t numbers = 0;

  Instant now() const;
  void put(const std::string& module, Entry& entry);
  void withdraw(const std::string& module, const Entry& entry);
  void call_somebody();  // for one thing that waits, if there is any
  void unlease(const std::string& module, Entry& entry);
  void settle(Entry& entry, const SerializedModuleResult& result, bool tell);
  // What time has brought about comes first.
  void expire();
  static SerializedModuleResult lost(const Entry& entry);
  std::optional<Assigned> take(const WorkerRegistration& worker);
  Status admit(const WorkerRegistration& worker) const;
  bool is_alive(const Registered& worker) const;
  // Until something is said to have changed, or the next lease may have ended.
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable_any& changed,
            const std::stop_token& stop);
};

}  // namespace baton::pipeline
