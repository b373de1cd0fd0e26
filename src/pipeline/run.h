// Runs a pipeline: as the only process, or as the master of several.
//
// The caller's thread is the one that decides. It keeps the schedule, hands modules to the threads of this
// machine and, through a coordinator, to workers on others, and takes in what became of them. Modules are
// handed out as late as possible, so that what matters most is always next: a worker has at most as many
// again waiting as it has places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "pipeline/report.h"
#include "pipeline/schedule.h"
#include "pipeline/site.h"

namespace baton::pipeline {

// A result that is known from before.
struct Restored {
  Carried value;
  std::vector<ArtifactRef> artifacts;
  std::optional<ModuleFailure> failure;  // instead
  std::uint32_t tries = 0;               // that it failed after
};

class Cache;

struct RunOptions {
  std::string run;              // its id; empty: one is made
  std::size_t jobs = 0;         // modules at a time on this machine; 0: as many as it has processors
  bool is_only_master = false;  // of others: only what is pinned runs here
  Site site;
  std::stop_token stop;  // cancels the run
  std::string stop_reason = "stopped by the user";
  History history;
  std::map<std::string, Restored> restored;  // by module
  // More of them, of the same run before its master was started again. Asked once the run is this one's.
  std::function<std::map<std::string, Restored>()> ended_before;
  // Asked before a module that may not be begun twice begins here, unless a coordinator is told: it does only
  // if a later master will know.
  std::function<Status(const ModuleReport&)> note_beginning;
  Cache* cache = nullptr;  // of results; null: everything is run
  RunObserver* observer = nullptr;

  // Distributed.
  DistributedCoordinator* coordinator = nullptr;  // outlives the run
  std::string definition;                         // for workers that need one
  std::size_t workers_expected = 0;               // once so many are there, nobody else will come; 0: unknown
  Duration capability_timeout = seconds(300);
  Duration worker_poll = milliseconds(500);
  Duration lost_after = kLostAfter;
};

// A module that did not stop when it was asked to may still run when this returns: its failure says so. The
// graph, the pipeline and where artifacts go (the site's or the coordinator's) then have to be there until it
// ends; what it says is dropped.
RunReport run(const Graph& graph, RunOptions options);

// What this machine is: "linux".
std::vector<std::string> detected_capabilities();
std::string make_run_id();

}  // namespace baton::pipeline
