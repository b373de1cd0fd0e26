#include "pipeline/own_results.h"

#include <utility>

namespace baton::pipeline {

ModuleFailure lost_with_master() {
  return {.kind = FailureKind::worker_lost,
          .message = "the master was killed while it ran, and it may not be begun twice"};
}

OwnResults::OwnResults(DistributedCoordinator& coordinator, std::function<void(const std::string&)> trouble)
    : coordinator_(coordinator),
      trouble_(std::move(trouble)),
      thread_([this](const std::stop_token& end) { run(end); }) {}

OwnResults::~OwnResults() = default;

void OwnResults::publish(SerializedModuleResult result) {
  const std::lock_guard lock(mutex_);
  results_.push_back(std::move(result));
  arrived_.notify_one();
}

void OwnResults::run(const std::stop_token& end) {
  std::unique_lock lock(mutex_);
  while (arrived_.wait(lock, end, [this] { return !results_.empty(); })) {
    const std::vector<SerializedModuleResult> all = std::exchange(results_, {});
    lock.unlock();
    for (const SerializedModuleResult& result : all) {
      const auto done = coordinator_.publish_result(result, end);
      if (!done && !end.stop_requested())
        trouble_(result.module + ": its result was not published: " + done.error().message);
    }
    lock.lock();
  }
}

}  // namespace baton::pipeline
