// How a run begins: it is opened or refused, and what is known of it from before is not done again.
#include <algorithm>
#include <utility>

#include "base/pause.h"
#include "pipeline/master.h"
#include "pipeline/pulse.h"
#include "pipeline/words.h"

namespace baton::pipeline {
namespace {

constexpr Duration kAgain = milliseconds(500);  // between two questions whether the run is free

}  // namespace

Status Master::open() {
  if (coordinator_) {
    if (auto opened = open_at_coordinator(); !opened) return opened;
  }
  if (options_.ended_before) options_.restored.merge(options_.ended_before());
  restore_own();
  return {};
}

// What an earlier master ran itself, and what nobody can tell the end of.
void Master::restore_own() {
  std::map<std::string, ModuleFailure> begun;  // those that may not be begun twice
  for (const SerializedModuleResult& own : own_before_) {
    const auto module = begun_by(own);
    if (!module) continue;
    ++noted_before_[*module];
    begun[*module] = own.status == ModuleStatus::running ? lost_with_master() : lost_with_its_task();
  }
  for (const std::string& module : enqueued_before_) begun.erase(module);  // that is heard in time
  for (const SerializedModuleResult& own : own_before_) {
    if (begun_by(own)) continue;
    if (own.status == ModuleStatus::skipped) begun.erase(own.module);
    const bool is_known =
        own.failure ? own.status != ModuleStatus::cancelled : own.blob || !own.value.empty();
    if (is_known)
      options_.restored.try_emplace(own.module, Carried{own.value, own.blob}, own.artifacts, own.failure);
  }
  for (const auto& [module, failed] : begun)
    options_.restored.try_emplace(module, Carried{}, std::vector<ArtifactRef>(), failed);
}

Status Master::open_at_coordinator() {
  if (auto checked = check_places(); !checked) return checked;
  const RunOpening opening{.session = session_,
                           .name = report_.pipeline,
                           .fingerprint = graph_.fingerprint(),
                           .definition = options_.definition,
                           .parts = graph_.parts()};
  if (auto opened = open_when_free(opening); !opened) return opened;
  heed_lease();
  auto before = coordinator_->enqueued_modules(options_.stop);
  if (!before) return std::unexpected(before.error());
  enqueued_before_ = std::move(*before);
  auto own = coordinator_->own_results(options_.stop);
  if (!own) return std::unexpected(own.error());
  own_before_ = std::move(*own);
  auto cancelled = coordinator_->is_cancellation_requested(options_.stop);
  if (!cancelled) return std::unexpected(cancelled.error());
  cancelled_before_ = std::move(*cancelled);
  return {};
}

// A run that was begun before may keep the lease that it was begun with.
void Master::heed_lease() {
  const auto opening = coordinator_->run_opening(options_.stop);
  if (opening && opening->lease) options_.lost_after = *opening->lease;
}

// Whoever was killed a moment ago still counts as being there, until its lease has ended.
Status Master::open_when_free(const RunOpening& opening) {
  for (bool is_told = false;;) {
    auto opened = coordinator_->open_run(opening, options_.stop);
    if (opened || opened.error().code != Errc::locked) return opened;
    if (!is_told) heed_lease();
    if (now() > options_.lost_after + kAgain + kAgain) return opened;
    if (!std::exchange(is_told, true))
      observer_.noticed(
          "another master of this run is there, or was killed a moment ago: waiting for up to " +
          in_words(options_.lost_after) + " for its lease to end");
    if (pause(kAgain, options_.stop)) return failure(Errc::closed, options_.stop_reason);
  }
}

// Before hours are spent on what could not be kept.
Status Master::check_places() const {
  if (options_.site.blobs != nullptr) return {};
  for (const GraphNode& node : graph_.nodes()) {
    if (!node.spec->produces.empty() && !node.left_out)
      return failure(Errc::invalid_request,
                     node.id +
                         " produces artifacts, and there is no place for them: name a folder that all "
                         "machines share (--blobs)");
  }
  return {};
}

void Master::begin_listening() {
  heard_at_ = now();
  // Another may have taken over meanwhile: it took long to look at what is known from before, or we stood
  // still.
  if (auto workers = coordinator_->get_registered_workers(closing_.get_token()))
    saw_workers(std::move(*workers));
  else if (workers.error().code != Errc::no_space)
    lose_coordination(workers.error());
  threads_.emplace_back([this] { receive(closing_.get_token()); });
  threads_.emplace_back([this] { poll_workers(closing_.get_token()); });
  own_results_.emplace(*coordinator_,
                       [this](const std::string& text) { post([this, text] { observer_.noticed(text); }); });
}

// Another may be the master of this run, so nothing of it is ours to begin: not even what always runs.
RunReport Master::refuse(const Error& error) {
  report_.outcome = options_.stop.stop_requested() ? RunOutcome::cancelled
                    : is_transient(error.code)     ? RunOutcome::coordination_lost
                                                   : RunOutcome::refused;
  report_.reason = error.message;
  report_.refusal = error;
  report_.took = now();
  for (ModuleReport& one : report_.modules) {
    one.status = ModuleStatus::cancelled;
    one.reason = error.message;
  }
  return std::move(report_);
}

void Master::restore() {
  std::map<NodeIndex, Lost> known;  // what they made that is no longer stored
  bool is_answered = true;          // by where that is
  for (const auto& [module, restored] : options_.restored) {
    const NodeIndex* node = graph_.find(module);
    if (node && !restored.failure && !is_final(schedule_.status(*node)))
      known.emplace(*node, lost_of(restored, is_answered));
  }
  while (const auto node = asked_for_in_vain(known)) make_again(*node, known);
  for (const auto& [node, lost] : known) {
    const Restored& restored = options_.restored.at(graph_[node].id);
    report_.modules[node].blob = restored.value.blob;
    report_.modules[node].artifacts = restored.artifacts;
    results_.put(node, nullptr, restored.value, restored.artifacts);
    schedule_.finish(node, ModuleStatus::restored, "it has succeeded before");
  }
}

// Where nobody answers, nothing is known to be lost: whoever needs it finds out.
Master::Lost Master::lost_of(const Restored& restored, bool& is_answered) const {
  const auto is_gone = [&](const BlobRef& blob) {
    if (options_.site.blobs == nullptr) return true;
    if (!is_answered) return false;
    const auto has = options_.site.blobs->has(blob, options_.stop);
    is_answered = has.has_value();
    return has && !*has;
  };
  Lost lost{.value = restored.value.blob && is_gone(*restored.value.blob)};
  for (const ArtifactRef& artifact : restored.artifacts) {
    if (is_gone(artifact.blob)) lost.artifacts.insert(artifact.name);
  }
  return lost;
}

// A module that is known, and has lost what one that is to run takes.
std::optional<NodeIndex> Master::asked_for_in_vain(const std::map<NodeIndex, Lost>& known) const {
  const auto takes = [&](const GraphNode& node, NodeIndex other, const Lost& lost) {
    const bool takes_value = std::ranges::any_of(node.needs, [&](const GraphNeed& need) {
      return need.takes_value && std::ranges::find(need.on, other) != need.on.end();
    });
    const std::string producer = graph_[other].id.substr(0, graph_[other].id.find('['));
    return (lost.value && takes_value) ||
           std::ranges::any_of(node.spec->consumes, [&](const Consumed& consumed) {
             return consumed.producer == producer && lost.artifacts.contains(consumed.name);
           });
  };
  for (const auto& [other, lost] : known) {
    if (!lost.value && lost.artifacts.empty()) continue;
    for (const NodeIndex node : graph_.in_order()) {
      const bool is_to_run = !known.contains(node) && !is_final(schedule_.status(node));
      if (is_to_run && takes(graph_[node], other, lost)) return other;
    }
  }
  return {};
}

// With all that comes behind it; unless it may not be begun twice.
void Master::make_again(NodeIndex node, std::map<NodeIndex, Lost>& known) {
  if (known.erase(node) == 0) return;
  if (!graph_[node].spec->idempotent) {
    options_.restored.at(graph_[node].id).failure = {
        .kind = FailureKind::artifact,
        .message =
            "it has succeeded before, what it made is no longer stored, and it may not be begun twice"};
    return;
  }
  for (const NodeIndex behind : graph_[node].dependants) make_again(behind, known);
}

// What workers had is theirs to tell. One failure may stop the run, and so what they still have.
void Master::restore_failures() {
  for (const auto& [module, restored] : options_.restored) {
    const NodeIndex* node = graph_.find(module);
    if (!node || !restored.failure || is_final(schedule_.status(*node)) || there_.contains(*node)) continue;
    report_.modules[*node].tries = restored.tries;
    finish(*node, status_of_failure(graph_[*node], *restored.failure), {}, *restored.failure);
  }
}

// That is for good: workers begin nothing of it any more. The first reason stands.
void Master::heed_cancellation() {
  if (!cancelled_before_ || schedule_.is_stopping()) return;
  const std::string& reason = cancelled_before_->reason;
  const bool by_user = !is_of_a_module(graph_, reason);
  observer_.noticed((by_user ? "the run was cancelled before: " : "the run was stopped before: ") + reason);
  stop(reason, by_user);
}

// What an earlier master handed out may be running: it is nobody else's, and so is what it shares with
// others.
void Master::take_over() {
  for (const std::string& module : enqueued_before_) {
    const NodeIndex* node = graph_.find(module);
    if (!node || is_final(schedule_.status(*node))) continue;
    schedule_.take_over(*node);
    const Lane lane = lane_of(graph_[*node]);
    there_.emplace(*node, lane);
    fleet_.handed_out(lane);
    tell(*node);
  }
}

}  // namespace baton::pipeline
