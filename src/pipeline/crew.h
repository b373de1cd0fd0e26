// The threads of this machine that run modules.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "pipeline/watch.h"

namespace baton::pipeline {

class Crew {
 public:
  using Done = std::function<void(const GraphNode& node, ModuleResult result, Duration took)>;

  // `done` is called once for each module that was begun, on another thread.
  Crew(std::shared_ptr<const Site> site, std::size_t threads, Done done);
  // Asks all that runs to stop, and waits for it.
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void begin(ModuleOrder order);
  Watch& watch() { return watch_; }

 private:
  struct State;
  void hire();

  Watch watch_;
  const std::shared_ptr<State>
      state_;  // shared with threads that are left alone with a module they cannot end
};

}  // namespace baton::pipeline
