// What became of a run, and who wants to watch it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/coordinator.h"
#include "pipeline/graph.h"
#include "pipeline/site.h"

namespace baton::pipeline {

enum class RunOutcome : std::uint8_t {
  succeeded,
  failed,
  cancelled,
  coordination_lost,
  refused,  // nothing of it was begun
};
std::string_view word(RunOutcome outcome);

// For main(). 2 is for a pipeline or a command line that makes no sense, 5 for a fault of baton's own.
inline constexpr int kExitInvalid = 2;
int exit_code(RunOutcome outcome);  // 0, 1, 3, 4, 2

struct ModuleReport {
  NodeIndex node = 0;
  std::string id;
  ModuleStatus status = ModuleStatus::waiting;
  std::string reason;  // why it was skipped or cancelled, what it waits for
  ModuleFailure failure;
  std::string worker;
  std::uint32_t attempt = 0;
  std::uint32_t tries = 0;
  Duration ready_at;  // since the beginning of the run
  Duration began_at;  // for a module that ran elsewhere: when its result came, less how long it took
  Duration took;
  Duration transfer;            // of that, for artifacts and large values
  std::optional<BlobRef> blob;  // where its value is, if that is large
  std::vector<ArtifactRef> artifacts;
  std::string cache;  // why its result was taken from an earlier run, or was not
};

// How a worker spent its time; 0 is the master.
struct WorkerTimes {
  std::int32_t index = 0;
  std::size_t modules = 0;
  Duration busy;  // of all its places together
  Duration idle;  // likewise, while it was there
};

struct RunReport {
  std::string run;
  std::string pipeline;
  RunOutcome outcome = RunOutcome::succeeded;
  std::string reason;
  Instant began_at;  // by the wall clock
  Duration took;
  std::vector<ModuleReport> modules;  // as in the graph
  std::vector<RegisteredWorker> workers;
  std::vector<WorkerTimes> times;
  std::optional<Error> refusal;  // why it could not be opened; then nobody was told that it began
};

// How long it was ready and had not begun.
Duration queue_wait(const ModuleReport& report);
// Why a module ended as it did, or was not taken from an earlier run.
std::string why(const ModuleReport& report);
// What failed comes first; what did not run because of it, after that.
std::vector<const ModuleReport*> worst_first(const RunReport& report);

// Told of all that happens, one thing after the other, on one thread.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void began(const Graph&, const std::string& /*run*/) {}
  // Its status changed. `value` is there once it has one, unless that is large and stored.
  virtual void changed(const ModuleReport&, const std::shared_ptr<const void>& /*value*/) {}
  virtual void said(const LogLine&) {}
  virtual void progressed(NodeIndex, double /*part*/) {}
  virtual void noticed(const std::string& /*text*/) {}  // a worker was lost, nobody can run a module, …
  // No worker is left for what was handed out, though this machine could run it: a worker here would.
  virtual void missing_a_worker_here() {}
  virtual void stopping(std::size_t /*modules*/) {}  // it was cancelled, and so many that run are to stop
  virtual void told_to_stop() {}                     // after that: whoever is to stop has been told
  virtual void time_passed() {}                      // a few times a second, if `wants_time`
  virtual bool wants_time() const { return false; }
  virtual void ended(const RunReport&) {}
};

}  // namespace baton::pipeline
