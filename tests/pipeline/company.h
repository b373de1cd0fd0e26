// A run with workers that are threads of this process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/contract.h"
#include "pipeline/pipeline.h"
#include "pipeline/run.h"
#include "pipeline/worker.h"

namespace baton::pipeline {

inline const ModuleReport& module(const RunReport& report, const std::string& id) {
  for (const ModuleReport& one : report.modules) {
    if (one.id == id) return one;
  }
  throw std::logic_error("no module " + id);
}

inline WorkerOptions worker_options(std::int32_t index, std::vector<std::string> capabilities,
                                    std::uint32_t slots = 1) {
  WorkerOptions options{
      .index = index, .slots = slots, .heartbeat = milliseconds(50), .cancellation_poll = milliseconds(20)};
  options.site.name = "worker-" + std::to_string(index);
  options.site.capabilities = std::move(capabilities);
  return options;
}

// Each has a coordinator of its own.
class Company {
 public:
  Company(contract::Subject& subject, const Pipeline& pipeline)
      : subject_(subject), graph_(*Graph::of(pipeline.definition())), master_(subject.connect()) {}
  ~Company() { stop_.request_stop(); }
  Company(const Company&) = delete;
  Company& operator=(const Company&) = delete;

  void hire(WorkerOptions options) {
    workers_.emplace_back([this, options = std::move(options)] {
      const auto coordinator = subject_.connect();
      const WorkerReport report = run_worker(graph_, *coordinator, options, stop_.get_token());
      const std::lock_guard lock(mutex_);
      reports_.emplace(options.index, report);
    });
  }
  RunReport run(RunOptions options = {.is_only_master = true}) {
    options.coordinator = master_.get();
    options.worker_poll = milliseconds(10);
    return pipeline::run(graph_, std::move(options));
  }
  WorkerReport report(std::int32_t index) {
    workers_.clear();
    return reports_.at(index);
  }

 private:
  contract::Subject& subject_;
  const Graph graph_;
  const std::unique_ptr<DistributedCoordinator> master_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::map<std::int32_t, WorkerReport> reports_;
  std::vector<std::jthread> workers_;
};

}  // namespace baton::pipeline
