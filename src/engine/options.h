// What a coordinator is opened with, and what opening it found.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/coordinator_time.h"
#include "engine/engine.h"
#include "engine/housekeeper.h"
#include "log/format.h"

namespace baton {

struct CoordinatorOptions {
  engine::EngineOptions engine;
  engine::HousekeeperOptions housekeeping;
  log::Options log;
  // What to do when the log cannot be written any more. The outcome of everything unanswered is unknown, so
  // nothing may be answered; by default a message goes to standard error and the process ends.
  std::function<void(const Error&)> on_fatal;
  // For tests that have power over time; by default the system's.
  engine::Clock* clock = nullptr;
  // What an operator should know but nobody asked for; by default it goes to standard error. May be called on
  // any thread that uses the coordinator, and on its own.
  std::function<void(const std::string&)> on_note;
};

struct RecoverySummary {
  core::Lsn snapshot = 0;
  std::uint64_t replayed = 0;
  Duration took;
  std::vector<std::string> notes;
};

}  // namespace baton
