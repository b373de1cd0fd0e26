// A run in a folder, as the files that directory_coordinator.h tells of: what the operations of a coordinator
// have in common there.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/random_name.h"
#include "pipeline/directory_coordinator.h"
#include "pipeline/shared_files.h"

namespace baton::pipeline {

// The name of an assignment that waits, so that names in order are assignments in order.
struct EntryName {
  std::string place;  // P-NUMBER
  std::uint32_t attempt = 1;
  std::string module;  // as a file name

  std::string text() const;
};
EntryName entry_name(const ModuleAssignment& assignment, std::uint64_t number);
// Of an entry, or of a lease: the same with a name behind it. Nothing: the file is not one of ours, as those
// that network file systems leave behind.
std::optional<EntryName> parsed(const std::string& name);

// Before the name of a module whose result is the master's own.
inline constexpr std::string_view kOwn = "own-";

// What is kept of a worker.
struct Presence {
  WorkerRegistration registration;
  bool was_active = false;
  bool has_left = false;
  std::vector<std::string> current_modules;
};
BATON_FIELDS(Presence, registration, was_active, has_left, current_modules)

class DirectoryRun {
 public:
  explicit DirectoryRun(const DirectoryCoordinatorOptions& given) : options(given), files(given.directory) {}
  DirectoryRun(const DirectoryRun&) = delete;
  DirectoryRun& operator=(const DirectoryRun&) = delete;

  Status ready(const std::stop_token& stop);
  // A pause that gets longer while nothing happens. False: stopped.
  bool wait(Duration& delay, const std::stop_token& stop) const;
  // Names of one writer are in the order they were made in.
  std::string next_said();
  // Makes this the master, if nobody is: of several that come at once one makes the file with the next
  // number. LOCKED: there is another. A crash at any point leaves one that has the run until its lease has
  // ended.
  Status claim(const std::string& session);
  // That the master is there. It is written again and again, and not only touched: so it is noticed when the
  // disk is full. CONFLICT: another has taken over.
  Status hold(const std::string& session);
  Status hold();
  // Only while nobody has taken over: it takes the number that the next master would make. CONFLICT: another
  // was faster.
  Status close(const std::string& reason);
  // What an earlier master left.
  Status look_around();
  // False: a module of that name has been entered before.
  bool enter(const std::string& module);
  bool has_entered(const std::string& module);
  bool is_news(const std::string& ended);  // to next_results; once
  std::unexpected<Error> over() const;
  // What time has brought about.
  Status expire();
  Status admit(const WorkerRegistration& worker) const;
  Result<std::optional<Closed>> closed() const;
  // Which lease brought the result of a module; empty: there is none.
  Result<std::string> ended(const std::string& module) const;
  Result<SerializedModuleResult> result(const std::string& name) const;
  bool has_result(const std::string& name, const SerializedModuleResult& expected) const;
  Result<std::optional<Presence>> presence(std::int32_t index) const;
  Status keep(const Presence& presence) const;
  Result<Duration> silence(std::int32_t index) const;
  std::optional<ModuleAssignment> assignment(const std::string& entry);
  Result<std::optional<Assigned>> take(const WorkerRegistration& worker);
  // Whoever is the first to rename what waits has it: a worker, or the master that withdraws it.
  Result<Accepted> withdraw(const SerializedModuleResult& result);

  // The master's, whatever ours would be: leases end for all at the same time.
  Duration lease_time() const { return {lease_ms_.load()}; }
  void heed(const RunOpening& opening) const {
    if (opening.lease) lease_ms_ = opening.lease->ms;
  }

  const DirectoryCoordinatorOptions options;
  const SharedFiles files;
  std::mutex mutex;  // guards what follows
  std::uint64_t numbers = 0;
  std::set<std::string> entered;  // modules, as file names
  std::set<std::string> told;     // by next_results

 private:
  mutable std::atomic<std::int64_t> lease_ms_{options.lease.ms};
  // Whether the run was closed under that number; if whoever did so was killed meanwhile, workers hear it
  // now.
  Result<bool> is_closed_by(std::uint64_t number);
  std::unexpected<Error> taken_over() const;

  bool is_ready_ = false;
  std::string session_;       // of the master, if this is one
  std::uint64_t number_ = 0;  // likewise
  std::int64_t held_at_ms_ = 0;
  const std::string writer_ = random_name();
  std::uint64_t said_ = 0;
  std::map<std::string, ModuleAssignment> assignments_;  // they never change
};

}  // namespace baton::pipeline
