// What only time brings: workers that come and go, modules that wait for too long.
#include "pipeline/master.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/pause.h"

namespace baton::pipeline {

// Ready modules that nobody can run are seen to wait, with what is missing, and not for ever.
void Master::watch_capabilities() {
  if (lost_) return give_up_what_needs_others();
  if (!coordinator_) return;
  const bool all_are_there = options_.workers_expected > 0 && fleet_.alive() >= options_.workers_expected;
  std::vector<NodeIndex> hopeless;
  const auto nobody_can = [&](const Lane& lane) {
    return !could_run_here(lane) && (lane.pinned || !fleet_.covers(lane));
  };
  std::erase_if(lacking_, [&](const auto& one) {
    const NodeIndex node = one.first;
    if (nobody_can(lane_of(graph_[node]))) return false;
    schedule_.note_status(node, ModuleStatus::ready);
    tell(node);
    return true;
  });
  schedule_.each_ready(nobody_can, [&](NodeIndex node) {
    const Lane lane = lane_of(graph_[node]);
    ModuleReport& report = report_.modules[node];
    const auto [since, is_new] = lacking_.try_emplace(node, now());
    if (is_new) {
      if (report.ready_at == Duration{}) report.ready_at = now();
      schedule_.note_status(node, ModuleStatus::waiting_for_capability);
      const std::string closest = fleet_.closest(lane);
      report.reason = "nobody has " + joined(lane.capabilities) + (closest.empty() ? "" : "; " + closest);
      report.status = ModuleStatus::waiting_for_capability;
      observer_.changed(report, nullptr);
      observer_.noticed(report.id + " waits: " + report.reason);
    }
    if (lane.pinned || all_are_there || now() - since->second >= options_.capability_timeout)
      hopeless.push_back(node);
  });
  for (const NodeIndex node : hopeless) {
    if (is_final(schedule_.status(node))) continue;
    const std::string why = report_.modules[node].reason;
    finish(node, status_of_failure(graph_[node], {.kind = FailureKind::capability}), {},
           {.kind = FailureKind::capability, .message = why});
  }
}

// What always runs does so here, as far as it can.
void Master::give_up_what_needs_others() {
  std::vector<NodeIndex> hopeless;
  schedule_.each_ready([&](const Lane& lane) { return !fits_here(lane); },
                       [&](NodeIndex node) { hopeless.push_back(node); });
  for (const NodeIndex node : hopeless) {
    if (is_final(schedule_.status(node))) continue;
    finish(node, ModuleStatus::cancelled, "the coordinator was lost",
           {.kind = FailureKind::cancelled, .message = lost_->message});
  }
}

void Master::watch_clock() {
  const Duration limit = graph_.definition().timeout;
  if (limit > Duration{} && now() > limit && !schedule_.is_stopping()) {
    stop("the run took longer than " + std::to_string(limit.ms / 1000) + " s", true);
  }
  if (has_queue_timeouts_) watch_queues();
  if (!preferring_since_.empty()) forget_preferences();
  if (!give_up_at_ || now() < *give_up_at_) return;
  std::vector<NodeIndex> silent;
  for (const auto& [node, lane] : there_) {
    // What always runs has all the time it wants, as long as there is somebody for it.
    if (!graph_[node].spec->always_run || !fleet_.covers(lane)) silent.push_back(node);
  }
  for (const NodeIndex node : silent) {
    fleet_.came_back(there_.extract(node).mapped());
    finish(node, ModuleStatus::cancelled, "its worker did not say how it ended",
           {.kind = FailureKind::cancelled, .message = "its worker did not say how it ended"});
  }
}

// Modules that have been ready for longer than they may.
void Master::watch_queues() {
  std::vector<NodeIndex> late;
  schedule_.each_ready([](const Lane&) { return true; },
                       [&](NodeIndex node) {
                         const Duration limit = graph_[node].spec->queue_timeout;
                         Duration& ready_at = report_.modules[node].ready_at;
                         if (ready_at == Duration{}) ready_at = now();
                         if (limit > Duration{} && now() - ready_at > limit) late.push_back(node);
                       });
  for (const NodeIndex node : late) {
    if (is_final(schedule_.status(node))) continue;
    const std::string held_up = schedule_.held_up_by(node);
    const ModuleFailure failed{.kind = FailureKind::timeout,
                               .message = "it has waited for longer than " +
                                          std::to_string(graph_[node].spec->queue_timeout.ms) + " ms" +
                                          (held_up.empty() ? "" : ", for " + held_up)};
    finish(node, status_of_failure(graph_[node], failed), {}, failed);
  }
}

void Master::saw_workers(std::vector<RegisteredWorker> workers) {
  for (const std::string& news : fleet_.update(std::move(workers))) observer_.noticed(news);
  for (const RegisteredWorker& worker : fleet_.workers()) {
    const NodeIndex* node = worker.current_module.empty() ? nullptr : graph_.find(worker.current_module);
    if (!node || schedule_.status(*node) != ModuleStatus::queued || !there_.contains(*node)) continue;
    schedule_.note_status(*node, ModuleStatus::running);
    report_.modules[*node].worker = "worker " + std::to_string(worker.registration.index);
    report_.modules[*node].began_at = now();
    tell(*node);
  }
  watch_capabilities();
}

void Master::poll_workers(const std::stop_token& end) {
  while (!pause(options_.worker_poll, end)) {
    auto workers = coordinator_->get_registered_workers(end);
    if (end.stop_requested()) return;
    if (!workers) return post([this, error = workers.error()] { lose_coordination(error); });
    post([this, all = std::move(*workers)]() mutable { saw_workers(std::move(all)); });
    if (auto said = coordinator_->take_said(end); said && !said->empty())
      post([this, all = std::move(*said)] {
        std::ranges::for_each(all, [this](const Said& one) { hear(one); });
      });
  }
}

void Master::lose_coordination(const Error& error) {
  if (closing_.stop_requested() || std::exchange(lost_, error)) return;
  observer_.noticed("the coordinator is lost: " + error.message);
  for (const auto& [node, lane] : std::exchange(there_, {})) {
    finish(node, ModuleStatus::cancelled, "the coordinator was lost",
           {.kind = FailureKind::cancelled, .message = error.message});
  }
  stop("the coordinator was lost: " + error.message, false);
  give_up_what_needs_others();
}

}  // namespace baton::pipeline
