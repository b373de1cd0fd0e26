// Keeps an eye on modules that run: tells them that their time is up or that the run is stopped, and does not
// wait for ever for one that does not listen.
//
//   begins ------ timeout, or stop() ------> asked to stop ------ grace ------> abandoned
//
// A try that was late may be followed by another, with as much time.
//
// One that is abandoned is over for everybody else. Its thread is left alone with it, since a thread cannot
// be ended from outside; commands can, and are.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/execute.h"

namespace baton::pipeline {

class Watch {
 public:
  explicit Watch(std::shared_ptr<const Site> site);
  // By then nothing runs under it but what was abandoned.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Runs it on this thread. If it is abandoned, `abandoned` is called with what counts as its result, on
  // another thread, and nothing is returned here, whenever that may be: the caller should then end its
  // thread.
  // `is_wanted`, if there is one, is asked once stop() would find the module: whoever changed his mind before
  // that is heard too, and it is not begun.
  std::optional<ModuleResult> run(ModuleOrder order, const std::function<void(ModuleResult)>& abandoned,
                                  const std::function<bool()>& is_wanted = {});

  // Asks what runs to stop, but for modules that always run; with `all`, those too. What begins later is
  // asked at once.
  void stop(bool all = false);
  void stop(const std::string& module, std::uint32_t attempt);  // this one, if it runs

 private:
  struct Job;
  struct State;
  class Supervision;
  const std::shared_ptr<State> state_;  // shared with the threads of abandoned modules, which outlive us
};

}  // namespace baton::pipeline
