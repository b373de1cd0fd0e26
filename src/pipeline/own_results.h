// Publishes the results of modules that the master ran itself, on a thread of its own: the run does not wait
// for it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/coordinator.h"

namespace baton::pipeline {

// That a module which may not be begun twice is begun by the master (running) or handed out to a worker
// (queued): noted before that, like a result, under a name that no module has. Of two masters that know of as
// many notes from before, one is the first to make the next.
SerializedModuleResult note_of_beginning(const std::string& module, const std::string& session,
                                         std::size_t notes_before, ModuleStatus as);
// Whose beginning that notes. Nothing: it is a result.
std::optional<std::string> begun_by(const SerializedModuleResult& own);

// What became of a module that was begun, as nobody knows any more.
ModuleFailure lost_with_master();
ModuleFailure lost_with_its_task();

class OwnResults {
 public:
  // `trouble` is called on that thread.
  OwnResults(DistributedCoordinator& coordinator, std::function<void(const std::string&)> trouble);
  ~OwnResults();  // what was not published by then is not
  OwnResults(const OwnResults&) = delete;
  OwnResults& operator=(const OwnResults&) = delete;

  void publish(SerializedModuleResult result);

 private:
  void run(const std::stop_token& end);

  DistributedCoordinator& coordinator_;
  const std::function<void(const std::string&)> trouble_;
  std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::vector<SerializedModuleResult> results_;
  std::jthread thread_;
};

}  // namespace baton::pipeline
