#include "core/decide.h"

#include <concepts>

#include "core/lease/lease_manager.h"
#include "core/stream/dead_letters.h"
#include "core/stream/work_decision.h"
#include "core/task/task_manager.h"

namespace baton::core {

Decision decide(const State& state, const WorkerRegistry& workers, const Request& request, const Moment& at) {
  return std::visit(
      [&](const auto& asked) {
        if constexpr (std::same_as<decltype(asked), const LeaseTask&>) {
          return decide(state, workers, asked, at);
        } else if constexpr (std::same_as<decltype(asked), const ProcessWork&>) {
          return decide(state, workers.instances, asked, at);
        } else {
          return decide(state, asked, at);
        }
      },
      request);
}

std::optional<Event> due_before(const State& state, const WorkerRegistry& workers, const Request& request,
                                const Moment& at) {
  return std::visit(
      [&](const auto& asked) -> std::optional<Event> {
        if constexpr (requires { asked.task.key; }) return due_before(state, asked.ns, asked.task, at);
        if constexpr (std::same_as<decltype(asked), const ProcessWork&>)
          return silent_before(state, workers.instances, asked, at);
        return {};
      },
      request);
}

}  // namespace baton::core
