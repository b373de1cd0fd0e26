// How modules are begun: here, or by handing them to workers, or not at all because their result is known.
#include "pipeline/master.h"

#include <algorithm>
#include <functional>
#include <set>
#include <thread>
#include <utility>

namespace baton::pipeline {
namespace {

constexpr Duration kPreferred = seconds(2);  // that a module waits for a worker it prefers

}  // namespace

bool Master::could_run_here(const Lane& lane) const {
  return covers(options_.site.capabilities, lane.capabilities);
}

bool Master::fits_here(const Lane& lane) const {
  return could_run_here(lane) && (lane.pinned || !options_.is_only_master) && !is_anothers();
}

// Then nothing of it is ours to begin: not even what always runs.
bool Master::is_anothers() const { return lost_ && lost_->code == Errc::conflict; }

// First what workers have places for, then what this machine has; only then do workers get something to wait
// for them. So nothing waits for a worker while a place is free here.
void Master::dispatch() {
  note_what_is_ready();
  if (!coordinator_ || lost_) return dispatch_here();
  std::vector<ModuleAssignment> all = assign(1);
  dispatch_here();
  if (options_.is_only_master || here_ >= options_.jobs)
    std::ranges::move(assign(2), std::back_inserter(all));
  // A module that cannot be begun may have stopped the run, and so withdrawn those before it; or lost the
  // coordinator, which could not be told.
  std::erase_if(all, [&](const ModuleAssignment& one) { return !there_.contains(*graph_.find(one.module)); });
  if (all.empty()) return;
  std::ranges::stable_sort(all, std::greater(), &ModuleAssignment::priority);
  if (auto done = coordinator_->enqueue_modules(all, closing_.get_token()); !done) {
    if (done.error().code != Errc::too_large) return lose_coordination(done.error());
    return hand_out_each(all);
  }
  if (has_feed_) return;
  for (const ModuleAssignment& assignment : all) wait_for(assignment.module);
}

// One of them, with the results that it needs, is more than the coordinator takes. That is no reason to do
// without the others, nor without it, if it may begin here; of one that may not be begun twice it was noted
// that it begins elsewhere.
void Master::hand_out_each(const std::vector<ModuleAssignment>& all) {
  for (const ModuleAssignment& assignment : all) {
    const NodeIndex node = *graph_.find(assignment.module);
    if (!there_.contains(node)) continue;  // the run was stopped meanwhile, or the coordinator lost
    const auto done = coordinator_->enqueue_module(assignment, closing_.get_token());
    if (done) {
      if (!has_feed_) wait_for(assignment.module);
      continue;
    }
    if (done.error().code != Errc::too_large) return lose_coordination(done.error());
    fleet_.came_back(there_.extract(node).mapped());
    if (graph_[node].spec->idempotent && fits_here(lane_of(graph_[node]))) {
      keep_here(node);
      continue;
    }
    const ModuleFailure failed{.kind = FailureKind::encode, .message = done.error().message};
    finish(node, status_of_failure(graph_[node], failed), {}, failed);
  }
}

void Master::note_what_is_ready() {
  for (const NodeIndex node : schedule_.take_ready()) {
    if (Duration& at = report_.modules[node].ready_at; at == Duration{}) at = now();
  }
}

// Whoever is busy is not waited for with more to come: then it would be his, however long that takes.
bool Master::have_time_who_are_preferred(const Lane& lane) const {
  return fleet_.has_time(as_preferred(lane), [this](const std::string& module) -> const Lane* {
    const NodeIndex* node = graph_.find(module);
    const auto there = node ? there_.find(*node) : there_.end();
    return there == there_.end() ? nullptr : &there->second;
  });
}

// For a moment, while there is somebody who has what is preferred.
bool Master::waits_for_preferred(const Lane& lane) {
  if (lane.preferred.empty() || !coordinator_ || !fleet_.covers(as_preferred(lane))) return false;
  return now() - preferring_since_.try_emplace(lane, now()).first->second < kPreferred;
}

// Whoever comes later waits anew.
void Master::forget_preferences() {
  std::set<Lane> ready;
  schedule_.each_ready([&](const Lane& lane) { return preferring_since_.contains(lane); },
                       [&](NodeIndex node) { ready.insert(lane_of(graph_[node])); });
  std::erase_if(preferring_since_, [&](const auto& one) { return !ready.contains(one.first); });
}

bool Master::has_place_here(const Lane& lane) const {
  const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
  return here_ < options_.jobs && (lane.hint != Hint::cpu || here_cpu_ < processors);
}

void Master::dispatch_here() {
  while (here_ < options_.jobs) {
    const auto node = schedule_.begin_next([&](const Lane& lane) {
      if (!fits_here(lane) || !has_place_here(lane)) return false;
      return !waits_for_preferred(lane) ||
             covers(options_.site.capabilities, as_preferred(lane).capabilities);
    });
    if (!node) return;
    if (!looks_up(*node)) begin_here(*node);
  }
}

std::vector<ModuleAssignment> Master::assign(std::size_t per_place) {
  std::vector<ModuleAssignment> all;
  const auto has_place = [&](const Lane& lane) {
    if (lane.pinned || lost_) return false;
    if (lane.preferred.empty()) return fleet_.has_room(lane, per_place);
    if (have_time_who_are_preferred(lane)) return true;
    return !waits_for_preferred(lane) && fleet_.has_room(lane, per_place);
  };
  while (const auto node = schedule_.begin_next(has_place)) {
    if (looks_up(*node)) continue;
    auto assignment = results_.assignment_of(*node);
    if (!assignment) {
      finish(*node, ModuleStatus::failed, {},
             {.kind = FailureKind::encode, .message = assignment.error().message});
      continue;
    }
    if (!note_that_it_begins(*node, ModuleStatus::queued)) continue;
    Lane lane = lane_of(graph_[*node]);
    if (!lane.preferred.empty() && have_time_who_are_preferred(lane)) {
      preferring_since_.erase(lane);
      lane = as_preferred(lane);
    }
    assignment->required_capabilities = lane.capabilities;
    // Whoever can do it takes it before what everybody can do and is as urgent.
    if (fleet_.is_scarce(lane)) ++assignment->priority;
    there_.emplace(*node, lane);
    fleet_.handed_out(lane);
    lacking_.erase(*node);
    tell(*node);
    all.push_back(std::move(*assignment));
  }
  return all;
}

// Before it is begun; then it comes back, or is over.
bool Master::looks_up(NodeIndex node) {
  if (!clerk_ || !clerk_->takes(node, [&] { return results_.assignment_of(node); })) return false;
  lacking_.erase(node);
  return true;
}

void Master::looked_up(NodeIndex node, CacheAnswer answer) {
  if (is_final(schedule_.status(node))) return;
  ModuleReport& report = report_.modules[node];
  report.cache = answer.why;
  if (!answer.found) {
    schedule_.put_back(node);
    return tell_what_ended();
  }
  report.blob = answer.found->value.blob;
  report.artifacts = answer.found->artifacts;
  results_.put(node, nullptr, std::move(answer.found->value), std::move(answer.found->artifacts));
  finish(node, ModuleStatus::cached, {}, {});
}

void Master::keep_for_next_time(NodeIndex node) {
  if (!clerk_ || schedule_.status(node) != ModuleStatus::succeeded || graph_[node].spec->cache.empty())
    return;
  if (auto carried = results_.carried_of(node); carried && *carried)
    clerk_->keep(node, **carried, report_.modules[node].artifacts);
}

// Whoever is the master after us has to know, before it begins; or whoever was before us, if it still runs.
bool Master::note_that_it_begins(NodeIndex node, ModuleStatus as) {
  if (graph_[node].spec->idempotent) return true;
  if (!coordinator_ || lost_) return note_that_it_begins_here(node);
  const std::string& module = graph_[node].id;
  const auto before = noted_before_.find(module);
  const SerializedModuleResult note =
      note_of_beginning(module, session_, before == noted_before_.end() ? 0 : before->second, as);
  auto noted = coordinator_->publish_result(note, closing_.get_token());
  if (noted && *noted == Accepted::stale)
    noted = failure(Errc::conflict, "another master of this run has begun " + module);
  if (noted) return true;
  lose_coordination(noted.error());
  finish(node, ModuleStatus::cancelled, "the coordinator was lost",
         {.kind = FailureKind::cancelled, .message = noted.error().message});
  return false;
}

bool Master::note_that_it_begins_here(NodeIndex node) {
  if (!options_.note_beginning) return true;
  ModuleReport beginning = report_.modules[node];
  beginning.status = ModuleStatus::running;
  beginning.worker = options_.site.name;
  const auto noted = options_.note_beginning(beginning);
  if (noted) return true;
  const ModuleFailure failed{.kind = FailureKind::exception,
                             .message = "it may not be begun twice, and that it begins could not be noted: " +
                                        noted.error().message};
  finish(node, status_of_failure(graph_[node], failed), {}, failed);
  return false;
}

void Master::begin_here(NodeIndex node) {
  auto order = results_.order_of(node);
  if (!order)
    return finish(node, ModuleStatus::failed, {},
                  {.kind = FailureKind::decode, .message = order.error().message});
  if (!note_that_it_begins(node, ModuleStatus::running)) return;
  order->is_carried = coordinator_.has_value();
  schedule_.note_status(node, ModuleStatus::running);
  lacking_.erase(node);
  ++here_;
  if (graph_[node].spec->hint == Hint::cpu) ++here_cpu_;
  ModuleReport& report = report_.modules[node];
  report.worker = options_.site.name;
  report.attempt = 1;
  report.began_at = now();
  tell(node);
  crew_->begin(std::move(*order));
}

// Nobody else can be given it: it begins as soon as there is a place.
void Master::keep_here(NodeIndex node) {
  if (has_place_here(lane_of(graph_[node]))) return begin_here(node);
  schedule_.keep_here(node);
  tell_what_ended();
  if (!is_final(schedule_.status(node))) tell(node);
}

}  // namespace baton::pipeline
