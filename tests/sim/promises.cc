#include "tests/sim/promises.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/violation.h"

namespace baton::sim {
namespace {

using namespace core;

// `what` is only made where it is needed: most answers are fine.
template <class... Parts>
void demand(bool holds, const char* id, fmt::format_string<Parts...> what, Parts&&... parts) {
  if (!holds) throw Violation{id, fmt::format(what, std::forward<Parts>(parts)...)};
}

}  // namespace

void Promises::leave(const Request& request, const engine::Answer& answer, Instant decided_at, Lsn durable,
                     const History& history) {
  demand(answer.lsn <= durable, "I4", "an answer leaves that rests on entry {}, and only {} are durable",
         answer.lsn, durable);
  acknowledged_ = std::max(acknowledged_, answer.lsn);
  decided_at_ = decided_at;
  std::visit([&](const auto& asked) { check(asked, answer, history); }, request);
}

void Promises::forget(Lsn last) {
  acknowledged_ = std::min(acknowledged_, last);
  said_.clear();
  lost_.clear();
  tokens_.clear();
}

void Promises::check(const SubmitTask& request, const engine::Answer& answer, const History& history) {
  if (!answer.reply) return;
  const auto& told = std::get<Submitted>(*answer.reply);
  const SeenTask* task = history.task(told.task.lsn);
  const bool recorded = task != nullptr && task->id == told.task && task->ns == request.ns &&
                        task->queue == request.queue && task->key == request.key &&
                        task->payload_hash == request.payload.hash();
  demand(recorded && told.task.lsn <= answer.lsn, "I18",
         "a submission was answered with task {}, which the log does not have so", told.task.lsn);
}

void Promises::check(const LeaseTask& request, const engine::Answer& answer, const History& history) {
  if (!answer.reply) return;
  const auto* told = std::get_if<Granted>(&*answer.reply);
  if (told == nullptr) return;
  const SeenLease* lease = history.lease(told->lease.lsn);
  demand(lease != nullptr && lease->task == told->task.lsn && lease->epoch == told->lease.epoch &&
             lease->worker == request.worker,
         "I18", "lease {} was told but is not in the log", told->lease.lsn);
  demand(lease->granted_at + told->ttl <= lease->expiry, "I19",
         "lease {} was told to last longer than it does", told->lease.lsn);
  auto& token = tokens_[told->task];
  const std::pair now(told->lease.epoch, told->lease.lsn);
  demand(now > token, "I20", "the fencing token of task {} does not grow", told->task.lsn);
  token = now;
}

void Promises::check(const ExtendLease& request, const engine::Answer& answer, const History& history) {
  if (!answer.reply) {
    if (answer.reply.error().code == Errc::lease_lost) lost_.insert(request.lease);
    return;
  }
  const Duration ttl = std::get<Extended>(*answer.reply).ttl;
  const SeenLease* lease = history.lease(request.lease.lsn);
  demand(lease != nullptr && decided_at_ + ttl <= lease->expiry, "I19",
         "lease {} was told an expiry that is not in the log", request.lease.lsn);
  demand(!lost_.contains(request.lease), "I13", "lease {} was said to be lost and is extended",
         request.lease.lsn);
}

void Promises::check(const CompleteTask& request, const engine::Answer& answer, const History& history) {
  check_ending(request.lease, 'c', request.result.hash(), answer, history);
}

void Promises::check(const FailTask& request, const engine::Answer& answer, const History& history) {
  // A final failure says something else than one that may be retried.
  check_ending(request.lease, 'f', request.reason.hash() * 2 + request.final, answer, history);
}

void Promises::check(const ReleaseTask& request, const engine::Answer& answer, const History& history) {
  check_ending(request.lease, 'r', 0, answer, history);
}

// One of: it is over as you say, you have lost it, it was over in another way. Whichever was said first is
// said for ever, as long as the lease is remembered.
void Promises::check_ending(const LeaseId& id, char kind, std::uint64_t content, const engine::Answer& answer,
                            const History& history) {
  int said = 0;
  const SeenLease* lease = history.lease(id.lsn);
  if (!answer.reply) {
    if (answer.reply.error().code != Errc::conflict) return;
    said = 1;
  } else if (std::holds_alternative<Cancelled>(*answer.reply)) {
    said = 2;
    demand(lease != nullptr && lease->told == 1, "I18",
           "lease {} was told it is cancelled, and the log does not say so", id.lsn);
  } else {
    const Ended outcome = std::get<Committed>(*answer.reply).outcome;
    said = 3 + static_cast<int>(outcome);
    demand(lease != nullptr && lease->over && lease->how == outcome && lease->ended_by <= answer.lsn, "I18",
           "lease {} was told it has ended, and the log does not say so", id.lsn);
  }
  const auto [first, fresh] = said_.emplace(std::tuple(id, kind, content), said);
  demand(fresh || first->second == said, "I17", "lease {} was answered {} and now {}", id.lsn, first->second,
         said);
}

}  // namespace baton::sim
