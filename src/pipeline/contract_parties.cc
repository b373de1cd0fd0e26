#include "pipeline/contract_parties.h"

#include <algorithm>

#include "base/pause.h"

namespace baton::pipeline::contract {

Deadline::Deadline(Duration after)
    : thread_([this, after](const std::stop_token& over) {
        if (!pause(after, over)) source_.request_stop();
      }) {}

ModuleAssignment assignment(const std::string& module, std::vector<std::string> capabilities) {
  return {.module = module, .result_type = "text", .required_capabilities = std::move(capabilities)};
}

WorkerRegistration worker(std::int32_t index, std::vector<std::string> capabilities, std::string session) {
  return {.index = index,
          .session = session.empty() ? "session-" + std::to_string(index) : session,
          .name = "worker-" + std::to_string(index),
          .capabilities = std::move(capabilities),
          .slots = 2,
          .fingerprint = 7};
}

RunOpening opening(std::string session) {
  return {.session = std::move(session), .name = "contract", .fingerprint = 7};
}

SerializedModuleResult result_of(const Assigned& assigned, std::int32_t index, std::string value) {
  return {.module = assigned.assignment.module,
          .attempt = assigned.attempt,
          .lease = assigned.lease,
          .worker_index = index,
          .value = std::move(value),
          .tries = 1,
          .took = milliseconds(5)};
}

Result<Dequeued> take(DistributedCoordinator& party, const WorkerRegistration& self,
                      const std::stop_token& stop) {
  for (;;) {
    auto answer = party.dequeue_module(self, stop);
    if (!answer || !std::holds_alternative<Empty>(*answer)) return answer;
    if (stop.stop_requested()) return Dequeued{Empty{}};
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Result<Assigned> take_assignment(DistributedCoordinator& party, const WorkerRegistration& self,
                                 Duration at_most) {
  const Deadline deadline(at_most);
  auto answer = take(party, self, deadline.token());
  if (!answer) return std::unexpected(answer.error());
  if (auto* assigned = std::get_if<Assigned>(&*answer)) return std::move(*assigned);
  return failure(Errc::not_found, std::holds_alternative<Closed>(*answer) ? "closed" : "nothing");
}

bool gets_nothing(Subject& subject, DistributedCoordinator& party, const WorkerRegistration& self) {
  const Duration patience = std::min(milliseconds(100), Duration{subject.lease().ms / 2});
  return !take_assignment(party, self, patience);
}

Result<Cast> cast(Subject& subject) {
  Cast all{subject.connect(), subject.connect(), subject.connect()};
  if (auto done = all.master->open_run(opening(), {}); !done) return std::unexpected(done.error());
  if (auto done = all.first->register_worker(all.one, {}); !done) return std::unexpected(done.error());
  if (auto done = all.second->register_worker(all.two, {}); !done) return std::unexpected(done.error());
  return all;
}

}  // namespace baton::pipeline::contract
