// Publishes the results of modules that the master ran itself, on a thread of its own: the run does not wait
// for it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "pipeline/coordinator.h"

namespace baton::pipeline {

// Before the name of a module: so the master notes that it begins one itself which may not be begun twice. No
// module has such a name.
inline constexpr std::string_view kBegun = "[begun]";

// What became of such a one when the master was killed.
ModuleFailure lost_with_master();

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
