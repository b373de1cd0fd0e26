// Modules that are given up before they began: wherever they wait, nobody begins them afterwards.
#include "pipeline/master.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/words.h"

namespace baton::pipeline {
namespace {

constexpr char kSilent[] = "its worker did not say how it ended";
constexpr char kTakenBack[] = "the master took it back, to run it itself";

}  // namespace

// Whether a worker has it is for the coordinator to say, which would hand it out. False: one has, or did.
bool Master::take_back(NodeIndex node, ModuleStatus status, const std::string& reason,
                       const ModuleFailure& failed) {
  SerializedModuleResult result{
      .module = graph_[node].id, .attempt = 0, .status = status, .skipped_because = reason};
  if (failed.kind != FailureKind::none) result.failure = failed;
  const auto accepted = coordinator_->publish_result(result, closing_.get_token());
  if (!accepted) return lose_coordination(accepted.error()), false;
  if (*accepted == Accepted::stale) return false;
  fleet_.came_back(there_.extract(node).mapped());
  return true;
}

bool Master::withdraw(NodeIndex node, ModuleStatus status, const std::string& reason,
                      const ModuleFailure& failed) {
  if (!take_back(node, status, reason, failed)) return false;
  finish(node, status, reason, failed);
  return true;
}

// It waits for somebody with what it only prefers, and there is nobody any more. How an earlier master has
// handed it out is not known; that it was may not be changed, so only this machine can take it.
bool Master::may_be_taken_back(NodeIndex node, const Lane& there) const {
  const ModuleSpec& spec = *graph_[node].spec;
  if (spec.preferred.empty() || !spec.idempotent || schedule_.is_stopping()) return false;
  const Lane lane = lane_of(graph_[node]);
  const bool may_be_strict =
      there != lane || std::ranges::find(enqueued_before_, graph_[node].id) != enqueued_before_.end();
  return may_be_strict && schedule_.status(node) == ModuleStatus::queued && fits_here(lane) &&
         !fleet_.covers(as_preferred(lane));
}

void Master::take_back_what_is_only_preferred() {
  std::vector<NodeIndex> all;
  for (const auto& [node, lane] : there_) {
    if (may_be_taken_back(node, lane)) all.push_back(node);
  }
  for (const NodeIndex node : all) {
    if (!there_.contains(node) || !has_place_here(lane_of(graph_[node]))) continue;
    if (take_back(node, ModuleStatus::cancelled, kTakenBack, {})) begin_here(node);
  }
}

// By an earlier master, which was killed before it had run it. Nobody else can be given it again.
bool Master::was_taken_back(const SerializedModuleResult& result) const {
  return result.attempt == 0 && result.skipped_because == kTakenBack && !schedule_.is_stopping() &&
         fits_here(lane_of(graph_[*graph_.find(result.module)]));
}

void Master::give_up(NodeIndex node, const ModuleFailure& failed) {
  if (is_final(schedule_.status(node))) return;
  const ModuleStatus status = status_of_failure(graph_[node], failed);
  if (there_.contains(node))
    withdraw(node, status, {}, failed);
  else
    finish(node, status, {}, failed);
}

// At a stop. What somebody has begun is for him to stop.
void Master::withdraw_what_waits() {
  std::vector<NodeIndex> waiting;
  for (const auto& [node, lane] : there_) {
    if (schedule_.status(node) == ModuleStatus::queued && !graph_[node].spec->always_run)
      waiting.push_back(node);
  }
  for (const NodeIndex node : waiting) {
    if (there_.contains(node)) withdraw(node, ModuleStatus::cancelled, schedule_.stop_reason(), {});
  }
}

// Whoever goes on with the run has to know of what may not be begun twice that it may have been.
ModuleFailure Master::left_with_a_worker(NodeIndex node, const std::string& why) const {
  if (graph_[node].spec->idempotent) return {.kind = FailureKind::cancelled, .message = why};
  return {.kind = FailureKind::worker_lost,
          .message = why + "; a worker may have begun it, and it may not be begun twice"};
}

// A while after a stop.
void Master::give_up_what_is_silent() {
  std::vector<NodeIndex> silent;
  for (const auto& [node, lane] : there_) {
    // What always runs has all the time it wants, as long as there is somebody for it.
    if (!graph_[node].spec->always_run || !fleet_.covers(lane)) silent.push_back(node);
  }
  const ModuleFailure failed{.kind = FailureKind::cancelled, .message = kSilent};
  for (const NodeIndex node : silent) {
    if (!there_.contains(node) || withdraw(node, ModuleStatus::cancelled, kSilent, failed)) continue;
    if (lost_) return;
    fleet_.came_back(there_.extract(node).mapped());
    finish(node, ModuleStatus::cancelled, kSilent, left_with_a_worker(node, kSilent));
  }
}

// Modules that have been ready for longer than they may, and nobody has begun them: here, or at a worker.
void Master::watch_queues() {
  note_what_is_ready();  // or one that has just become so would seem to have waited since the run began
  std::vector<NodeIndex> late;
  const auto look_at = [&](NodeIndex node) {
    const Duration limit = graph_[node].spec->queue_timeout;
    if (limit > Duration{} && now() - report_.modules[node].ready_at > limit) late.push_back(node);
  };
  schedule_.each_ready([](const Lane&) { return true; }, look_at);
  for (const auto& [node, lane] : there_) {
    if (schedule_.status(node) == ModuleStatus::queued) look_at(node);
  }
  for (const NodeIndex node : late) {
    if (is_final(schedule_.status(node))) continue;
    std::string message = "it has waited for longer than " + in_words(graph_[node].spec->queue_timeout);
    if (const std::string held_up = schedule_.held_up_by(node); !held_up.empty())
      message += ", for " + held_up;
    else if (lacking_.contains(node))
      message += ": " + report_.modules[node].reason;
    else if (there_.contains(node))
      message += ", for a place at a worker";
    give_up(node, {.kind = FailureKind::timeout, .message = std::move(message)});
    // Whoever has it has begun it in time. One that nobody can have any more is looked at again.
    if (there_.contains(node) && !lacking_.contains(node)) begun_there(node);
  }
}

}  // namespace baton::pipeline
