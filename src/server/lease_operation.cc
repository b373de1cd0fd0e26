#include "server/lease_operation.h"

#include <algorithm>
#include <utility>

#include "server/request_operation.h"

namespace baton::server {
namespace {

constexpr std::size_t kCompletion = SIZE_MAX;  // its index among the answers

}  // namespace

void LeaseOperation::begin(Desk& desk) {
  if (completes_) {
    core::Request completion = std::move(*completes_);
    desk.ask(*this, kCompletion, completion);
  }
  ask(desk);
}

void LeaseOperation::ask(Desk& desk) {
  asked_ = order_.count;
  looked_at_ = UINT64_MAX;
  for (std::size_t index = 0; index < order_.count; ++index) {
    core::Request request = order_.request;
    desk.ask(*this, index, request);
  }
}

void LeaseOperation::answered(Desk& desk, std::size_t index, engine::Answer&& answer) {
  lsn_ = answer.lsn;
  if (index == kCompletion) {
    completed_ = std::move(answer);
    return;
  }
  if (!answer.reply) {
    error_ = answer.reply.error();
  } else if (const auto* granted = std::get_if<core::Granted>(&*answer.reply)) {
    desk.gave(*this, {granted->task, granted->lease});
    taken_.push_back({*granted, desk.queue_of(granted->task), std::move(answer.payload)});
    if (granted->payload.length > 0 && !taken_.back().payload)
      desk.fetch(*this, taken_.size() - 1, granted->payload);
  } else if (const auto* nothing = std::get_if<core::Nothing>(&*answer.reply)) {
    looked_at_ = std::min(looked_at_, answer.lsn);
    at_capacity_ = nothing->why == core::NothingBecause::at_capacity;
  }
  if (--asked_ > 0 || !taken_.empty() || error_ || order_.wait <= Duration{}) return;
  if (!deadline_) deadline_ = desk.now() + order_.wait;
  desk.wait_for_task(*this, {.ns = order_.request.ns,
                             .queues = order_.request.queues,
                             .looked_at = looked_at_,
                             .at_capacity = at_capacity_,
                             .deadline = *deadline_});
}

void LeaseOperation::wake(Desk& desk, bool time_is_up) {
  if (!time_is_up) ask(desk);
}

void LeaseOperation::fetched(Desk& desk, std::size_t index, Result<Bytes> bytes) {
  Taken& taken = taken_[index];
  if (bytes) {
    taken.payload = std::make_shared<const Bytes>(std::move(*bytes));
    return;
  }
  // Nobody can work on it, so the worker is told of the damage and does not get the task.
  release(desk, taken);
  taken.granted.task = {};
  if (!error_) error_ = bytes.error();
}

void LeaseOperation::release(Desk& desk, const Taken& taken) const {
  desk.ask(
      core::ReleaseTask{.ns = order_.request.ns, .task = taken.granted.task, .lease = taken.granted.lease});
}

// The worker never heard of these tasks; the next one need not wait until their leases expire.
void LeaseOperation::abandoned(Desk& desk) {
  for (const Taken& taken : taken_) {
    if (taken.granted.task != core::TaskId{}) release(desk, taken);
  }
}

void LeaseOperation::write(ReplyWriter& reply) {
  std::erase_if(taken_, [](const Taken& taken) { return taken.granted.task == core::TaskId{}; });
  if (error_ && taken_.empty() && !completed_) return reply.error(*error_);
  reply.map(completed_ ? 3 : 2);
  reply.member("lsn", lsn_);
  if (completed_) {
    reply.name("completed");
    write_answer(reply, *completed_);
  }
  reply.name("tasks");
  if (error_ && taken_.empty()) return reply.error(*error_);
  reply.list(taken_.size());
  for (const auto& [granted, queue, payload] : taken_) {
    reply.map(7);
    reply.member("task", core::to_text(granted.task));
    reply.member("lease", core::to_text(granted.lease));
    reply.member("fence", core::fence_text(granted.lease));
    reply.member("queue", queue);
    reply.member("attempt", granted.attempt);
    reply.member("ttl_ms", static_cast<std::uint64_t>(granted.ttl.ms));
    reply.name("payload");
    reply.bytes(payload ? ByteView(*payload) : ByteView{});
  }
}

}  // namespace baton::server
