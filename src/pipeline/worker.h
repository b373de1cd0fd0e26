// A worker of a run: takes modules from the coordinator, runs them, and says what became of them.
//
// Heartbeats come from a thread of their own, so that a busy worker is not taken for a lost one. Whatever the
// worker took ends in a result, also when it is told to stop meanwhile: it has a while for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "pipeline/coordinator.h"
#include "pipeline/graph.h"
#include "pipeline/site.h"

namespace baton::pipeline {

struct WorkerOptions {
  std::int32_t index = 0;   // 0: the first that is free
  std::uint32_t slots = 1;  // modules at a time
  // Of them, so many that keep a processor busy; 0: as many as there are processors.
  std::uint32_t processors = 0;
  Site site;
  bool is_reserved = false;         // for what names a capability of its own: see reservation.h
  Duration heartbeat = kHeartbeat;  // more often if leases are short
  // What it has is no longer its own when no heartbeat got through for so long; if the run's opening says
  // how long, that counts.
  Duration lease = kLostAfter;
  Duration cancellation_poll = seconds(2);
  Duration master_lost_after = seconds(60);
  Duration unreachable_max = seconds(60);          // then it gives up
  Duration publish_max = seconds(30);              // for a result that the coordinator does not take
  std::function<void(const std::string&)> notice;  // told of what a person might want to know; may be empty
};

enum class WorkerEnd : std::uint8_t {
  closed,   // the run is over
  stopped,  // through its token
  refused,  // another has its index, or its pipeline is not the master's
  master_lost,
  coordination_lost,
};
int exit_code(WorkerEnd end);  // 0, 3, 2, 4, 4

struct WorkerReport {
  WorkerEnd end = WorkerEnd::closed;
  std::string reason;
  std::uint64_t modules = 0;  // whose result was accepted
  std::uint64_t stale = 0;    // whose result came too late
};

// Until the run is over. Returns when everything it has begun has ended.
WorkerReport run_worker(const Graph& graph, DistributedCoordinator& coordinator, WorkerOptions options,
                        std::stop_token stop = {});

}  // namespace baton::pipeline
