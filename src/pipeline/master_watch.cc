// What only time brings: workers that come and go, modules that wait for too long.
#include "pipeline/master.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/pause.h"
#include "pipeline/reservation.h"
#include "pipeline/words.h"

namespace baton::pipeline {
namespace {

constexpr Duration kMissedAfter = seconds(5);

}  // namespace

// Modules that nobody can run are seen to wait, with what is missing, and not for ever: those that are ready,
// and those that were handed out to workers who are gone.
void Master::watch_capabilities() {
  if (lost_) return give_up_what_needs_others();
  if (!coordinator_) return;
  std::erase_if(lacking_, [&](const auto& one) {
    const NodeIndex node = one.first;
    const auto there = there_.find(node);
    const bool is_there = there != there_.end();
    if (is_there ? !fleet_.covers(there->second) : nobody_can_run(lane_of(graph_[node]))) return false;
    if (!is_there) schedule_.note_status(node, ModuleStatus::ready);
    tell(node);
    return true;
  });
  std::map<std::string, std::vector<NodeIndex>> missed;  // by what is missing
  const auto miss = [&](NodeIndex node) {
    const bool is_new = lacking_.try_emplace(node, now()).second;
    if (!is_new && !fleet_has_changed_) return;
    const std::string what = what_lacks(node);
    if (is_new || what != report_.modules[node].reason) missed[what].push_back(node);
  };
  schedule_.each_ready([this](const Lane& lane) { return nobody_can_run(lane); }, miss);
  for (const auto& [node, lane] : there_) {
    if (!fleet_.covers(lane)) miss(node);
  }
  for (const auto& [what, nodes] : missed) say_that_they_wait(nodes, what);
  fleet_has_changed_ = false;
  take_back_what_is_only_preferred();
  if (lost_) return;
  ask_for_a_worker_here();
  give_up_what_lacks();
}

// What was handed out is the coordinator's to give, and only workers are given anything.
void Master::ask_for_a_worker_here() {
  const bool is_stranded = !schedule_.is_stopping() && std::ranges::any_of(there_, [this](const auto& one) {
    return !fleet_.covers(one.second) && fits_here(one.second);
  });
  if (is_stranded && !asked_for_a_worker_) observer_.missing_a_worker_here();
  asked_for_a_worker_ = is_stranded;
}

// Of those that are not handed out.
bool Master::nobody_can_run(const Lane& lane) const {
  return !fits_here(lane) && (lane.pinned || !fleet_.covers(lane));
}

std::string Master::what_lacks(NodeIndex node) const {
  const auto there = there_.find(node);
  const bool is_there = there != there_.end();
  const Lane lane = is_there ? there->second : lane_of(graph_[node]);
  if (const std::string who = fleet_.reserved_for_others(lane); !who.empty())
    return "whoever could run it is reserved for other modules, as " + who;
  const std::vector<std::string> named = without_unreserved(lane.capabilities);
  if (named.empty()) return is_there ? "no worker is left" : "there is no worker yet";
  const std::string closest = fleet_.closest(lane);
  return (is_there ? "nobody is left who has " : "nobody has ") + joined(named) +
         (closest.empty() ? "" : "; " + closest);
}

void Master::say_that_they_wait(const std::vector<NodeIndex>& nodes, const std::string& what) {
  for (const NodeIndex node : nodes) {
    // One that was handed out keeps what it shares with others.
    schedule_.note_status(
        node, there_.contains(node) ? ModuleStatus::queued : ModuleStatus::waiting_for_capability);
    ModuleReport& report = report_.modules[node];
    report.status = ModuleStatus::waiting_for_capability;
    report.reason = what;
    observer_.changed(report, nullptr);
  }
  const std::string& first = report_.modules[nodes.front()].id;
  observer_.noticed(nodes.size() == 1
                        ? first + " waits: " + what
                        : first + " and " + std::to_string(nodes.size() - 1) + " more wait: " + what);
}

void Master::give_up_what_lacks() {
  const bool all_are_there = options_.workers_expected > 0 && fleet_.alive() >= options_.workers_expected;
  std::vector<NodeIndex> hopeless;
  for (const auto& [node, since] : lacking_) {
    const auto there = there_.find(node);
    const bool is_there = there != there_.end();
    if (is_there && may_be_taken_back(node, there->second)) continue;  // once there is a place here
    // By the worker that was asked for, who comes on top of those that were expected.
    const bool is_to_be_taken = is_there && asked_for_a_worker_ && fits_here(there->second);
    if (graph_[node].spec->pinned || (all_are_there && !is_to_be_taken) ||
        now() - since >= options_.capability_timeout)
      hopeless.push_back(node);
  }
  for (const NodeIndex node : hopeless)
    give_up(node, {.kind = FailureKind::capability, .message = report_.modules[node].reason});
}

// What always runs does so here, as far as it can, unless the run is another's.
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

// Questions are asked again until they are answered; that takes long only where nobody answers.
void Master::miss_coordinator() {
  if (!coordinator_ || lost_ || is_missed_ || now() - heard_at_ < kMissedAfter + options_.worker_poll) return;
  is_missed_ = true;
  observer_.noticed("the coordinator has not answered for " + in_words(kMissedAfter) + "; still trying");
}

void Master::watch_clock() {
  miss_coordinator();
  const Duration limit = graph_.definition().timeout;
  if (limit > Duration{} && now() > limit && !schedule_.is_stopping()) {
    stop("the run took longer than " + in_words(limit), true);
  }
  if (has_queue_timeouts_) watch_queues();
  if (!preferring_since_.empty()) forget_preferences();
  if (give_up_at_ && now() >= *give_up_at_) give_up_what_is_silent();
}

void Master::saw_workers(std::vector<RegisteredWorker> workers) {
  heard_at_ = now();
  if (std::exchange(is_missed_, false)) observer_.noticed("the coordinator answers again");
  for (const std::string& news : fleet_.update(std::move(workers), now())) {
    observer_.noticed(news);
    fleet_has_changed_ = true;
  }
  for (const RegisteredWorker& worker : fleet_.workers()) {
    if (worker.status != WorkerStatus::executing) continue;
    for (const std::string& module : worker.current_modules) saw_at_work(name_of(worker), module);
  }
  watch_capabilities();
}

// Another than before, if the first one was lost.
void Master::saw_at_work(const std::string& worker, const std::string& module) {
  const NodeIndex* node = graph_.find(module);
  if (!node || !there_.contains(*node)) return;
  const bool has_begun = schedule_.status(*node) == ModuleStatus::running;
  const std::string before = std::exchange(report_.modules[*node].worker, worker);
  if (has_begun && before == worker) return;
  if (has_begun && before.empty()) return tell(*node);  // it was heard before it was seen
  begun_there(*node);
}

void Master::begun_there(NodeIndex node) {
  schedule_.note_status(node, ModuleStatus::running);
  report_.modules[node].began_at = now();
  tell(node);
}

void Master::poll_workers(const std::stop_token& end) {
  constexpr int kTimesFull = 3;
  int patience = kTimesFull;
  while (!pause(options_.worker_poll, end)) {
    auto workers = coordinator_->get_registered_workers(end);
    if (end.stop_requested()) return;
    // Somebody may make room; as long as the lease lasts, nothing is lost.
    if (!workers && workers.error().code == Errc::no_space && patience-- > 0) {
      post([this, error = workers.error()] { observer_.noticed(error.message + "; trying again"); });
      pause({options_.lost_after.ms / kTimesFull}, end);
      continue;
    }
    patience = kTimesFull;
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
  stop("the coordinator was lost: " + error.message,
       false);  // before what ends thereby is taken for the reason
  if (is_anothers()) crew_->watch().stop(true);
  for (const auto& [node, lane] : std::exchange(there_, {})) {
    finish(node, ModuleStatus::cancelled, "the coordinator was lost",
           left_with_a_worker(node, error.message));
  }
  give_up_what_needs_others();
}

}  // namespace baton::pipeline
