// Worker processes that a master starts on its own machine. They begin once the run is its own, for what
// meets at the same place under the same name may be another's, and end with it. One more is started for what
// other workers have left behind.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "cli/run_command.h"
#include "pipeline/run.h"

namespace baton::cli {

class LocalWorkers : public pipeline::RunObserver {
 public:
  // Both outlive it.
  LocalWorkers(const RunCommandOptions& options, const MeetingPoint& meeting)
      : options_(options), meeting_(meeting) {}

  void began(const pipeline::Graph& graph, const std::string& run) override;
  void missing_a_worker_here() override { start(); }
  void ended(const pipeline::RunReport&) override { threads_.clear(); }

 private:
  void start();
  std::vector<std::string> command() const;

  const RunCommandOptions& options_;
  const MeetingPoint& meeting_;
  std::string run_;
  std::vector<std::jthread> threads_;
};

}  // namespace baton::cli
