#include "client/work_coordinator.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "client/call.h"
#include "client/command.h"
#include "client/stoppable_answer.h"
#include "client/stream_json.h"
#include "client/work_reply.h"
#include "stream/checks.h"
#include "wire/resp_value.h"

namespace baton::client {
namespace {

using namespace stream;
using Verdicts = std::vector<stream::Verdict>;
using wire::RespValue;

constexpr Duration kWaitAtOnce = seconds(10);  // so that a call that was stopped is over soon

std::string_view word_of(Lane lane) { return lane == Lane::outbox ? "outbox" : "inbox"; }

template <class Items>
void add_list(Command& command, std::string_view name, const Items& items) {
  if (!items.empty()) command.option(name, to_json(items));
}

void add_limits(Command& command, const ClaimLimits& limits, std::optional<std::int32_t> partitions_max) {
  command.option("MAX_STREAMS", limits.streams)
      .option("MAX_MESSAGES", limits.messages)
      .option("MAX_PER_STREAM", limits.messages_per_stream)
      .option("MAX_BYTES", limits.bytes);
  if (partitions_max) command.option("MAX_PARTITIONS", *partitions_max);
}

void add_identity(Command& command, const Instance& instance) {
  command.add(to_text(instance.id.value)).add(instance.service);
  command.option_if(!instance.host.empty(), "HOST", instance.host).option("PROCESS", instance.process);
  command.option_if(!instance.metadata.empty(), "ABOUT", instance.metadata);
}

// Only one of the two lanes was spoken of.
Result<Verdicts> either(Result<WorkBatch> batch, Verdicts WorkBatch::* outbox, Verdicts WorkBatch::* inbox,
                        Lane lane) {
  if (!batch) return std::unexpected(batch.error());
  return std::move((*batch).*(lane == Lane::outbox ? outbox : inbox));
}

Result<bool> woken_by(const Result<RespValue>& reply) {
  if (!reply) return std::unexpected(reply.error());
  const RespValue* woken = reply->find("woken");
  return woken != nullptr && (woken->truth || woken->number != 0);
}

}  // namespace

// What can be complained about here is not sent. A claim is not repeated: it would give the next work, and
// what the first one gave would be held by nobody who knows.
Result<WorkBatch> WorkCoordinator::say(Status checked, const Command& command, const std::stop_token& stop,
                                       Says says) {
  if (!checked) return std::unexpected(checked.error());
  if (stop.stop_requested()) return failure(Errc::closed, "stopped; nothing has happened");
  auto reply = ask(command, stop, says);
  if (!reply) return std::unexpected(reply.error());
  return batch_of(*reply);
}

Result<RespValue> WorkCoordinator::ask(const Command& command, const std::stop_token& stop, Says says) {
  if (!stop.stop_possible()) return says == Says::claim ? client_.say_once(command) : client_.say(command);
  if (auto may = client_.may_wait(); !may) return std::unexpected(may.error());
  const auto answer = std::make_shared<StoppableAnswer<RespValue>>();
  const auto done = [answer](Result<RespValue> reply) { answer->set(std::move(reply)); };
  says == Says::claim ? client_.say_once(command, done) : client_.say(command, {}, done);
  return answer->wait(stop);
}

Result<WorkBatch> WorkCoordinator::do_process_work_batch(const WorkBatchRequest& request,
                                                         std::stop_token stop) {
  const bool claims = claim_of(request).has_value();
  if (claims) asks_for_work(request.instance.id);
  Command command("PROCESS_WORK_BATCH");
  add_identity(command, request.instance);
  add_list(command, "OUTBOX_COMPLETIONS", request.outbox_completions);
  add_list(command, "INBOX_COMPLETIONS", request.inbox_completions);
  add_list(command, "OUTBOX_FAILURES", request.outbox_failures);
  add_list(command, "INBOX_FAILURES", request.inbox_failures);
  add_list(command, "RECEPTOR_COMPLETIONS", request.receptor_completions);
  add_list(command, "RECEPTOR_FAILURES", request.receptor_failures);
  add_list(command, "PERSPECTIVE_COMPLETIONS", request.perspective_completions);
  add_list(command, "PERSPECTIVE_FAILURES", request.perspective_failures);
  add_list(command, "OUTBOX_RENEWALS", request.outbox_renewals);
  add_list(command, "INBOX_RENEWALS", request.inbox_renewals);
  add_list(command, "NEW_OUTBOX_MESSAGES", request.new_outbox_messages);
  add_list(command, "NEW_INBOX_MESSAGES", request.new_inbox_messages);
  command.option("FLAGS", static_cast<std::int32_t>(request.flags)).option("PARTITIONS", request.partitions);
  command.option("LEASE_MS", request.lease).option("STALE_MS", request.stale);
  add_limits(command, request.limits, request.partitions_max);
  return say(check(request), command, stop, claims ? Says::claim : Says::report);
}

Result<Standing> WorkCoordinator::do_heartbeat(const Instance& instance, Duration stale,
                                               std::stop_token stop) {
  Command command("STREAM_HEARTBEAT");
  add_identity(command, instance);
  command.option("STALE_MS", stale);
  auto batch = say(check(instance), command, stop);
  if (!batch) return std::unexpected(batch.error());
  return batch->standing;
}

Result<Verdicts> WorkCoordinator::do_store(InstanceId instance, Lane lane,
                                           const std::vector<NewMessage>& messages, std::int32_t partitions,
                                           std::stop_token stop) {
  Command command("STREAM_STORE");
  command.add(to_text(instance.value)).add(word_of(lane)).add(to_json(messages));
  command.option("PARTITIONS", partitions);
  return either(say(check(lane, messages, partitions), command, stop), &WorkBatch::new_outbox_messages,
                &WorkBatch::new_inbox_messages, lane);
}

Result<std::vector<Work>> WorkCoordinator::do_claim(InstanceId instance, const ClaimRequest& request,
                                                    std::stop_token stop) {
  if (!request.outbox && !request.inbox) return std::vector<Work>{};
  asks_for_work(instance);
  Command command("STREAM_CLAIM");
  command.add(to_text(instance.value)).option("LEASE_MS", request.lease).option("STALE_MS", request.stale);
  if (request.outbox != request.inbox) command.option("LANE", request.outbox ? "outbox" : "inbox");
  add_limits(command, request.limits, request.partitions_max);
  auto batch = say(check(request), command, stop, Says::claim);
  if (!batch) return std::unexpected(batch.error());
  return std::move(batch->work);
}

Result<Verdicts> WorkCoordinator::do_complete(InstanceId instance, Lane lane,
                                              const std::vector<Completion>& completions, WorkFlags flags,
                                              std::stop_token stop) {
  Command command("STREAM_COMPLETE");
  command.add(to_text(instance.value)).add(word_of(lane)).add(to_json(completions));
  if (has(flags, WorkFlags::debug_mode)) command.add("DEBUG_MODE");
  return either(say(check(completions, flags), command, stop), &WorkBatch::outbox_completions,
                &WorkBatch::inbox_completions, lane);
}

Result<Verdicts> WorkCoordinator::do_fail(InstanceId instance, Lane lane,
                                          const std::vector<stream::Failure>& failures,
                                          std::stop_token stop) {
  Command command("STREAM_FAIL");
  command.add(to_text(instance.value)).add(word_of(lane)).add(to_json(failures));
  return either(say(check(failures), command, stop), &WorkBatch::outbox_failures, &WorkBatch::inbox_failures,
                lane);
}

Result<Verdicts> WorkCoordinator::do_renew(InstanceId instance, Lane lane,
                                           const std::vector<stream::Held>& held, Duration lease,
                                           std::stop_token stop) {
  Command command("STREAM_RENEW");
  command.add(to_text(instance.value)).add(word_of(lane)).add(to_json(held)).option("LEASE_MS", lease);
  return either(say(check(held), command, stop), &WorkBatch::outbox_renewals, &WorkBatch::inbox_renewals,
                lane);
}

Result<Verdicts> WorkCoordinator::do_release(InstanceId instance, Lane lane,
                                             const std::vector<stream::Held>& held, std::stop_token stop) {
  Command command("STREAM_RELEASE");
  command.add(to_text(instance.value)).add(word_of(lane)).add(to_json(held));
  return either(say(check(held), command, stop), &WorkBatch::outbox_completions,
                &WorkBatch::inbox_completions, lane);
}

Result<std::vector<Work>> WorkCoordinator::do_resume(InstanceId instance, std::stop_token stop) {
  std::vector<Work> held;
  for (std::int64_t cursor = 0;;) {  // page by page
    if (stop.stop_requested()) return failure(Errc::closed, "stopped; nothing has happened");
    Command command("STREAM_RESUME");
    command.add(to_text(instance.value)).option_if(cursor != 0, "CURSOR", cursor);
    const auto reply = ask(command, stop, Says::report);
    if (!reply) return std::unexpected(reply.error());
    auto batch = batch_of(*reply);
    if (!batch) return std::unexpected(batch.error());
    std::ranges::move(batch->work, std::back_inserter(held));
    const RespValue* next = reply->find("cursor");
    if (next == nullptr || next->number == 0) return held;
    cursor = next->number;
  }
}

void WorkCoordinator::asks_for_work(InstanceId instance) {
  const std::lock_guard lock(mutex_);
  asking_ = instance;
  asked_at_ = now_ms();
  asks_.notify_all();
}

// What came since it asked is not announced again, so the coordinator is told how long ago that was.
Result<bool> WorkCoordinator::do_wait_for_work(Duration at_most, std::stop_token stop) {
  const std::int64_t until = now_ms() + at_most.ms;
  for (;;) {
    Command command("STREAM_WAIT");
    {
      std::unique_lock lock(mutex_);
      const std::chrono::milliseconds left(std::max<std::int64_t>(until - now_ms(), 0));
      if (!asks_.wait_for(lock, stop, left, [&] { return asking_.has_value(); })) return false;
      command.add(to_text(asking_->value)).option("SINCE_MS", now_ms() - asked_at_ + 1);
    }
    const Duration slice{std::min(until - now_ms(), kWaitAtOnce.ms)};
    if (slice <= Duration{} || stop.stop_requested()) return false;
    const auto answer = std::make_shared<StoppableAnswer<RespValue>>();
    client_.say(command, slice, [answer](Result<RespValue> reply) { answer->set(std::move(reply)); });
    const auto reply = answer->wait(stop);
    if (!reply && stop.stop_requested()) return false;
    if (const auto woken = woken_by(reply); !woken || *woken) return woken;
  }
}

Status WorkCoordinator::do_leave(InstanceId instance, std::stop_token stop) {
  auto batch = say({}, Command("STREAM_LEAVE").add(to_text(instance.value)), stop);
  if (!batch) return std::unexpected(batch.error());
  return {};
}

}  // namespace baton::client
