#include "pipeline/role_guard.h"

#include <utility>

namespace baton::pipeline {
namespace {

std::unexpected<Error> not_for(Role role, const char* operation) {
  return failure(Errc::wrong_state, std::string(operation) +
                                        (role == Role::master ? " is for workers, and this is the master"
                                                              : " is for the master, and this is a worker"));
}

}  // namespace

Status RoleGuard::open_run(const RunOpening& opening, std::stop_token stop) {
  if (role_ != Role::master) return not_for(role_, "open_run");
  return behind_.open_run(opening, std::move(stop));
}
Result<RunOpening> RoleGuard::run_opening(std::stop_token stop) {
  return behind_.run_opening(std::move(stop));
}
Result<std::vector<std::string>> RoleGuard::enqueued_modules(std::stop_token stop) {
  if (role_ != Role::master) return not_for(role_, "enqueued_modules");
  return behind_.enqueued_modules(std::move(stop));
}
Result<std::vector<SerializedModuleResult>> RoleGuard::own_results(std::stop_token stop) {
  if (role_ != Role::master) return not_for(role_, "own_results");
  return behind_.own_results(std::move(stop));
}
Status RoleGuard::enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) {
  if (role_ != Role::master) return not_for(role_, "enqueue_module");
  return behind_.enqueue_module(assignment, std::move(stop));
}
Status RoleGuard::enqueue_modules(const std::vector<ModuleAssignment>& assignments, std::stop_token stop) {
  if (role_ != Role::master) return not_for(role_, "enqueue_modules");
  return behind_.enqueue_modules(assignments, std::move(stop));
}
Result<SerializedModuleResult> RoleGuard::wait_for_result(const std::string& module, std::stop_token stop) {
  if (role_ != Role::master) return not_for(role_, "wait_for_result");
  return behind_.wait_for_result(module, std::move(stop));
}
Result<std::vector<SerializedModuleResult>> RoleGuard::next_results(std::stop_token stop) {
  if (role_ != Role::master) return not_for(role_, "next_results");
  return behind_.next_results(std::move(stop));
}
Result<std::vector<RegisteredWorker>> RoleGuard::get_registered_workers(std::stop_token stop) {
  if (role_ != Role::master) return not_for(role_, "get_registered_workers");
  return behind_.get_registered_workers(std::move(stop));
}
Status RoleGuard::broadcast_cancellation(const std::string& reason, std::stop_token stop) {
  if (role_ != Role::master) return not_for(role_, "broadcast_cancellation");
  return behind_.broadcast_cancellation(reason, std::move(stop));
}
Status RoleGuard::close_run(const std::string& reason, std::stop_token stop) {
  if (role_ != Role::master) return not_for(role_, "close_run");
  return behind_.close_run(reason, std::move(stop));
}
Status RoleGuard::register_worker(const WorkerRegistration& registration, std::stop_token stop) {
  if (role_ != Role::worker) return not_for(role_, "register_worker");
  return behind_.register_worker(registration, std::move(stop));
}
Result<Dequeued> RoleGuard::dequeue_module(const WorkerRegistration& worker, std::stop_token stop) {
  if (role_ != Role::worker) return not_for(role_, "dequeue_module");
  return behind_.dequeue_module(worker, std::move(stop));
}
Result<Accepted> RoleGuard::publish_result(const SerializedModuleResult& result, std::stop_token stop) {
  const bool is_the_masters = result.lease.empty();
  if (is_the_masters != (role_ == Role::master))
    return not_for(role_, is_the_masters ? "publish_result without a lease" : "publish_result under a lease");
  return behind_.publish_result(result, std::move(stop));
}
Result<HeartbeatReply> RoleGuard::send_heartbeat(const WorkerHeartbeat& heartbeat, std::stop_token stop) {
  if (role_ != Role::worker) return not_for(role_, "send_heartbeat");
  return behind_.send_heartbeat(heartbeat, std::move(stop));
}
Result<std::optional<CancellationSignal>> RoleGuard::is_cancellation_requested(std::stop_token stop) {
  return behind_.is_cancellation_requested(std::move(stop));
}

Status RoleGuard::say(const std::vector<Said>& said, std::stop_token stop) {
  if (role_ != Role::worker) return not_for(role_, "say");
  return behind_.say(said, std::move(stop));
}
Result<std::vector<Said>> RoleGuard::take_said(std::stop_token stop) {
  if (role_ != Role::master) return not_for(role_, "take_said");
  return behind_.take_said(std::move(stop));
}

}  // namespace baton::pipeline
