#include "engine/work_coordinator.h"

#include <utility>

#include "core/stream/streams.h"
#include "engine/work_calls.h"
#include "engine/work_news.h"

namespace baton::engine {

using namespace stream;
using stream::Verdict;  // and not the one on a task

WorkCoordinator::WorkCoordinator(Coordinator& coordinator, std::string ns)
    : coordinator_(coordinator), ns_(std::move(ns)) {}

Result<WorkCoordinator::Done> WorkCoordinator::process(Result<core::ProcessWork> request,
                                                       const std::stop_token& stop) {
  if (!request) return std::unexpected(request.error());
  // Once it was asked it is answered soon: it is stopped only before that.
  if (stop.stop_requested()) return failure(Errc::closed, "stopped; nothing has happened");
  if (request->claim) news_ = coordinator_.work_news().count();
  auto answer = coordinator_.answer_to(std::move(*request));
  if (!answer) return std::unexpected(answer.error());
  if (!answer->reply) return std::unexpected(answer->reply.error());
  return Done{std::get<core::WorkProcessed>(std::move(*answer->reply)), std::move(answer->bodies)};
}

// Where a body was copied forward after it was handed out, and the old segment has gone, it is looked up.
Result<Bytes> WorkCoordinator::read(const core::GivenMessage& given, const core::BlobRef& blob) {
  auto bytes = coordinator_.read(blob);
  if (bytes || bytes.error().code != Errc::not_found) return bytes;
  core::BlobRef now;
  const auto looked = coordinator_.inspect([&](const core::State& state) {
    const core::Slot slot = state.streams.message_numbers.find(given.number);
    if (slot == 0) return;
    const core::streams::Message& message = state.streams.messages[slot];
    now = blob == given.body ? message.body : message.error;
  });
  if (!looked || now.length == 0) return bytes;
  return coordinator_.read(now);
}

// From memory, or else from the log; null where that did not work out.
std::vector<SharedBytes> WorkCoordinator::bodies_of(const Done& done) {
  std::vector<SharedBytes> bodies = done.bodies;
  bodies.resize(done.processed.work.size());
  std::vector<core::BlobRef> absent;
  for (std::size_t i = 0; i < bodies.size(); ++i)
    if (bodies[i] == nullptr) absent.push_back(done.processed.work[i].body);
  std::vector<SharedBytes> read = coordinator_.read_together(absent);
  auto next = read.begin();
  for (SharedBytes& body : bodies)
    if (body == nullptr) body = std::move(*next++);
  return bodies;
}

// What was recorded stands, so one body that cannot be read does not keep the rest from its holder.
Result<std::vector<Work>> WorkCoordinator::work_of(InstanceId instance, const Done& done) {
  std::vector<Work> all;
  all.reserve(done.processed.work.size());
  const std::vector<SharedBytes> bodies = bodies_of(done);
  std::vector<bool> is_left_out(bodies.size());
  for (std::size_t i = 0; i < done.processed.work.size(); ++i) {
    if (is_left_out[i]) continue;
    const core::GivenMessage& given = done.processed.work[i];
    auto work =
        engine::work_of(given, bodies[i], [&](const core::BlobRef& blob) { return read(given, blob); });
    if (work) {
      all.push_back(std::move(*work));
      continue;
    }
    if (work.error().code == Errc::closed) return std::unexpected(work.error());
    (void)process(unreadable_of(ns_, instance, done.processed.work, i, work.error(), is_left_out), {});
  }
  return all;
}

Result<std::vector<Verdict>> WorkCoordinator::verdicts(Result<Done> done,
                                                       core::ByLane<core::Verdicts> core::WorkProcessed::* of,
                                                       Lane lane) {
  if (!done) return std::unexpected(done.error());
  return std::move((done->processed.*of)[lane]);
}

Result<WorkBatch> WorkCoordinator::do_process_work_batch(const WorkBatchRequest& request,
                                                         std::stop_token stop) {
  auto done = process(turn_of(ns_, request), stop);
  if (!done) return std::unexpected(done.error());
  WorkBatch batch = batch_of(done->processed);
  auto work = work_of(request.instance.id, *done);
  if (!work) return std::unexpected(work.error());
  batch.work = std::move(*work);
  return batch;
}

Result<Standing> WorkCoordinator::do_heartbeat(const Instance& instance, Duration stale,
                                               std::stop_token stop) {
  auto done = process(heartbeat_of(ns_, instance, stale), stop);
  if (!done) return std::unexpected(done.error());
  return done->processed.standing;
}

Result<std::vector<Verdict>> WorkCoordinator::do_store(InstanceId instance, Lane lane,
                                                       const std::vector<NewMessage>& messages,
                                                       std::int32_t partitions, std::stop_token stop) {
  return verdicts(process(store_of(ns_, instance, lane, messages, partitions), stop),
                  &core::WorkProcessed::messages, lane);
}

Result<std::vector<Work>> WorkCoordinator::do_claim(InstanceId instance, const ClaimRequest& request,
                                                    std::stop_token stop) {
  auto done = process(claim_of(ns_, instance, request), stop);
  if (!done) return std::unexpected(done.error());
  return work_of(instance, *done);
}

Result<std::vector<Verdict>> WorkCoordinator::do_complete(InstanceId instance, Lane lane,
                                                          const std::vector<Completion>& completions,
                                                          WorkFlags flags, std::stop_token stop) {
  return verdicts(process(completion_of(ns_, instance, lane, completions, flags), stop),
                  &core::WorkProcessed::completions, lane);
}

Result<std::vector<Verdict>> WorkCoordinator::do_fail(InstanceId instance, Lane lane,
                                                      const std::vector<Failure>& failures,
                                                      std::stop_token stop) {
  return verdicts(process(failure_of(ns_, instance, lane, failures), stop), &core::WorkProcessed::failures,
                  lane);
}

Result<std::vector<Verdict>> WorkCoordinator::do_renew(InstanceId instance, Lane lane,
                                                       const std::vector<Held>& held, Duration lease,
                                                       std::stop_token stop) {
  return verdicts(process(renewal_of(ns_, instance, lane, held, lease), stop), &core::WorkProcessed::renewals,
                  lane);
}

Result<std::vector<Verdict>> WorkCoordinator::do_release(InstanceId instance, Lane lane,
                                                         const std::vector<Held>& held,
                                                         std::stop_token stop) {
  std::vector<Completion> given_back;
  for (const Held& item : held) given_back.push_back({.held = item});
  return complete(instance, lane, given_back, WorkFlags::none, stop);
}

Result<std::vector<Work>> WorkCoordinator::do_resume(InstanceId instance, std::stop_token stop) {
  // A call that says nothing: the instance is alive.
  if (auto heard = process(core::ProcessWork{.ns = ns_, .instance = instance}, stop); !heard)
    return std::unexpected(heard.error());
  Result<HeldPage> held;
  auto looked = coordinator_.inspect([&](const core::State& state) { held = held_by(state, ns_, instance); });
  if (!looked) return std::unexpected(looked.error());
  if (!held) return std::unexpected(held.error());
  return work_of(instance, {.processed = {.work = std::move(held->messages)}, .bodies = {}});
}

Result<bool> WorkCoordinator::do_wait_for_work(Duration at_most, std::stop_token stop) {
  return coordinator_.work_news().wait(news_, at_most, stop);
}

Status WorkCoordinator::do_leave(InstanceId instance, std::stop_token stop) {
  if (stop.stop_requested()) return failure(Errc::closed, "stopped; nothing has happened");
  auto answer = coordinator_.answer_to(core::LeaveWork{.ns = ns_, .instance = instance});
  if (!answer) return std::unexpected(answer.error());
  if (!answer->reply) return std::unexpected(answer->reply.error());
  return {};
}

}  // namespace baton::engine
