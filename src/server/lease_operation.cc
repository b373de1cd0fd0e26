#include "server/lease_operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/request_operation.h"

namespace baton::server {
namespace {

constexpr std::size_t kTask = 0, kCompletion = 1;  // what is answered
constexpr std::uint64_t kBlindly = 32;
constexpr std::uint64_t kBytesMax = std::uint64_t{8} << 20;  // of payloads, after which no more are taken

// Where each task is looked for.
std::uint64_t lanes_of(const core::State& state, const core::LeaseTask& request) {
  std::uint64_t lanes = 0;
  for (const std::string& queue : request.queues)
    lanes += state.queues[core::find_queue(state, request.ns, queue)].lanes_open;
  return std::max<std::uint64_t>(lanes, 1);
}

}  // namespace

void LeaseOperation::begin(Desk& desk) {
  if (completes_) {
    core::Request completion = std::move(*completes_);
    desk.ask(*this, kCompletion, completion);
  }
  ask(desk);
}

// While too much is not read, tasks go out one by one: who does not read what he is given may have it again
// and again, as the leases end.
void LeaseOperation::ask(Desk& desk) {
  lanes_ = lanes_of(desk.authority().engine().state(), order_.request);
  const std::uint64_t tasks_max = std::max<std::uint64_t>(Desk::kLanesAtOnce / lanes_, 1);
  wanted_ = desk.is_flooded() ? 1 : std::min(order_.count, tasks_max);
  looked_at_ = UINT64_MAX;
  ask_for_more(desk);
}

// What is decided at once is looked at before the next is asked for, though nobody may hear of it yet: so it
// ends where the queue does, and before the reply is too long. What has to wait for its turn is asked for
// together, no more of it than will fit if all are as large as the largest yet.
void LeaseOperation::ask_for_more(Desk& desk) {
  const std::uint64_t fitting = largest_ == 0 ? 0 : (kBytesMax - granted_bytes_) / largest_;
  const std::uint64_t together = std::max(kBlindly, fitting);
  while (wanted_ > 0 && undecided_ < together) {
    --wanted_, ++asked_, ++undecided_;
    desk.counters.lanes_looked_at += lanes_;
    core::Request request = order_.request;
    const engine::Answer* decided = desk.ask(*this, kTask, request);
    if (decided == nullptr) continue;
    --undecided_;
    look_at(*decided);
  }
}

void LeaseOperation::look_at(const engine::Answer& decided) {
  const auto* granted = decided.reply ? std::get_if<core::Granted>(&*decided.reply) : nullptr;
  if (granted != nullptr) {
    granted_bytes_ += granted->payload.length;
    largest_ = std::max<std::uint64_t>(largest_, granted->payload.length);
  }
  if (granted == nullptr || granted_bytes_ >= kBytesMax) wanted_ = 0;
}

void LeaseOperation::answered(Desk& desk, std::size_t index, engine::Answer&& answer) {
  lsn_ = answer.lsn;
  if (index == kCompletion) {
    completed_ = std::move(answer);
    return;
  }
  if (asked_ <= undecided_) {
    look_at(answer);
    --undecided_;
  }
  if (!answer.reply) wanted_ = 0;
  if (--asked_ == 0) ask_for_more(desk);
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
  if (asked_ > 0 || !taken_.empty() || error_ || order_.wait <= Duration{}) return;
  if (!deadline_) deadline_ = desk.now() + order_.wait;
  desk.wait_for_task(*this, {.ns = order_.request.ns,
                             .queues = order_.request.queues,
                             .capabilities = order_.request.capabilities.joined(),
                             .at_capacity = at_capacity_,
                             .looked_at = looked_at_,
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
  if (bytes.error().code == Errc::not_found) {
    // Copied forward after the grant, and the old segment has gone.
    const core::BlobRef now = desk.payload_of(taken.granted.task);
    if (now.length > 0 && now != std::exchange(taken.granted.payload, now))
      return desk.fetch(*this, index, now);
  }
  // Nobody can work on it, so the worker is told of the damage and does not get the task; nor does anybody
  // for a while, lest it uses up its attempts.
  release(desk, taken, core::kUnreadableDelay);
  desk.note(fmt::format("task {}: its payload cannot be read: {}; nobody gets the task for an hour",
                        core::to_text(taken.granted.task), bytes.error().message));
  taken.granted.task = {};
  if (!error_) error_ = bytes.error();
}

void LeaseOperation::release(Desk& desk, const Taken& taken, Duration delay) const {
  desk.ask(core::ReleaseTask{
      .ns = order_.request.ns, .task = taken.granted.task, .lease = taken.granted.lease, .delay = delay});
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
