#include "pipeline/own_results.h"

#include <string_view>
#include <utility>

namespace baton::pipeline {
namespace {

constexpr std::string_view kBegun = "[begun]";  // in front, and once more for each note from before

}  // namespace

SerializedModuleResult note_of_beginning(const std::string& module, const std::string& session,
                                         std::size_t notes_before, ModuleStatus as) {
  std::string name(kBegun);
  for (std::size_t i = 0; i < notes_before; ++i) name += kBegun;
  return {.module = name + module, .status = as, .value = session};
}

std::optional<std::string> begun_by(const SerializedModuleResult& own) {
  std::string_view name = own.module;
  while (name.starts_with(kBegun)) name.remove_prefix(kBegun.size());
  if (name.size() == own.module.size()) return std::nullopt;
  return std::string(name);
}

ModuleFailure lost_with_its_task() {
  return {.kind = FailureKind::worker_lost,
          .message =
              "an earlier master handed it out to a worker, and the coordinator no longer knows what "
              "became of it; it may not be begun twice"};
}

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
